"""Finds equivalence edges: pairs of entities whose names have nearly the same vector, at most a few for each entity.

For each entity, the nearest entities above a cosine threshold are found: among all pairs or, if there are many
entities, in clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.errors import SettingsError
from ras_agent.text.words import MONTHS
from ras_agent.tools.kg.arrays import SparseRows, Vectors
from ras_agent.tools.kg.near_pairs import Cells, all_pairs, clustered_pairs

NearLists = SparseRows
"""For each entity (row) the nearest other entities (columns) with their cosines (values, float32), a bounded number."""

_HELD = 4_000_000  # how many candidates are held before the lists are shortened to their maximum length
# Up to this many entities, an exact search takes a fraction of the time that embedding takes. Its result does not
# depend on the order in which entities were added.
_EXACT_UP_TO = 100_000
_MONTHS = frozenset(MONTHS)
_FIGURES = re.compile(r"\d+")
_WORDS = re.compile(r"[a-z]+")
_DATED = re.compile("|".join((r"\d", *MONTHS)))


IMPORTED = "imported"
"""The kind of equivalences that came with an imported graph."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Sets when two entities are equivalent: if their cosine is at least `threshold`, and each is among the nearest of
    the other.
    """

    threshold: float = 0.8
    """The least cosine. A good value depends on the embedder; the 0.8 of the papers is for ColBERTv2."""
    neighbours: int = 10
    """The maximum number of equivalences of an entity."""
    kind: str = "auto"
    """How pairs are found.

    "exact" compares all pairs, "ivf" pairs in the same clusters, and "auto" is "exact" up to 100,000 entities and
    "ivf" beyond. "imported" takes only the equivalences of an imported graph, in the directions given there.
    """

    def __post_init__(self) -> None:
        known = ("auto", "exact", "ivf", IMPORTED)
        if not 0 < self.threshold <= 1 or self.neighbours < 0 or self.kind not in known:
            raise SettingsError(
                f"an Equivalence needs a threshold above 0 and up to 1, neighbours of 0 or more, and one of the kinds "
                f"{', '.join(known)}; got {self.threshold}, {self.neighbours}, {self.kind!r}"
            )


class Pairs(NamedTuple):
    """Holds pairs of entities (P, 2) int32, each once with the lower number first, and their cosines (P,) float32."""

    entities: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]


def comparable(names: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return the class of each name, (N,). Only names of the same class can be equivalent; a negative class is never
    equivalent.

    Encoders give "2016 World Series" and "2017 World Series" nearly the same vector, so the numbers and months in
    two names must agree. A name without letters is equivalent to no other.
    """
    # the class of names without figures and months, which a single search recognises
    plain = _figures("name")
    classes: list[int] = []
    for name in names:
        is_plain = name[:1].isalpha() and not _DATED.search(name.lower())
        classes.append(plain if is_plain else _figures(name))
    return np.array(classes, dtype=np.int64)


def near_lists(
    vectors: Vectors, classes: npt.NDArray[np.int64], how: Equivalence
) -> NearLists:
    """Return, for each entity, the nearest other entities whose cosine reaches the threshold.

    Args:
        vectors: (N, d), of unit length.
        classes: (N,), as returned by `comparable`.
        how: the threshold, the length of the lists and the kind of search.
    """
    count = len(vectors)
    if how.neighbours == 0 or how.kind == IMPORTED or count < 2:
        return capped(Cells.none(), count, how.neighbours)
    if how.kind == "exact" or (how.kind == "auto" and count <= _EXACT_UP_TO):
        every = np.arange(count)
        return touching(vectors, classes, every, how.threshold, how.neighbours)
    pairs = clustered_pairs(vectors, classes, how.threshold)
    return _kept(pairs, count, how.neighbours)


