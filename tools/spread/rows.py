"""Stores rows of text under a key for many threads, processes and machines, whole after any of them is killed."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ras_agent.errors import MissingExtra, SettingsError

NAMESPACE = "ras-agent"
"""The namespace of our actors on a Ray cluster."""
REMOTE = "ray:"
"""What the place of rows begins with if an actor stores them."""


class Rows(Protocol):
    """Stores a table of text, whose first column is the key."""

    near: bool
    """Whether `get` takes some ten microseconds, less than handing it to a thread would."""

    def get(self, key: str) -> tuple[str, ...] | None:
        """Return the row under a key, or None."""
        ...

    def put(self, row: Sequence[str]) -> None:
        """Store a row; the first one for a key stays."""
        ...

    def __len__(self) -> int: ...


def open_rows(place: str | Path, columns: Sequence[str], holds: str) -> Rows:
    """Open the rows in a file, or behind "ray:NAME", an actor that stores them for a Ray cluster.

    columns: the key's first. holds: the name of the table, and of what is stored, for errors.
    Raises SettingsError for a file of another kind, or an actor that does not exist.
    """
    if str(place).startswith(REMOTE):
        return ActorRows(str(place).removeprefix(REMOTE))
    return FileRows(place, columns, holds)


class FileRows:
    """Stores one table in an SQLite file, which is made if it does not exist.

    What was put is there after the process is killed; only a crash of the machine may cost the last few rows.
    """

    near = True

    def __init__(self, path: str | Path, columns: Sequence[str], holds: str) -> None:
        """Open the table. Raises SettingsError for a file that cannot hold it."""
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
        """Lend the connection to this thread alone; commit at the end of the block, roll back on an exception."""
        with self._lock:
            connection = self._connection()
            with connection:
                yield connection

    def _connection(self) -> sqlite3.Connection:
        """Return this process's connection: SQLite's connections do not survive a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._opened = (os.getpid(), connection)
            weakref.finalize(self, connection.close)
            connection.execute("PRAGMA journal_mode = WAL")  # readers need not wait for a writer
            connection.execute("PRAGMA synchronous = NORMAL")  # no wait for the disk at each commit
        return self._opened[1]


class ActorRows:
    """Reads and writes rows that an actor stores on the driver's machine (see ras_agent.tools.spread.cluster)."""

    near = False

    def __init__(self, name: str) -> None:
        """Find the actor. Raises SettingsError if it does not exist."""
        self._ray = ray_library()
        try:
            self._actor = self._ray.get_actor(name, namespace=NAMESPACE)
        except ValueError as error:
            raise SettingsError(f"there is no actor {name!r} on this Ray cluster: {error}; name a file") from error

    def get(self, key: str) -> tuple[str, ...] | None:
        row: tuple[str, ...] | None = self._ray.get(self._actor.get.remote(key))
        return row

    def put(self, row: Sequence[str]) -> None:
        self._ray.get(self._actor.put.remote(tuple(row)))  # on the disk before anybody goes on

    def __len__(self) -> int:
        return int(self._ray.get(self._actor.count.remote()))


def ray_library() -> Any:
    """Return the module `ray`. Raises MissingExtra."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("--engine ray", "ray") from error
    return ray
