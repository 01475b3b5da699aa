"""One SQLite file, written by many threads and processes, and whole after any of them is killed."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ras_agent.errors import SettingsError

__all__ = ["SqliteFile"]


class SqliteFile:
    """A file that is made with `tables`, `CREATE TABLE IF NOT EXISTS ...`, where there is none.

    What was committed is there after the process is killed; only the machine's own end may cost the last few commits.
    """

    def __init__(self, path: str | Path, tables: str, holds: str) -> None:
        """holds: what is kept, for errors. Raises SettingsError for a file of another kind."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        try:
            with self.transaction() as connection:
                connection.execute(tables)
        except sqlite3.Error as error:
            raise SettingsError(f"cannot keep {holds} in {self.path}: {error}; name another file") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; committed at the end of the block, rolled back by an exception."""
        with self._lock:
            connection = self._connection()
            with connection:
                yield connection

    def _connection(self) -> sqlite3.Connection:
        """One for each process: SQLite's connections do not survive a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._opened = (os.getpid(), connection)
            weakref.finalize(self, connection.close)
            connection.execute("PRAGMA journal_mode = WAL")  # readers need not wait for a writer
            connection.execute("PRAGMA synchronous = NORMAL")  # no wait for the disk at each commit
        return self._opened[1]
