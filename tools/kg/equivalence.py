"""Equivalence edges: pairs of entities whose vectors nearly agree, no entity in more than a few.

Each entity's nearest neighbours above a cosine are searched by blocks of products, or through FAISS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.errors import SettingsError
from ras_agent.text.words import MONTHS
from ras_agent.tools.index.vector_index import VectorSettings, empty_index, on_gpus
from ras_agent.tools.kg.arrays import SparseRows, Vectors

NearLists = SparseRows
"""Lists for each entity the nearest others (columns) and their cosines (values, float32), a bounded number."""

_ROWS, _COLUMNS = 512, 16_384  # a block of products is 32 MB
_HELD = 4_000_000  # candidates held before the lists are cut to their length
# Products of the same two vectors differ in the last bits from block to block; in steps of this they do not.
_STEP = np.float32(2**-10)
# Exact search of so many takes about a minute on two cores, no longer than an approximate index takes to build, and
# does not depend on the order in which entities came.
_EXACT_UP_TO = 100_000
_MONTHS = frozenset(MONTHS)
_FIGURES, _WORDS = re.compile(r"\d+"), re.compile(r"[a-z]+")
_DATED = re.compile("|".join((r"\d", *MONTHS)))


IMPORTED = "imported"
"""The kind of equivalences that came with an imported graph."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Sets when two entities are equivalent: their cosine is at least `threshold`, each is among the other's nearest.

    threshold: depends on the embedder (0.8 in papers is for ColBERTv2). neighbours: the most equivalences an entity
    can have. kind: how they are searched; "auto" is "exact" up to 100,000 entities and "hnsw" beyond; or "ivf"; or
    "imported", none but those that an imported graph has, in the directions that it has them.
    """

    threshold: float = 0.8
    neighbours: int = 10
    kind: str = "auto"

    def __post_init__(self) -> None:
        known = ("auto", "exact", "hnsw", "ivf", IMPORTED)
        if not 0 < self.threshold <= 1 or self.neighbours < 0 or self.kind not in known:
            raise SettingsError(
                f"equivalence needs a threshold above 0 and up to 1, neighbours from 0 on, and as kind one of "
                f"{', '.join(known)}; got {self.threshold}, {self.neighbours}, {self.kind!r}"
            )


class Pairs(NamedTuple):
    """Holds pairs of entities (P, 2) int32, the lesser number first, each pair once; their cosines (P,) float32."""

    entities: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]


def comparable(names: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return a class for each name; only names of one class can be equivalent, and none of a negative class.

    Encoders give "2016 World Series" and "2017 World Series" nearly the same vector, so names must agree in their
    figures and months. A name without a letter consists of figures alone, and is equivalent to none.
    """
    plain = _figures("name")  # the class of most: those are told by one search
    return np.array(
        [plain if name[:1].isalpha() and not _DATED.search(name.lower()) else _figures(name) for name in names],
        dtype=np.int64,
    )


def near_lists(vectors: Vectors, classes: npt.NDArray[np.int64], how: Equivalence) -> NearLists:
    """Return each entity's nearest above the threshold; vectors (N, d) of unit length, classes as by `comparable`."""
    every = np.arange(len(vectors))
    if how.neighbours == 0 or how.kind == IMPORTED or len(vectors) < 2:
        return capped(Cells.none(), len(vectors), how.neighbours)
    if how.kind == "exact" or (how.kind == "auto" and len(vectors) <= _EXACT_UP_TO):
        return touching(vectors, classes, every, how.threshold, how.neighbours)
    cells = approximate_cells(vectors, classes, how.threshold, how.neighbours, "ivf" if how.kind == "ivf" else "hnsw")
    return capped(cells, len(vectors), how.neighbours)


def near_lists_after(
    before: NearLists,
    came_from: npt.NDArray[np.int64],
    vectors: Vectors,
    classes: npt.NDArray[np.int64],
    how: Equivalence,
) -> NearLists:
    """Update the lists after entities were added and removed, comparing only the added ones with all.

    came_from: (N,) the number that each present entity had in `before`, -1 for a new one. If `before` was exact, the
    result equals that of `near_lists`.
    """
    now = np.full(before.shape[0], -1, dtype=np.int64)
    old = np.flatnonzero(came_from >= 0)
    now[came_from[old]] = old
    cells = cells_of(before)
    moved = Cells(now[cells.rows], now[cells.columns], cells.cosines)
    alive = (moved.rows >= 0) & (moved.columns >= 0)
    # a list that was full and lost an entry may have other candidates, which had been crowded out
    lost = (moved.rows >= 0) & (moved.columns < 0) & (before.row_sizes() >= how.neighbours)[cells.rows]
    is_fresh = came_from < 0
    is_fresh[moved.rows[lost]] = True
    fresh = np.flatnonzero(is_fresh)
    if 2 * len(fresh) > len(vectors):
        return near_lists(vectors, classes, how)
    found = cells_of(touching(vectors, classes, fresh, how.threshold, how.neighbours))
    return capped(Cells.joined([moved.at(np.flatnonzero(alive)), found]), len(vectors), how.neighbours)


