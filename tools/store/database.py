"""Describes the database of a store: short reads, one writer at a time, and a compaction that leaves no deleted rows.

A driver is a module with such a database, and a plug-in of the kind "store".
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock, get_ident
from typing import Any, Protocol

from ras_agent.config.address import FOLDER, Address
from ras_agent.config.registry import find_a
from ras_agent.contracts.errors import IngestError, StoreError
from ras_agent.tools.store.transaction import Transaction


class Locked(StoreError):
    """Reports that another process holds a lock for longer than the caller waits."""


Statements = Iterable[tuple[str, tuple[object, ...]]]
"""Statements of SQL with their parameters."""


class Database(Protocol):
    """Describes a database that holds one index, or caches. It may be used from several threads at once."""

    @property
    def where(self) -> str:
        """Return the path or address of the database, for messages."""
        ...

    @property
    def remedy(self) -> str:
        """Return the remedy for a damaged database, for messages."""
        ...

    @property
    def rollbacks(self) -> int:
        """Return how many transactions of this object were rolled back."""
        ...

    def reading(self, *, once: bool = False) -> AbstractContextManager[Transaction]:
        """Return a context manager with a transaction whose reads all see the same state of the database.

        Within `writing` of the same thread it is that transaction, which sees uncommitted changes.

        Args:
            once: whether the block reads once, which needs no transaction, so that a server is called only once.
        """
        ...

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Return a context manager with a transaction, which waits for other writers. Its end commits.

        Blocks may be nested: the outermost one commits, and an error in any of them rolls back everything. A task of an
        event loop gets a StoreError while another task is within a block.

        Args:
            durable: False to commit without waiting for the disk, so that a crash of the machine, but not a kill,
                may lose the last commits.
        """
        ...

    def is_writing(self) -> bool:
        """Return whether this thread, or this task of an event loop, is inside `writing`."""
        ...

    def named_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that adds the place of the database and the remedy to its errors."""
        ...

    def alone(self, what: str = "index") -> AbstractContextManager[None]:
        """Return a context manager that holds the lock for indexing files or, with what = "graph", for writing the
        graph.

        Raises IngestError while another process or thread has it.
        """
        ...

    def state(self) -> object:
        """Return a value that changes with every commit of another connection, and when the database is created again.

        Raises IndexNotFound if the database no longer exists.
        """
        ...

    def compact(self) -> bool:
        """Remove the bytes of deleted rows. Returns False if readers must end first. Raises IndexMismatch for damage."""
        ...

    def check(self, tables: Sequence[str] = ()) -> None:
        """Read the whole database, or some tables, and their indexes. Raises IndexMismatch if it is damaged."""
        ...

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        ...


@dataclass(frozen=True, slots=True)
class Driver:
    """Describes a kind of store: how the database of an index is opened, created, and looked for."""

    open: Callable[[Any], Database]
    """Returns the database of an existing index."""
    make: Callable[[Any, Statements], None]
    """Creates a database by statements; if this fails, there is no database."""
    exists: Callable[[Any], bool]
    """Returns whether a place holds an index. Raises StoreError for a database that cannot be reached."""


def driver_of(place: Path | Address) -> Driver:
    """Return the driver of a folder, or of an address by its scheme. Raises UnknownName."""
    name = place.scheme if isinstance(place, Address) else FOLDER
    return find_a(Driver, "store", name)


def holder() -> tuple[int, int]:
    """Return the identity of a caller: its thread and, in an event loop, its task. No other caller joins its
    transactions.
    """
    task = None
    with suppress(RuntimeError):  # no event loop runs in this thread
        task = asyncio.current_task()
    return get_ident(), id(task)


class OneWriter(ABC):
    """Implements `writing` of a Database: one thread or task at a time, whose blocks may be nested."""

    def __init__(self) -> None:
        self._writers = RLock()
        self._owner: object = None
        self._written: Transaction | None = None
        self._failed = False
        self.rollbacks = 0

    @property
    @abstractmethod
    def where(self) -> str:
        """Return the path or address of the database, for messages."""

    @abstractmethod
    def named_errors(self) -> AbstractContextManager[None]:
        """Return a context manager that adds the place of the database and the remedy to its errors."""

    @abstractmethod
    def _begun(self, *, durable: bool) -> AbstractContextManager[Transaction]:
        """Return a context manager that begins a transaction and ends it, by a commit or, after an error, without."""

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Return a context manager with a transaction, which waits for other writers."""
        with self._writers, self.named_errors():
            if self._written is not None:
                if not self.is_writing():
                    # which cannot be waited for
                    raise StoreError(
                        f"{self.where}: another task of this event loop is writing: write in a thread, with "
                        "asyncio.to_thread"
                    )
                try:
                    yield self._written
                except BaseException:
                    self._failed = True
                    raise
                return
            try:
                with self._begun(durable=durable) as transaction:
                    self._written = transaction
                    self._owner = holder()
                    yield transaction
                    if self._failed:
                        raise StoreError(
                            f"{self.where}: a part of a write failed, so all of it was undone: write it again"
                        )
            except BaseException:
                self.rollbacks += 1
                raise
            finally:
                self._written = None
                self._owner = None
                self._failed = False

    def is_writing(self) -> bool:
        """Return whether this thread, or this task of an event loop, is inside `writing`."""
        return self._owner == holder()


def busy(where: object, what: str) -> IngestError:
    """Return the error for a command that finds another one writing.

    Args:
        where: the path or address of the index.
        what: "index" or "graph".
    """
    return IngestError(
        f"{where}: another run is writing this {what}; wait for it to end"
    )
