"""Defines the database of a store: short readings, one writer at a time, and a compaction that leaves no deleted rows.

Statements mark their parameters with `?`. Blobs are bytes, whole numbers have up to 63 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ras_agent.errors import IngestError, StoreError

_FEW = 500
"""Rows that are read at once, and parameters of one statement: fewer new objects than set off a search for garbage."""


class Locked(StoreError):
    """Raised when another process holds a lock for longer than the patience of the caller."""


class Connection(Protocol):
    """Connection in a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement and return its cursor, which has `fetchone`, `fetchmany`, `fetchall`, and yields rows."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each of `rows`."""
        ...


class Database(Protocol):
    """Database that holds one index, or caches. It may be used from several threads at once."""

    @property
    def where(self) -> str:
        """Return its place, for messages."""
        ...

    @property
    def remedy(self) -> str:
        """Return the remedy for a damaged database, for messages."""
        ...

    @property
    def rollbacks(self) -> int:
        """Return how many transactions of this object were taken back."""
        ...

    def reading(self, *, once: bool = False) -> AbstractContextManager[Connection]:
        """Lend a connection that sees the database at one moment in all statements.

        Within `writing` of the same thread it is that connection, which sees uncommitted changes. once: for a
        single statement, which sees one moment without a transaction, so that a server is asked once.
        """
        ...

    def writing(self, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """Lend a connection in a transaction, after those of other writers; the end of the block commits it.

        Blocks may lie in one another: the outermost one commits, and an error in any of them takes back all. durable:
        False to wait for no disk, so that a crash of the machine may take back the last commits; a kill does not.
        """
        ...

    def is_writing(self) -> bool:
        """Return whether this thread is within `writing`."""
        ...

    def named_errors(self) -> AbstractContextManager[None]:
        """Add the index and the remedy to errors of the database within the block."""
        ...

    def alone(self, what: str = "index") -> AbstractContextManager[None]:
        """Be the only one that indexes files here, or that writes what = "graph".

        Raises IngestError while another process or thread is.
        """
        ...

    def state(self) -> object:
        """Return a mark that changes with any other connection's commit, and when the database is created again.

        Raises IndexNotFound if it is gone.
        """
        ...

    def compact(self) -> bool:
        """Leave no bytes of deleted rows; return False if readers must end first. Raises IndexMismatch for damage."""
        ...

    def check(self, tables: Sequence[str] = ()) -> None:
        """Read all of the database, or of some tables, and their indexes. Raises IndexMismatch if it is damaged."""
        ...

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        ...


def parts_of(values: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield values in parts that fit into a statement, each after its marks, as `IN (...)` takes them."""
    listed = list(values)
    for start in range(0, len(listed), _FEW):
        part = listed[start : start + _FEW]
        marks = ", ".join("?" * len(part))
        yield marks, part


def read_columns(cursor: Any, into: Sequence[list[Any]]) -> None:
    """Append all rows to the lists of their columns.

    Few rows are held at a time: many thousands of them would set off Python's search for garbage again and again, which
    takes as long as reading them.
    """
    while rows := cursor.fetchmany(_FEW):
        for column, values in zip(into, zip(*rows, strict=True), strict=True):
            column.extend(values)


def busy(where: object, what: str) -> IngestError:
    """Return the error of a command that finds another one at work."""
    return IngestError(
        f"{where}: another run is writing this {what}; wait for it to end"
    )
