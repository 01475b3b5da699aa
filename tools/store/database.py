"""Describes the database of a store: short reads, one writer at a time, and a compaction that leaves no deleted rows.

Statements mark their parameters with `?`. Blobs are bytes, and integers have up to 63 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ras_agent.errors import IngestError, StoreError

_FEW = 500
"""How many rows are read at once, and how many parameters a statement has: few enough not to trigger garbage
collection."""


class Locked(StoreError):
    """Reports that another process holds a lock for longer than the caller waits."""


class Connection(Protocol):
    """Describes a connection inside a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement and return its cursor, which has `fetchone`, `fetchmany` and `fetchall`, and yields rows."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each of `rows`."""
        ...


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

    def reading(self, *, once: bool = False) -> AbstractContextManager[Connection]:
        """Return a context manager with a connection whose statements all see the same state of the database.

        Within `writing` of the same thread it is the writing connection, which sees uncommitted changes.

        Args:
            once: whether the block runs a single statement, which needs no transaction, so that a server is called
                only once.
        """
        ...

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """Return a context manager with a connection in a transaction, which waits for other writers. Its end commits.

        Blocks may be nested: the outermost one commits, and an error in any of them rolls back everything.

        Args:
            durable: False to commit without waiting for the disk, so that a crash of the machine, but not a kill,
                may lose the last commits.
        """
        ...

    def is_writing(self) -> bool:
        """Return whether this thread is inside `writing`."""
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


def parts_of(values: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield values in parts that fit into one statement, each after its parameter marks, for use in `IN (...)`."""
    listed = list(values)
    for start in range(0, len(listed), _FEW):
        part = listed[start : start + _FEW]
        marks = ", ".join("?" * len(part))
        yield marks, part


def read_columns(cursor: Any, into: Sequence[list[Any]]) -> None:
    """Append the values of all rows to the lists of their columns.

    Only a few rows are held at a time: many thousands of them would trigger Python's garbage collection again and
    again, which takes as long as reading them.
    """
    while rows := cursor.fetchmany(_FEW):
        for column, values in zip(into, zip(*rows, strict=True), strict=True):
            column.extend(values)


def busy(where: object, what: str) -> IngestError:
    """Return the error for a command that finds another one writing.

    Args:
        where: the path or address of the index.
        what: "index" or "graph".
    """
    return IngestError(
        f"{where}: another run is writing this {what}; wait for it to end"
    )
