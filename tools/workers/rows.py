"""Stores rows of text under a key for many threads, processes and machines, whole after any of them is killed."""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ras_agent.errors import MissingExtra, SettingsError, StoreError

T = TypeVar("T")

NAMESPACE = "ras-agent"
"""The namespace of our actors on a Ray cluster."""
REMOTE = "ray:"
"""What the place of rows begins with if an actor stores them."""

_PATIENCE = 30.0
_LOCKED = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
# files that stayed locked as long as a call waits, and were not used since: no further call waits
_known_locked: set[Path] = set()


class Rows(Protocol):
    """Table of texts whose first column is the key."""

    @property
    def is_local(self) -> bool:
        """Return whether `get` takes some ten microseconds, less than handing it to a thread would."""
        ...

    def get(self, key: str) -> tuple[str, ...] | None:
        """Return the row under a key, or None. Raises StoreError."""
        ...

    def put(self, row: Sequence[str]) -> None:
        """Store a row; the first one for a key stays. Raises StoreError."""
        ...

    def __len__(self) -> int: ...


def read_row(rows: Rows, key: str, parse: Callable[[tuple[str, ...]], T]) -> T | None:
    """Return what `parse` makes of the row under a key, None without one. Raises StoreError.

    A row of which `parse` raises, because it is damaged or of a later version, counts as none: a warning says so once a
    file. It stays, for the later version.
    """
    row = rows.get(key)
    try:
        return None if row is None else parse(row)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _warn_of_unreadable(str(getattr(rows, "path", "the cache")))
        return None


@cache
def _warn_of_unreadable(place: str) -> None:
    warnings.warn(
        f"{place} holds what this version cannot read, damaged or of a later version; it is made anew each time: name "
        "another file if that costs too much",
        RuntimeWarning,
        stacklevel=4,
    )


def open_rows(place: str | Path, columns: Sequence[str], holds: str, patience: float = _PATIENCE) -> Rows:
    """Open the rows in a file, or behind "ray:NAME", an actor that stores them for a Ray cluster.

    columns: the key's first. holds: the name of the table, and of what is stored, for errors. patience: see FileRows.
    Raises SettingsError for a file of another kind, or an actor that does not exist.
    """
    if str(place).startswith(REMOTE):
        return ActorRows(str(place).removeprefix(REMOTE))
    return FileRows(place, columns, holds, patience)


class FileRows:
    """Table in an SQLite file, which is made if it does not exist.

    What was put is there after the process is killed; only a crash of the machine may cost the last few rows. A file
    that another process has locked is waited for `patience` seconds in all: after that, calls fail at once until one
    succeeds.
    """

    def __init__(self, path: str | Path, columns: Sequence[str], holds: str, patience: float = _PATIENCE) -> None:
        """Open the table. Raises SettingsError for a file that cannot hold it."""
        self.path = Path(path)
        self._place = self.path.absolute()
        self._holds, self._patience = holds, patience
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        self._waits = patience
        key, *others = columns
        table = ", ".join([f"{key} TEXT PRIMARY KEY", *(f"{name} TEXT NOT NULL" for name in others)])
        self._make = f"CREATE TABLE IF NOT EXISTS {holds} ({table})"
        self._get = f"SELECT {', '.join(columns)} FROM {holds} WHERE {key} = ?"
        self._insert_statement = f"INSERT OR IGNORE INTO {holds} VALUES ({', '.join('?' * len(columns))})"
        self._count = f"SELECT COUNT(*) FROM {holds}"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._transaction():
                pass
        except sqlite3.Error as error:
            if not _is_locked(error):  # a locked file may be free by the first call
                raise SettingsError(f"cannot keep {holds} in {self.path}: {error}; name another file") from error

    @property
    def is_local(self) -> bool:
        return self._place not in _known_locked and not self._lock.locked()

    def get(self, key: str) -> tuple[str, ...] | None:
        with self._reported(), self._transaction() as connection:
            row: tuple[str, ...] | None = connection.execute(self._get, (key,)).fetchone()
        return row

    def put(self, row: Sequence[str]) -> None:
        with self._reported(), self._transaction() as connection:
            connection.execute(self._insert_statement, tuple(row))

    def __len__(self) -> int:
        with self._reported(), self._transaction() as connection:
            (count,) = connection.execute(self._count).fetchone()
        return int(count)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn an error of SQLite into a StoreError that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            remedy = "name another file"
            if _is_locked(error):
                remedy = "wait for the process that uses it, or name another file"
            elif error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                remedy = "make room on the disk"
            raise StoreError(f"cannot keep {self._holds} in {self.path}: {error}; {remedy}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection to this thread alone; commit at the end of the block, roll back on an exception."""
        with self._lock:
            try:
                connection = self._connection(0.0 if self._place in _known_locked else self._patience)
                with connection:
                    yield connection
            except sqlite3.Error as error:
                if _is_locked(error):
                    _known_locked.add(self._place)
                raise
            _known_locked.discard(self._place)

    def _connection(self, patience: float) -> sqlite3.Connection:
        """Return this process's connection, which waits so long for a locked file."""
        if self._opened is None or self._opened[0] != os.getpid():  # SQLite's connections do not survive a fork
            connection = sqlite3.connect(self.path, timeout=patience, check_same_thread=False)
            # what is not UTF-8 is found out where the row is parsed
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            try:
                connection.execute("PRAGMA journal_mode = WAL")  # readers need not wait for a writer
                connection.execute("PRAGMA synchronous = NORMAL")  # no wait for the disk at each commit
                connection.execute(self._make)
            except BaseException:
                connection.close()
                raise
            weakref.finalize(self, connection.close)
            self._opened, self._waits = (os.getpid(), connection), patience
        if self._waits != patience:
            self._opened[1].execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
            self._waits = patience
        return self._opened[1]


def _is_locked(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


class ActorRows:
    """Table that an actor stores on the driver's machine (see ras_agent.tools.workers.cluster)."""

    is_local = False

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
