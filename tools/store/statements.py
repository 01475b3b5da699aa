"""Describes the connection on which the rows of a store run SQL, and runs statements with many parameters and rows.

Statements mark their parameters with `?`. Blobs are bytes, and integers have up to 63 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

PARAMETERS = 500
"""How many parameters a statement has, and how many rows are read at once: few enough not to trigger garbage
collection."""


class Connection(Protocol):
    """Describes a connection inside a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement and return its cursor, which has `fetchone`, `fetchmany` and `fetchall`, and yields rows."""
        ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each of `rows`."""
        ...


class Rows:
    """Runs SQL on a connection for some tables. Each subclass reads and writes the rows of one concern, such as
    passages.
    """

    def __init__(self, connection: Connection) -> None:
        """Take the connection."""
        self._run = connection.execute
        self._connection = connection

    def _run_for_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def leave_remains(self) -> None:
        """Record that rows were deleted whose bytes remain until the database is compacted."""
        self._run("UPDATE index_state SET erasures = erasures + 1")

    def advance(self, *, passages: int = 0, cells: int = 0) -> None:
        """Count a commit, and add to the numbers of passages and cells."""
        query = """UPDATE index_state
            SET revision = revision + 1, cells = cells + ?, passages = passages + ?"""
        self._run(query, (cells, passages))

    def _value(self, query: str, *values: object) -> Any:
        """Return the first column of the first row, or None if there is no row."""
        row = self._run(query, values).fetchone()
        return row[0] if row else None

    def _column(self, query: str, *values: object) -> list[Any]:
        """Return the first column of all rows."""
        rows = self._run(query, values).fetchall()
        return [value for (value,) in rows]

    def _columns(self, query: str, *values: object, width: int) -> list[list[Any]]:
        """Return the columns of all rows, of which there are `width`.

        Only a few rows are held at a time: many thousands of them would trigger Python's garbage collection again and
        again, which takes as long as reading them.
        """
        columns: list[list[Any]] = [[] for _ in range(width)]
        cursor = self._run(query, values)
        while rows := cursor.fetchmany(PARAMETERS):
            for column, part in zip(columns, zip(*rows, strict=True), strict=True):
                column.extend(part)
        return columns

    def _having(self, query: str, values: Iterable[object]) -> Iterator[Any]:
        """Yield the rows of a query that ends in a column, in which they have one of the values."""
        for marks, part in _parts_of(values):
            yield from self._run(f"{query} IN ({marks})", part).fetchall()

    def _delete(self, rows: str, values: Iterable[object]) -> int:
        """Delete the rows that have one of the values in a column; return how many there were.

        Args:
            rows: a table and a condition that ends in the column.
        """
        count = 0
        for marks, part in _parts_of(values):
            count += self._run(f"DELETE FROM {rows} IN ({marks})", part).rowcount
        return count


def _parts_of(values: Iterable[object]) -> Iterator[tuple[str, list[object]]]:
    """Yield values in parts that fit into one statement, each part after its parameter marks."""
    listed = list(values)
    for start in range(0, len(listed), PARAMETERS):
        part = listed[start : start + PARAMETERS]
        yield ", ".join("?" * len(part)), part
