"""Caches replies of models by keys, for many threads and processes. A cache stays valid if any of them is killed.

A cache may be deleted at any time; the models are then called again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ras_agent.config.address import Address
from ras_agent.contracts.errors import (
    IndexExists,
    IndexMismatch,
    IndexNotFound,
    SettingsError,
    StoreError,
)
from ras_agent.tools.store.database import Database, Locked
from ras_agent.tools.store.postgres import PostgresDatabase, SchemaUse, make_tables
from ras_agent.tools.store.schema import CACHE
from ras_agent.tools.store.sqlite import FileUse, SqliteDatabase
from ras_agent.tools.store.transaction import Transaction

T = TypeVar("T")

PATIENCE = 30.0
"""How many seconds a call waits for a locked file."""
_FILE = FileUse(
    "",
    "name another file, or delete this one if it is a cache: what it held is asked for anew",
    wait=PATIENCE,
    synchronous="NORMAL",  # no wait for the disk at each commit
    tables=CACHE,
)
_SCHEMA = SchemaUse(
    "cache",
    "cache",
    "name another schema, such as ?schema=replies",
    "the next command makes it",
)
# files that stayed locked for as long as a call waits, and were not written since: further calls do not wait
_known_locked: set[Path | None] = set()


class Cache(Protocol):
    """Describes a store of values under text keys."""

    @property
    def is_local(self) -> bool:
        """Return whether `get` takes only some ten microseconds, less than passing it to a thread would."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it has no value. Raises StoreError."""
        ...

    def put(self, key: str, value: bytes, about: str = "") -> None:
        """Store a value with a note for human readers. If the key has a value already, that one stays. Raises
        StoreError.
        """
        ...

    def entries(self) -> Sequence[tuple[str, bytes]]:
        """Return all values, each with its note for human readers in front. Raises StoreError."""
        ...

    def __len__(self) -> int: ...


class StoredCache:
    """Stores values of one kind in a SQLite file or a PostgreSQL schema, which is created if it does not exist.

    A stored value survives the process; only a crash of the machine may lose the last few values of a file. If
    another process has locked the file, calls wait for it for `patience` seconds in all; after that, they fail at
    once until one succeeds.
    """

    def __init__(
        self, place: str | Path | Address, kind: str, patience: float = PATIENCE
    ) -> None:
        """Open the cache. Raises SettingsError for a place that cannot hold a cache.

        Args:
            place: a file, or the address of a PostgreSQL schema.
            kind: names its content, such as "replies".
            patience: the seconds that calls wait for a locked file.
        """
        self.place = place
        self.kind = kind
        self._patience = patience
        self._file = None if isinstance(place, Address) else Path(place).absolute()
        try:
            with self._named():
                self._database = _open(place)
            len(self)
        except Locked:  # a locked file may be free by the first call
            pass
        except StoreError as error:
            raise SettingsError(str(error)) from error

    @property
    def is_local(self) -> bool:
        """Return whether the cache is a file that is not locked."""
        return self._file is not None and self._file not in _known_locked

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it has no value. Raises StoreError."""
        entry = self.entry(key)
        return entry[1] if entry else None

    def entry(self, key: str) -> tuple[str, bytes] | None:
        """Return the note for human readers and the value of a key; None if it has no value. Raises StoreError."""
        with self._reading() as connection:
            query = "SELECT about, value FROM cache WHERE kind = ? AND key = ?"
            row = connection.execute(query, (self.kind, key)).fetchone()
        return (row[0], row[1]) if row else None

    def put(self, key: str, value: bytes, about: str = "") -> None:
        """Store a value with a note for human readers. If the key has a value already, that one stays. Raises
        StoreError.
        """
        with self._waiting(), self._database.writing() as connection:
            insert = "INSERT INTO cache VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
            connection.execute(insert, (self.kind, key, about, value))
        # a value that was read shows nothing: a file can be read while another process holds its lock for writing
        _known_locked.discard(self._file)

    def entries(self) -> Sequence[tuple[str, bytes]]:
        """Return all values, each with its note for human readers in front. Raises StoreError."""
        with self._reading() as connection:
            query = "SELECT about, value FROM cache WHERE kind = ? ORDER BY key"
            return [
                (about, value)
                for about, value in connection.execute(query, (self.kind,)).fetchall()
            ]

    def __len__(self) -> int:
        with self._reading() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM cache WHERE kind = ?", (self.kind,)
            ).fetchone()
        return int(count)

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self._waiting(), self._database.reading() as connection:
            yield connection

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Let the block wait for a locked file, unless an earlier call waited in vain."""
        if isinstance(self._database, SqliteDatabase):
            self._database.wait = 0.0 if self._file in _known_locked else self._patience
        with self._named():
            yield

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add to errors the kind of value that the cache stores."""
        try:
            yield
        except Locked as error:
            _known_locked.add(self._file)
            raise Locked(
                f"cannot store {self.kind}: {error}, or name another file"
            ) from error
        except (StoreError, IndexMismatch, IndexNotFound, IndexExists) as error:
            raise StoreError(f"cannot store {self.kind}: {error}") from error


def _open(place: str | Path | Address) -> Database:
    if isinstance(place, Address):
        make_tables(
            place, [(statement, ()) for statement in CACHE], _SCHEMA, anew=False
        )
        return PostgresDatabase(place, _SCHEMA)
    try:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{place}: {error.strerror}; name another file") from error
    return SqliteDatabase(Path(place), _FILE)


def read_value(stored: Cache, key: str, parse: Callable[[Any], T]) -> T | None:
    """Return the parsed value of a key; None if it has no readable value. Raises StoreError.

    A value that `parse` cannot read, since it is damaged or of a later version, counts as missing; a warning is
    given once per cache. The value is kept for the later version.
    """
    value = stored.get(key)
    try:
        return None if value is None else parse(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _warn_of_unreadable(str(getattr(stored, "place", "the cache")))
        return None


@cache
def _warn_of_unreadable(place: str) -> None:
    warnings.warn(
        f"{place} holds values that this version cannot read, damaged or of a later version; they are computed again each "
        "time: name another cache if that costs too much",
        RuntimeWarning,
        stacklevel=4,
    )
