"""Stores a knowledge graph as arrays: tables of strings, sparse rows, and the arrays of a whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.contracts.errors import IndexMismatch

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Edges = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.floating[Any]]

SOURCE = np.dtype([(name, "<i4") for name in ("document", "start", "end", "note")])
"""Holds where an edge was read: a document's number, the characters `start` to `end` of its text, and the number of a
note."""

# text may hold lone surrogates, which plain UTF-8 cannot
_HOW = ("utf-8", "surrogatepass")
_AnyInts = npt.NDArray[np.integer[Any]]


class StringTable(Sequence[str]):
    """Stores numbered strings as bytes, so that a million of them open at once and take no more memory than their text.

    String `i` is bytes `starts[i]:starts[i + 1]` of `text`; the arrays may be memory-mapped.
    """

    __slots__ = ("starts", "text")

    def __init__(
        self, text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
    ) -> None:
        """Take the UTF-8 bytes of all strings, and the offset of each string, with one entry more than there are
        strings.
        """
        self.text = text
        self.starts = starts

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Store `strings` in their order."""
        # a damaged database may hold something else, which is a TypeError here
        return cls._of_encoded([str.encode(string, *_HOW) for string in strings])

    @classmethod
    def _of_encoded(cls, encoded: Sequence[bytes]) -> Self:
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return cls(text, offsets_of(sizes))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            numbers = range(len(self))[number]
            return [self[one] for one in numbers]
        number = int(number)
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no string {number}: the table has {len(self)}")
        return self._decoded(self._bytes(number), number)

    def __iter__(self) -> Iterator[str]:
        for number, string in enumerate(self.encoded()):
            yield self._decoded(string, number)

    def encoded(self) -> list[bytes]:
        """Return all strings as UTF-8, in which they sort in the same order."""
        text = self.text.tobytes()
        starts = self.starts.tolist()
        return [text[start:end] for start, end in pairwise(starts)]

    def take(self, numbers: _AnyInts) -> Self:
        """Return a table of the strings with these numbers (n,), in that order."""
        strings = self.encoded()
        return self._of_encoded([strings[number] for number in numbers.tolist()])

    def joined(self, other: StringTable) -> Self:
        """Return a table of these strings followed by those of `other`."""
        text = np.concatenate([self.text, other.text])
        moved = self.starts[-1] + other.starts[1:]
        return type(self)(text, np.concatenate([self.starts, moved]))

    def find(self, string: str) -> int | None:
        """Return the number of `string`, or None if it is missing. The strings of the table must ascend by code
        points.
        """
        wanted = string.encode(*_HOW)
        low = 0
        high = len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        if low < len(self) and self._bytes(low) == wanted:
            return low
        return None

    def _bytes(self, number: int) -> bytes:
        start = self.starts[number]
        end = self.starts[number + 1]
        return self.text[start:end].tobytes()

    def _decoded(self, string: bytes, number: int) -> str:
        try:
            return string.decode(*_HOW)
        except UnicodeDecodeError as error:
            # large files are not verified completely when they are opened
            raise IndexMismatch(
                f"string {number} of the graph is damaged ({error}): `ras-agent doctor --index INDEX` names the file"
            ) from error


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Stores a sparse matrix row by row (CSR).

    Row `r` holds `values[starts[r]:starts[r + 1]]` in the columns `columns[starts[r]:starts[r + 1]]`.
    """

    starts: npt.NDArray[np.int64]
    """(rows + 1,) int64, the offset of each row in `columns` and `values`."""
    columns: npt.NDArray[np.int32]
    """(nonzero,) int32, the column of each entry."""
    values: npt.NDArray[Any]
    """(nonzero,), the value of each entry."""
    width: int
    """The number of columns."""

    @classmethod
    def counted(
        cls,
        rows: _AnyInts,
        columns: _AnyInts,
        shape: tuple[int, int],
        counts: _AnyInts | None = None,
    ) -> Self:
        """Count how often each pair (row, column) occurs.

        Args:
            rows, columns: the pairs, (n,) each.
            shape: the numbers of rows and columns of the matrix.
            counts: (n,), how much each pair adds to its cell; by default 1.
        """
        width = max(shape[1], 1)
        flat = rows.astype(np.int64) * width + columns
        cells, inverse = np.unique(flat, return_inverse=True)
        weights = None if counts is None else counts.astype(np.float64)
        values = np.bincount(inverse, weights=weights, minlength=len(cells))
        rows, columns = np.divmod(cells, width)
        return cls.sorted(rows, columns, values.astype(np.int32), shape)

    @classmethod
    def sorted(
        cls,
        rows: _AnyInts,
        columns: _AnyInts,
        values: npt.NDArray[Any],
        shape: tuple[int, int],
    ) -> Self:
        """Build the matrix from cells that ascend by row, then column.

        Args:
            rows, columns, values: one entry for each cell.
            shape: the numbers of rows and columns of the matrix.
        """
        height, width = shape
        sizes = np.bincount(rows, minlength=height)
        return cls(offsets_of(sizes), columns.astype(np.int32), values, width)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and the number of columns."""
        return len(self.starts) - 1, self.width

    def row(self, number: int) -> npt.NDArray[np.int32]:
        """Return the columns of the entries in a row."""
        start = self.starts[number]
        end = self.starts[number + 1]
        return self.columns[start:end]

    def row_values(self, number: int) -> npt.NDArray[Any]:
        """Return the values of the entries in a row, in the order of `row`."""
        start = self.starts[number]
        end = self.starts[number + 1]
        return self.values[start:end]

    def row_sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of entries in each row, shape (rows,)."""
        return np.diff(self.starts)

    def entry_rows(self) -> Ints:
        """Return the row of each entry, shape (nonzero,)."""
        return np.repeat(np.arange(len(self.starts) - 1), self.row_sizes())

    def to_scipy(self, dtype: npt.DTypeLike = np.float32) -> csr_matrix:
        """Return the matrix as a scipy matrix (extra `graph`)."""
        from scipy.sparse import csr_matrix

        values = self.values.astype(dtype)
        return csr_matrix((values, self.columns, self.starts), shape=self.shape)


@dataclass(frozen=True, slots=True)
class KGArrays:
    """Holds a knowledge graph of N entities, R relations, E edges and D documents. The same facts give the same
    arrays.
    """

    entities: StringTable
    """The names of the entities, each in its most frequent spelling."""
    keys: StringTable
    """The canonical keys of the entities, ascending; in an exact graph, their names."""
    relations: StringTable
    """The names of the relations, by ascending `relation_keys`. The last is the equivalence relation, which no text
    states.
    """
    relation_keys: StringTable
    """The canonical keys of the relations, without the equivalence relation."""
    edges: Edges
    """(E, 3), head, relation and tail. First the facts, ascending, then the equivalences, with head < tail unless they
    were imported.
    """
    similarities: npt.NDArray[np.float32]
    """(equivalences,), the cosine of each equivalence."""
    mentions: SparseRows
    """N x D, how often each document names each entity."""
    source_starts: npt.NDArray[np.int64]
    """(E + 1,). Edge `e` was read at `sources[source_starts[e]:source_starts[e + 1]]`, an empty range for
    equivalences.
    """
    sources: npt.NDArray[np.void]
    """Where the edges were read, in records of the form `SOURCE`."""
    documents: StringTable
    """The ids of the passages that were read, ascending."""
    notes: StringTable
    """Notes about sources: "", then JSON texts, ascending; see notes.py."""
    entity_vectors: Vectors | None = None
    """(N, d), of unit length; None without an embedder."""
    relation_vectors: Vectors | None = None
    """(R, d), of unit length; None without an embedder."""
    near: SparseRows | None = None
    """N x N, the nearest entities of each entity, from which equivalences are chosen; None in a graph from a file."""
    texts: npt.NDArray[np.uint64] | None = None
    """(D,) uint64, the hash of each document's text when it was read, as in a passage index; 0 if unknown."""

    @property
    def facts(self) -> int:
        """Return the number of edges that are facts."""
        return len(self.edges) - len(self.similarities)

    def source_edges(self) -> Ints:
        """Return the edge of each record in `sources`."""
        sizes = np.diff(self.source_starts)
        return np.repeat(np.arange(len(sizes)), sizes)
