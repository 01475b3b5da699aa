"""Records what an index was made from, its files and documents, in one SQLite file inside the index.

The journal is committed after the index itself, batch by batch. So what the journal lists is in the index, and what a
killed run wrote beyond that is written again, to the same effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ras_agent.errors import IndexMismatch, IngestError

_TABLES = """
CREATE TABLE IF NOT EXISTS files (label TEXT PRIMARY KEY, root TEXT NOT NULL, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, file TEXT NOT NULL, place TEXT NOT NULL, digest BLOB NOT NULL, run INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS documents_of_file ON documents (file);
"""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Describes an indexed document: the file and place it came from, its digest, and the last run that saw it."""

    file: str
    place: str
    digest: bytes
    run: int


class Journal:
    """Reads and writes the journal for one run. Nothing is stored before `commit`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_TABLES)
        (last,) = connection.execute("PRAGMA user_version").fetchone()
        self.run = last + 1
        connection.execute(f"PRAGMA user_version = {self.run:d}")

    def stamp(self, label: str) -> str | None:
        """Return the stamp the file had when all of it was indexed; "" if it never was, None for an unknown file."""
        row = self._connection.execute("SELECT stamp FROM files WHERE label = ?", (label,)).fetchone()
        return row[0] if row else None

    def put_file(self, label: str, root: str, stamp: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (label, root, stamp))

    def files_under(self, roots: Collection[str]) -> list[str]:
        """Return the labels of the files that were indexed from the named folders."""
        rows = self._connection.execute("SELECT label, root FROM files ORDER BY label")
        return [label for label, root in rows if root in roots]

    def drop_file(self, label: str) -> None:
        self._connection.execute("DELETE FROM files WHERE label = ?", (label,))

    def document(self, name: str) -> JournalEntry | None:
        row = self._connection.execute(
            "SELECT file, place, digest, run FROM documents WHERE id = ?", (name,)
        ).fetchone()
        return JournalEntry(*row) if row else None

    def put_document(self, name: str, file: str, place: str, digest: bytes) -> None:
        """Record that this run saw the document."""
        values = (name, file, place, digest, self.run)
        self._connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)", values)

    def drop_document(self, name: str) -> None:
        self._connection.execute("DELETE FROM documents WHERE id = ?", (name,))

    def forget_document(self, name: str) -> None:
        """Delete a document and the stamp of its file, so that the next run indexes it again if it still exists."""
        known = self.document(name)
        if known is None:
            return
        self.drop_document(name)
        if self.documents_of(known.file):
            self._connection.execute("UPDATE files SET stamp = '' WHERE label = ?", (known.file,))
        else:
            self.drop_file(known.file)

    def documents_of(self, file: str, *, unseen: bool = False) -> list[str]:
        """Return the ids of a file's documents; with `unseen`, of those that this run has not seen."""
        latest = self.run - 1 if unseen else self.run
        query = "SELECT id FROM documents WHERE file = ? AND run <= ? ORDER BY id"
        return [name for (name,) in self._connection.execute(query, (file, latest))]

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


@contextmanager
def open_journal(path: Path | None) -> Iterator[Journal]:
    """Open the journal in the file `path` for this process alone; without a path, an empty one in memory.

    Raises IngestError while another process holds it, IndexMismatch for a damaged file.
    """
    connection = sqlite3.connect(path or ":memory:", timeout=0)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        yield Journal(connection)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise IngestError(f"{path}: {error}") from error
        raise IngestError(f"{path}: another run is writing this index; wait for it to end") from error
    except sqlite3.DatabaseError as error:
        raise IndexMismatch(
            f"{path} is damaged ({error}): delete it and run again; every file is then read anew, but what has gone "
            "from the files stays in the index"
        ) from error
    finally:
        connection.close()
