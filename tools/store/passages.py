"""Reads and writes the rows of an index in a transaction: passages, vectors, uploaded files, and the state that counts
them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.store.statements import Rows


class Row(NamedTuple):
    """Holds the columns of the table `passages`; schema.py describes them.

    The fields `keys` and `terms` are empty in a row that is read.
    """

    cell: int
    place: int
    id: str
    document: str
    title: str
    text: str
    metadata: str
    """The metadata as JSON."""
    keys: bytes = b""
    terms: bytes = b""


_READ = f"SELECT {', '.join(Row._fields[:-2])} FROM passages"


class SearchedColumns(NamedTuple):
    """Holds the columns of some passages from which the searched arrays are made, one value for each passage."""

    cells: list[int]
    places: list[int]
    keys: list[bytes]
    terms: list[bytes]


class PassageRows(Rows):
    """Reads and writes the passages of an index and their vectors."""

    def add(self, rows: Sequence[Row]) -> None:
        """Write passages to new cells."""
        marks = ", ".join("?" * len(Row._fields))
        self._run_for_each(f"INSERT INTO passages VALUES ({marks})", rows)

    def add_vectors(self, cells: Sequence[int], vectors: Floats) -> None:
        """Write the vectors (n, d) of cells."""
        listed = np.ascontiguousarray(vectors, dtype="<f4")
        data = [vector.tobytes() for vector in listed]
        rows = list(zip(cells, data, strict=True))
        self._run_for_each("INSERT INTO vectors VALUES (?, ?)", rows)

    def forget(self, cells: Collection[int], revision: int) -> None:
        """Delete the passages in the given cells with their vectors, and list these cells as dead since `revision`."""
        if cells:
            self._delete("passages WHERE cell", cells)
            dead = [(cell, revision) for cell in cells]
            self._run_for_each("INSERT INTO dead VALUES (?, ?)", dead)
            self.leave_remains()

    def dead_since(self, revision: int) -> list[int]:
        """Return the cells whose passages were deleted after `revision`."""
        return self._column("SELECT cell FROM dead WHERE revision > ?", revision)

    def having(self, column: str, values: Iterable[object]) -> Iterator[Row]:
        """Yield the passages that have one of the values in a column: "cell", "id" or "document"."""
        for row in self._having(f"{_READ} WHERE {column}", values):
            yield Row(*row)

    def all(self) -> Iterator[Row]:
        """Yield all passages, in the order of their cells."""
        for row in self._run(f"{_READ} ORDER BY cell"):
            yield Row(*row)

    def searched(self, first: int, end: int) -> SearchedColumns:
        """Return the searched columns of the passages in the cells from `first` up to, but not including, `end`."""
        query = """SELECT cell, place, keys, terms FROM passages
            WHERE cell >= ? AND cell < ? ORDER BY cell"""
        return SearchedColumns._make(self._columns(query, first, end, width=4))

    def vectors_of(self, cells: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield the vectors of the given cells, which ascend. If they are dense, vectors of cells between them are
        included.
        """
        query = "SELECT cell, data FROM vectors WHERE cell"
        if cells and cells[-1] - cells[0] < 4 * len(cells):
            yield from self._run(f"{query} BETWEEN ? AND ?", (cells[0], cells[-1]))
        else:
            yield from self._having(query, cells)


class UploadRows(Rows):
    """Reads and writes the bytes of uploaded files, by the paths that identify them in the journal."""

    def put(self, path: Path, data: bytes) -> None:
        """Store the bytes of a file. They replace those stored before."""
        self.forget(path)
        self._run("INSERT INTO uploads VALUES (?, ?)", (os.fsencode(path), data))

    def forget(self, path: Path) -> None:
        """Delete the bytes of a file, if it has any."""
        if self._delete("uploads WHERE path", [os.fsencode(path)]):
            self.leave_remains()

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file, or None."""
        query = "SELECT data FROM uploads WHERE path = ?"
        data: bytes | None = self._value(query, os.fsencode(path))
        return data


class IndexState(Rows):
    """Reads and writes the row of an index that identifies it and counts its content."""

    def version(self) -> int | None:
        """Return the version of the tables; None if there is no state."""
        version: int | None = self._value("SELECT version FROM index_state")
        return version

    def read(self) -> tuple[int, int, int, int, str]:
        """Return epoch, revision, number of cells, number of passages and manifest of an index of this version."""
        query = "SELECT epoch, revision, cells, passages, manifest FROM index_state"
        epoch, revision, cells, passages, manifest = self._run(query).fetchone()
        return epoch, revision, cells, passages, manifest

    def renumber(self, epoch: int) -> None:
        """Identify the numbering of cells by another epoch, and forget which cells are dead."""
        self._run("DELETE FROM dead")
        self._run("UPDATE index_state SET epoch = ?", (epoch,))

    def erasures(self) -> tuple[int, int]:
        """Return how many writes have deleted something, in total and up to the time when the index was last
        compacted.
        """
        query = "SELECT erasures, compacted FROM index_state"
        erasures, compacted = self._run(query).fetchone()
        return erasures, compacted

    def put_compacted(self, erasures: int) -> None:
        """Record how many writes had deleted something when the database was compacted."""
        self._run("UPDATE index_state SET compacted = ?", (erasures,))

    def last_run(self) -> int:
        """Return the number of the last run over files."""
        return int(self._value("SELECT run FROM index_state"))

    def put_run(self, run: int) -> None:
        """Record the number of the last run over files."""
        self._run("UPDATE index_state SET run = ?", (run,))
