"""Opens SQLite files that one process at a time uses, and tells if anything else has changed one in between."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from ras_agent.errors import IndexMismatch, IngestError
from ras_agent.tools.store.checksums import FileSum, check_file, file_sum, reading
from ras_agent.tools.store.durable import writer_lock


@contextmanager
def open_database(path: Path, what: str, remedy: str) -> Iterator[sqlite3.Connection]:
    """Open the database in the file `path` for this process alone; it is made if there is none.

    what: it describes, for messages, such as "index". Raises IngestError while another process has it open and for a
    file that cannot be written, IndexMismatch, which ends in `remedy`, for a damaged one.
    """
    with ExitStack() as held:
        seal = _seal(path)
        try:
            held.enter_context(writer_lock(seal, wait=False))
        except BlockingIOError as error:
            raise _busy(path, what) from error
        check_database(path, remedy)
        # from here on the file changes: after a crash there is no checksum to compare it with
        _write(seal, b"")
        connection, whole = None, True
        try:
            connection = sqlite3.connect(path, timeout=0)
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA secure_delete = ON")  # deleted text must not be left in the file
            yield connection
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise _busy(path, what) from error
            raise IngestError(
                f"{path}: {error}: it has to be a file that can be written, with room on its disk"
            ) from error
        except sqlite3.DatabaseError as error:
            whole = False
            raise IndexMismatch(f"{path} is damaged ({error}): {remedy}") from error
        finally:
            if connection is not None:
                connection.close()
                with suppress(OSError):  # the next process then compares nothing
                    if whole and not any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal")):
                        _write(seal, json.dumps(asdict(file_sum(path))).encode())


def check_database(path: Path, remedy: str, *, whole: bool = False) -> None:
    """Raise IndexMismatch if a database is not as it was when it was last closed.

    whole: compare large files too, have SQLite read through one that was never closed, and ask for a missing one, which
    else will be made anew.
    """
    seal, content = _seal(path), b""
    with reading(seal, f"delete {seal}"), suppress(FileNotFoundError):
        content = seal.read_bytes()
    if not os.path.lexists(path):
        if whole and content:
            raise IndexMismatch(f"{path} is missing: run the command that made it again")
        return
    if content:
        with reading(seal, f"delete {seal}"):
            expected = FileSum(**json.loads(content))
        check_file(path, expected, remedy, whole=whole)
    elif whole:
        with reading(path, remedy):
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            try:
                (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            finally:
                connection.close()
            if found != "ok":
                raise ValueError(found)


def _seal(path: Path) -> Path:
    """Return the file that holds a closed database's checksum; whoever has the database open locks it."""
    return path.with_name(f"{path.name}.sum")


def _write(seal: Path, content: bytes) -> None:
    with seal.open("rb+") as file:
        file.truncate()
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _busy(path: Path, what: str) -> IngestError:
    return IngestError(f"{path}: another run is writing this {what}; wait for it to end")