def near_lists_after(
    before: NearLists,
    is_new: npt.NDArray[np.bool_],
    vectors: Vectors,
    classes: npt.NDArray[np.int64],
    how: Equivalence,
) -> NearLists:
    """Update lists of nearest entities after entities were added and removed. Only the added ones are compared with
    all.

    If `before` was exact, the result is the same as that of `near_lists`.

    Args:
        before: the list that each present entity had before the change, with the column -1 for one that is gone.
        is_new: (N,), True for the entities that had no list.
        vectors, classes, how: see `near_lists`.
    """
    cells = cells_of(before)
    is_there = cells.columns >= 0
    # a full list that lost an entry may have further candidates, for which it had no room
    is_full = before.row_sizes() >= how.neighbours
    has_lost = ~is_there & is_full[cells.rows]
    is_fresh = is_new.copy()
    is_fresh[cells.rows[has_lost]] = True
    fresh = np.flatnonzero(is_fresh)
    if 2 * len(fresh) > len(vectors):
        return near_lists(vectors, classes, how)
    kept = cells.at(np.flatnonzero(is_there))
    found = touching(vectors, classes, fresh, how.threshold, how.neighbours)
    joined = Cells.joined([kept, cells_of(found)])
    return capped(joined, len(vectors), how.neighbours)


def mutual(lists: SparseRows) -> Pairs:
    """Return the pairs of entities of which each is in the other's list."""
    cells = cells_of(lists)
    size = max(lists.width, 1)
    one_way = np.flatnonzero(cells.rows < cells.columns)
    there = cells.rows * size + cells.columns
    back = cells.columns[one_way] * size + cells.rows[one_way]
    at = np.searchsorted(there, back)  # cells ascend
    last = max(len(there) - 1, 0)
    is_mutual = there[np.minimum(at, last)] == back
    kept = cells.at(one_way[is_mutual])
    entities = np.stack([kept.rows, kept.columns], axis=1)
    return Pairs(entities.astype(np.int32), kept.cosines)


def _figures(name: str) -> int:
    if not any(map(str.isalpha, name)):
        return -1
    figures = sorted(_FIGURES.findall(name))
    words = _WORDS.findall(name.lower())
    months = sorted(_MONTHS.intersection(words))
    joined = " ".join(figures + months)
    digest = blake2b(joined.encode(), digest_size=7).digest()
    return int.from_bytes(digest, "little")


def cells_of(lists: NearLists) -> Cells:
    """Return the entries of the lists as pairs of entities with their cosines, in ascending order."""
    columns = lists.columns.astype(np.int64)
    return Cells(lists.entry_rows(), columns, lists.values)


def capped(cells: Cells, size: int, longest: int) -> NearLists:
    """Return lists for `size` entities, each with the `longest` nearest at most; of equal cosines, the lower number
    wins.

    Repeated pairs count once.
    """
    numbers = cells.rows * max(size, 1) + cells.columns
    _, first = np.unique(numbers, return_index=True)  # also sorts them
    cells = cells.at(first)
    nearest = np.lexsort((cells.columns, -cells.cosines, cells.rows))
    starts = np.searchsorted(cells.rows, cells.rows)
    keep = np.empty(len(nearest), dtype=bool)
    # rows keep their places among the nearest
    ranks = np.arange(len(nearest)) - starts
    keep[nearest] = ranks < longest
    cells = cells.at(np.flatnonzero(keep))
    return SparseRows.sorted(cells.rows, cells.columns, cells.cosines, (size, size))


def touching(
    vectors: Vectors, classes: Ints, fresh: Ints, threshold: float, longest: int
) -> NearLists:
    """Return exact lists of nearest entities, compared by all pairs with at least one end in `fresh`.

    The lists of entities in `fresh` are complete.

    Args:
        vectors: (N, d), of unit length.
        classes: (N,); only entities of the same class, 0 or above, are paired.
        fresh: numbers of entities, ascending.
        threshold: the least cosine.
        longest: the maximum length of a list.
    """
    pairs = all_pairs(vectors, classes, fresh, threshold)
    return _kept(pairs, len(vectors), longest)


def _kept(found: Iterable[Cells], size: int, longest: int) -> NearLists:
    """Return the lists of `size` entities, at most `longest` entries each, from pairs found one after another."""
    held = [Cells.none()]
    count = 0
    limit = _HELD
    for cells in found:
        held.append(cells.both_ways())
        count += 2 * len(cells.rows)
        # shortening early loses nothing: a pair that is not among the nearest now will not be at the end
        if count > limit:
            held = [cells_of(capped(Cells.joined(held), size, longest))]
            count = len(held[0].rows)
            limit = max(_HELD, 2 * count)
    return capped(Cells.joined(held), size, longest)
