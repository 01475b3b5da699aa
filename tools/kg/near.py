"""Nearest neighbours above a cosine, as lists of bounded length: by blocks of products, or through FAISS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.tools.index.vector_index import VectorSettings, empty_index
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.kg.sparse_rows import SparseRows

__all__ = ["Cells", "NearLists", "approximate_cells", "capped", "cells_of", "touching"]

NearLists = SparseRows
"""For each entity its nearest (columns) and their cosines (values, float32); rows hold a bounded number."""

_ROWS, _COLUMNS = 512, 16_384  # a block of products is 32 MB
_HELD = 4_000_000  # candidates held before the lists are cut to their length
# Products of the same two vectors differ in the last bits from block to block; in steps of this they do not.
_STEP = np.float32(2**-10)


class Cells(NamedTuple):
    """Directed candidates: `columns[i]` is near `rows[i]`."""

    rows: Ints
    columns: Ints
    cosines: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> Self:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Self:
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.cosines for part in parts]),
        )

    def at(self, places: Ints) -> Cells:
        return Cells(self.rows[places], self.columns[places], self.cosines[places])

    def both_ways(self) -> Cells:
        return Cells.joined([self, Cells(self.columns, self.rows, self.cosines)])


def cells_of(lists: NearLists) -> Cells:
    """The lists, flat."""
    rows = np.repeat(np.arange(lists.shape[0]), lists.row_sizes())
    return Cells(rows, lists.columns.astype(np.int64), lists.values)


def capped(cells: Cells, size: int, longest: int) -> NearLists:
    """Lists of `size` entities, each of its `longest` nearest, ties by number; repeated cells count once."""
    _, first = np.unique(cells.rows * max(size, 1) + cells.columns, return_index=True)  # also sorts them
    cells = cells.at(first)
    nearest = np.lexsort((cells.columns, -cells.cosines, cells.rows))
    starts = np.searchsorted(cells.rows, cells.rows)
    keep = np.empty(len(nearest), dtype=bool)
    keep[nearest] = np.arange(len(nearest)) - starts < longest  # rows keep their places among the nearest
    cells = cells.at(np.flatnonzero(keep))
    return SparseRows.sorted(cells.rows, cells.columns, cells.cosines, (size, size))


def touching(vectors: Vectors, classes: Ints, fresh: Ints, threshold: float, longest: int) -> NearLists:
    """Exact lists from all pairs of which one is in `fresh` (ascending); complete for the rows in `fresh`.

    vectors (N, d) of unit length; only entities of equal, not negative `classes` (N,) are paired.
    """
    held, count, limit = [Cells.none()], 0, _HELD
    for cells in _pairs(vectors, classes, fresh, threshold):
        held.append(cells.both_ways())
        count += 2 * len(cells.rows)
        if count > limit:  # cutting early loses nothing: who is not among the nearest so far is not at the end
            held = [cells_of(capped(Cells.joined(held), len(vectors), longest))]
            count = len(held[0].rows)
            limit = max(_HELD, 2 * count)
    return capped(Cells.joined(held), len(vectors), longest)


def approximate_cells(
    vectors: Vectors, classes: Ints, threshold: float, longest: int, kind: Literal["hnsw", "ivf"]
) -> Cells:
    """Candidates from an approximate index, in time near to linear. Raises MissingExtra without FAISS."""
    index = _faiss_index(vectors, kind)
    parts = [Cells.none()]
    for start in range(0, len(vectors), _ROWS):
        block = np.ascontiguousarray(vectors[start : start + _ROWS], dtype=np.float32)
        # twice as many as are wanted, for names of other figures may stand among them
        products, numbers = index.search(block, min(2 * longest + 1, len(vectors)))
        rows = np.broadcast_to(np.arange(start, start + len(block))[:, None], numbers.shape)
        real = (numbers >= 0) & (numbers != rows)
        parts.append(_above(Cells(rows[real], numbers[real], products[real]), classes, threshold).both_ways())
    return Cells.joined(parts)


def _pairs(vectors: Vectors, classes: Ints, fresh: Ints, threshold: float) -> Iterator[Cells]:
    """Each pair with one end in `fresh`, once."""
    others = np.setdiff1d(np.arange(len(vectors)), fresh)
    order = np.concatenate([others, fresh])  # so that what is left to compare with is one range
    ordered = np.asarray(vectors, dtype=np.float32)[order]
    least = np.float32(threshold) - _STEP
    for start in range(len(others), len(order), _ROWS):
        block = ordered[start : start + _ROWS]
        for left in (*range(0, len(others), _COLUMNS), *range(start, len(order), _COLUMNS)):
            right = min(left + _COLUMNS, len(others) if left < len(others) else len(order))
            products = block @ ordered[left:right].T  # (rows, columns)
            row, column = np.divmod(np.flatnonzero(products >= least), right - left)
            cosines = products[row, column]
            row, column = row + start, column + left
            once = (column < len(others)) | (column > row)
            yield _above(Cells(order[row[once]], order[column[once]], cosines[once]), classes, threshold)


def _above(cells: Cells, classes: Ints, threshold: float) -> Cells:
    """The cells of comparable entities whose cosine, in whole steps, reaches the threshold."""
    cosines = np.minimum(np.round(cells.cosines / _STEP) * _STEP, 1).astype(np.float32)
    same = (classes[cells.rows] == classes[cells.columns]) & (classes[cells.rows] >= 0)
    return Cells(cells.rows, cells.columns, cosines).at(
        np.flatnonzero(same & (cosines >= np.round(np.float32(threshold) / _STEP) * _STEP))
    )


def _faiss_index(vectors: Vectors, kind: Literal["hnsw", "ivf"]) -> Any:
    index = empty_index(vectors.shape, VectorSettings(kind, links=16, effort=64))
    if not index.is_trained:
        sample = vectors[:: max(len(vectors) // (64 * index.nlist), 1)]
        index.train(np.ascontiguousarray(sample, dtype=np.float32))
    for start in range(0, len(vectors), _COLUMNS):
        index.add(np.ascontiguousarray(vectors[start : start + _COLUMNS], dtype=np.float32))
    return index
