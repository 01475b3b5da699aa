"""Stores vectors of a knowledge graph in the database of its index: those of names and texts, and the nearest names.

They are stored as rows, so that a build that is killed embeds nothing twice, and so that lost array files can be
restored without embedding or comparing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.tools.index.passages import damaged
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction

_NEAR = np.dtype([("name", "<i4"), ("cosine", "<f4")])
_MANY = 5000
"""The number of names above which all rows are read at once."""


class Numbered(NamedTuple):
    """Holds rows of an array, and the number of the name that each row belongs to."""

    names: Ints
    """The numbers, ascending."""
    rows: Any

    def at(self, names: Ints) -> Ints:
        """Return the positions of the given names in `rows`, -1 for each name that is missing."""
        if not len(self.names):
            return np.full(len(names), -1, dtype=np.int64)
        last = len(self.names) - 1
        places = np.searchsorted(self.names, names).clip(max=last)
        is_there = self.names[places] == names
        return np.where(is_there, places, -1)


def read_vectors(
    transaction: Transaction, database: Database, maker: int, dimension: int, of: Ints
) -> Numbered:
    """Return the vectors (n, d) that an embedder made of the names `of`. Raises IndexMismatch for a vector of the
    wrong size.

    If many are requested, other names are included.

    Args:
        maker: the number of the embedder.
    """
    asked = None if len(of) > _MANY else of.tolist()
    found = sorted(transaction.vectors.of_names(maker, asked))
    for name, data in found:
        if not isinstance(data, bytes) or len(data) != 2 * dimension:
            problem = f"the vector of name {name:,} has another size"
            raise damaged(database, problem)
    names = np.array([name for name, _ in found], np.int64)
    joined = b"".join(data for _, data in found)
    rows = np.frombuffer(joined, "<f2").reshape(-1, dimension)
    return Numbered(names, rows)


class NearNames(NamedTuple):
    """Holds the nearest names of each entity: list `i` belongs to `names[i]` and is `others[starts[i]:starts[i + 1]]`.

    All names are given by number. `cosines[j]` belongs to `others[j]`.
    """

    names: Ints
    starts: Ints
    others: Ints
    cosines: npt.NDArray[np.float32]


NO_LISTS = NearNames(
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.float32),
)


def read_near(transaction: Transaction, database: Database) -> NearNames:
    """Return the stored lists of nearest names. Raises IndexMismatch for a damaged list."""
    names, blobs = transaction.vectors.near()
    for name, data in zip(names, blobs, strict=True):
        if not isinstance(data, bytes) or len(data) % _NEAR.itemsize:
            problem = f"the list of name {name:,} is not what was written"
            raise damaged(database, problem)
    cells = np.frombuffer(b"".join(blobs), _NEAR)
    end = transaction.names.end()
    others = cells["name"].astype(np.int64)
    if len(others) and not 0 <= int(others.min()) <= int(others.max()) < end:
        raise damaged(database, "its graph has lists of near names that are not there")
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs))
    starts = offsets_of(sizes // _NEAR.itemsize)
    cosines = cells["cosine"].copy()
    return NearNames(np.array(names, np.int64), starts, others, cosines)


def put_near(
    transaction: Transaction, before: NearNames | None, now: NearNames
) -> None:
    """Store the lists in `now` that differ from those in `before`, and delete lists that `now` does not have.

    Args:
        before: the stored lists; None if they were made with other settings, so that all are replaced.
    """
    if before is None:
        transaction.vectors.forget_near(None)
        before = NO_LISTS
    gone = np.setdiff1d(before.names, now.names)
    transaction.vectors.forget_near(gone.tolist())
    old = Numbered(before.names, None).at(now.names)
    is_new = old < 0
    # the position -1 of a new list reads the 0 at the end
    marks_before = np.append(_marks(before), np.uint64(0))
    is_changed = marks_before[old] != _marks(now)
    cells = np.empty(len(now.others), _NEAR)
    cells["name"] = now.others
    cells["cosine"] = now.cosines
    rows = []
    for at in np.flatnonzero(is_new | is_changed).tolist():
        name = int(now.names[at])
        start = now.starts[at]
        end = now.starts[at + 1]
        rows.append((name, cells[start:end].tobytes()))
    transaction.vectors.put_near(rows)


def _marks(lists: NearNames) -> npt.NDArray[np.uint64]:
    """Return a checksum of each list, (n,): equal for lists with the same entries in any order."""
    names = lists.others.astype(np.uint64)
    cosines = lists.cosines.view(np.uint32).astype(np.uint64)
    mixed = names << np.uint64(32) | cosines
    # splitmix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    sums = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=sums[1:])
    marks: npt.NDArray[np.uint64] = np.diff(sums[lists.starts])
    return marks + np.diff(lists.starts).astype(np.uint64)
