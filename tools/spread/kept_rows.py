"""Rows of text kept under a key, by many threads, processes and machines, whole after any of them is killed."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ras_agent.errors import SettingsError

__all__ = ["REMOTE", "KeptRows", "Rows"]

REMOTE = "ray:"


class Rows(Protocol):
    """A table of text; its first column is the key."""

    near: bool
    """Whether `get` takes some ten microseconds, less than handing it to a thread would."""

    def get(self, key: str) -> tuple[str, ...] | None:
        """The row under a key, or None."""
        ...

    def put(self, row: Sequence[str]) -> None:
        """Keep a row; the first one for a key stays."""
        ...

    def __len__(self) -> int: ...


class KeptRows:
    """One table in an SQLite file, which is made where there is none.

    What was put is there after the process is killed; only the machine's own end may cost the last few rows.
    """

    near = True

    def __init__(self, path: str | Path, columns: Sequence[str], holds: str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        key, *others = columns
        table = ", ".join([f"{key} TEXT PRIMARY KEY", *(f"{name} TEXT NOT NULL" for name in others)])
        self._get = f"SELECT {', '.join(columns)} FROM {holds} WHERE {key} = ?"
        self._put = f"INSERT OR IGNORE INTO {holds} VALUES ({', '.join('?' * len(columns))})"
        self._count = f"SELECT COUNT(*) FROM {holds}"
        try:
            with self._transaction() as connection:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {holds} ({table})")
        except sqlite3.Error as error:
            raise SettingsError(f"cannot keep {holds} in {self.path}: {error}; name another file") from error

    def get(self, key: str) -> tuple[str, ...] | None:
        with self._transaction() as connection:
            row: tuple[str, ...] | None = connection.execute(self._get, (key,)).fetchone()
        return row

    def put(self, row: Sequence[str]) -> None:
        with self._transaction() as connection:
            connection.execute(self._put, tuple(row))

    def __len__(self) -> int:
        with self._transaction() as connection:
            (count,) = connection.execute(self._count).fetchone()
        return int(count)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
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
