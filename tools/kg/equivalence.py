"""Equivalence edges: pairs of entities whose vectors nearly agree, no entity in more than a few."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.errors import SettingsError
from ras_agent.text.words import MONTHS
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.kg.near import Cells, NearLists, approximate_cells, capped, cells_of, touching
from ras_agent.tools.kg.sparse_rows import SparseRows

__all__ = ["Equivalence", "Pairs", "comparable", "mutual", "near_lists", "near_lists_after"]

# Exact search of so many takes about a minute on two cores, no longer than an approximate index takes to build, and
# does not depend on the order in which entities came.
_EXACT_UP_TO = 100_000
_MONTHS = frozenset(MONTHS)
_FIGURES, _WORDS = re.compile(r"\d+"), re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two entities are equivalent if their cosine is at least `threshold` and each is among the other's nearest few.

    threshold: for the embedder at hand (0.8 in papers is of ColBERTv2). neighbours: the most equivalences an entity
    can have. kind: how they are searched; "auto" is "exact" up to 100,000 entities and "hnsw" beyond; or "ivf".
    """

    threshold: float = 0.8
    neighbours: int = 10
    kind: str = "auto"

    def __post_init__(self) -> None:
        known = ("auto", "exact", "hnsw", "ivf")
        if not 0 < self.threshold <= 1 or self.neighbours < 0 or self.kind not in known:
            raise SettingsError(
                f"equivalence needs a threshold above 0 and up to 1, neighbours from 0 on, and as kind one of "
                f"{', '.join(known)}; got {self.threshold}, {self.neighbours}, {self.kind!r}"
            )


class Pairs(NamedTuple):
    """Entities (P, 2) int32, the lesser number first, each pair once; their cosines (P,) float32."""

    entities: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]


def comparable(names: Iterable[str]) -> npt.NDArray[np.int64]:
    """A number for each name; only names with equal numbers can be equivalent, and never names with a negative one.

    An encoder holds "2016 World Series" and "2017 World Series" for nearly the same: names must agree in their figures
    and months. A name without a letter is nothing but its figures.
    """
    return np.array([_figures(name) for name in names], dtype=np.int64)


def near_lists(vectors: Vectors, classes: npt.NDArray[np.int64], how: Equivalence) -> NearLists:
    """Each entity's nearest above the threshold; vectors (N, d) of unit length, classes as by `comparable`."""
    every = np.arange(len(vectors))
    if how.neighbours == 0 or len(vectors) < 2:
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
    """The lists after entities came and went, for the work of comparing those that came with all.

    came_from: (N,) the number that each entity of now had in `before`, -1 for a new one. Where `before` was exact the
    outcome is what `near_lists` gives.
    """
    height = before.shape[0]
    now = np.full(height + 1, -1, dtype=np.int64)
    old = np.flatnonzero(came_from >= 0)
    now[came_from[old]] = old
    cells = cells_of(before)
    kept = Cells(now[cells.rows], now[cells.columns], cells.cosines)
    alive = (kept.rows >= 0) & (kept.columns >= 0)
    # who had as many as there may be, and lost one, may have others that were crowded out
    lost = kept.rows[(kept.rows >= 0) & (kept.columns < 0)]
    full = np.flatnonzero(before.row_sizes() >= how.neighbours)
    fresh = np.union1d(np.flatnonzero(came_from < 0), np.intersect1d(lost, now[full]))
    if 2 * len(fresh) > len(vectors):
        return near_lists(vectors, classes, how)
    found = cells_of(touching(vectors, classes, fresh, how.threshold, how.neighbours))
    return capped(Cells.joined([kept.at(np.flatnonzero(alive)), found]), len(vectors), how.neighbours)


def mutual(lists: SparseRows) -> Pairs:
    """The pairs in which each is in the other's list."""
    cells = cells_of(lists)
    size = max(lists.width, 1)
    there, back = cells.rows * size + cells.columns, cells.columns * size + cells.rows
    keep = (cells.rows < cells.columns) & np.isin(there, back)
    entities = np.stack([cells.rows[keep], cells.columns[keep]], axis=1).astype(np.int32)
    return Pairs(entities, cells.cosines[keep])


def _figures(name: str) -> int:
    if not any(map(str.isalpha, name)):
        return -1
    figures = " ".join(sorted(_FIGURES.findall(name)) + sorted(_MONTHS.intersection(_WORDS.findall(name.lower()))))
    return int.from_bytes(blake2b(figures.encode(), digest_size=7).digest(), "little")