def mutual(lists: SparseRows) -> Pairs:
    """Return the pairs in which each entity is in the other's list."""
    cells = cells_of(lists)
    size = max(lists.width, 1)
    one_way = np.flatnonzero(cells.rows < cells.columns)
    there, back = cells.rows * size + cells.columns, cells.columns[one_way] * size + cells.rows[one_way]
    at = np.searchsorted(there, back)  # cells ascend
    keep = one_way[there[np.minimum(at, max(len(there) - 1, 0))] == back]
    entities = np.stack([cells.rows[keep], cells.columns[keep]], axis=1).astype(np.int32)
    return Pairs(entities, cells.cosines[keep])


def _figures(name: str) -> int:
    if not any(map(str.isalpha, name)):
        return -1
    figures = " ".join(sorted(_FIGURES.findall(name)) + sorted(_MONTHS.intersection(_WORDS.findall(name.lower()))))
    return int.from_bytes(blake2b(figures.encode(), digest_size=7).digest(), "little")


class Cells(NamedTuple):
    """Holds directed candidates: `columns[i]` is near `rows[i]`."""

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
    """Return the lists as cells."""
    rows = np.repeat(np.arange(lists.shape[0]), lists.row_sizes())
    return Cells(rows, lists.columns.astype(np.int64), lists.values)


def capped(cells: Cells, size: int, longest: int) -> NearLists:
    """Return lists for `size` entities, each of the `longest` nearest, ties by number; repeated cells count once."""
    _, first = np.unique(cells.rows * max(size, 1) + cells.columns, return_index=True)  # also sorts them
    cells = cells.at(first)
    nearest = np.lexsort((cells.columns, -cells.cosines, cells.rows))
    starts = np.searchsorted(cells.rows, cells.rows)
    keep = np.empty(len(nearest), dtype=bool)
    keep[nearest] = np.arange(len(nearest)) - starts < longest  # rows keep their places among the nearest
    cells = cells.at(np.flatnonzero(keep))
    return SparseRows.sorted(cells.rows, cells.columns, cells.cosines, (size, size))


def touching(vectors: Vectors, classes: Ints, fresh: Ints, threshold: float, longest: int) -> NearLists:
    """Return exact lists from all pairs with one end in `fresh` (ascending); complete for the rows in `fresh`.

    vectors (N, d) of unit length; only entities of equal, not negative `classes` (N,) are paired.
    """
    held, count, limit = [Cells.none()], 0, _HELD
    for cells in _pairs(vectors, classes, fresh, threshold):
        held.append(cells.both_ways())
        count += 2 * len(cells.rows)
        if count > limit:  # cutting early loses nothing: what is not among the nearest so far is not at the end
            held = [cells_of(capped(Cells.joined(held), len(vectors), longest))]
            count = len(held[0].rows)
            limit = max(_HELD, 2 * count)
    return capped(Cells.joined(held), len(vectors), longest)


def approximate_cells(
    vectors: Vectors, classes: Ints, threshold: float, longest: int, kind: Literal["hnsw", "ivf"]
) -> Cells:
    """Return candidates from an approximate index, in nearly linear time. Raises MissingExtra without FAISS."""
    index = _faiss_index(vectors, kind)
    parts = [Cells.none()]
    for start in range(0, len(vectors), _ROWS):
        block = np.ascontiguousarray(vectors[start : start + _ROWS], dtype=np.float32)
        # twice as many as are wanted, because names with other figures may be among them
        products, numbers = index.search(block, min(2 * longest + 1, len(vectors)))
        rows = np.broadcast_to(np.arange(start, start + len(block))[:, None], numbers.shape)
        real = (numbers >= 0) & (numbers != rows)
        parts.append(_above(Cells(rows[real], numbers[real], products[real]), classes, threshold).both_ways())
    return Cells.joined(parts)


def _pairs(vectors: Vectors, classes: Ints, fresh: Ints, threshold: float) -> Iterator[Cells]:
    """Yield each pair with one end in `fresh`, once."""
    count, least = len(vectors), np.float32(threshold) - _STEP
    is_fresh = np.zeros(count, dtype=np.bool_)
    is_fresh[fresh] = True
    for left in range(0, count, _COLUMNS):
        columns = np.arange(left, min(left + _COLUMNS, count))
        others = np.asarray(vectors[left : left + _COLUMNS], dtype=np.float32)  # a block at a time, since all are large
        for start in range(0, len(fresh), _ROWS):
            rows = fresh[start : start + _ROWS]
            # of two that are fresh, the lesser is the row
            wanted = slice(max(rows[0] + 1 - left, 0) if is_fresh[columns].all() else 0, None)
            products = np.asarray(vectors[rows], dtype=np.float32) @ others[wanted].T
            row, column = np.divmod(np.flatnonzero(products >= least), max(products.shape[1], 1))
            cells = Cells(rows[row], columns[wanted][column], products[row, column])
            once = ~is_fresh[cells.columns] | (cells.columns > cells.rows)
            yield _above(cells.at(np.flatnonzero(once)), classes, threshold)


def _above(cells: Cells, classes: Ints, threshold: float) -> Cells:
    """Return the cells of comparable entities whose cosine, in whole steps, reaches the threshold."""
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
    return on_gpus(index)
