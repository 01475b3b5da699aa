"""Stores vectors of a knowledge graph in the database of its index: those of names and texts, and the nearest names.

They are stored as rows, so that a build that is killed embeds nothing twice, and so that lost array files can be
restored without embedding or comparing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
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
        places = np.searchsorted(self.names, names).clip(max=len(self.names) - 1)
        return np.where(self.names[places] == names, places, -1)


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
    rows = np.frombuffer(b"".join(data for _, data in found), "<f2")
    return Numbered(names, rows.reshape(len(names), dimension))


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
    starts = np.zeros(len(blobs) + 1, np.int64)
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs)) // _NEAR.itemsize
    np.cumsum(sizes, out=starts[1:])
    return NearNames(np.array(names, np.int64), starts, others, cells["cosine"].copy())


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
    known = np.where(old >= 0, _marks(before)[old] if len(before.names) else 0, 0)
    fresh = np.flatnonzero((old < 0) | (known != _marks(now)))
    cells = np.empty(len(now.others), _NEAR)
    cells["name"], cells["cosine"] = now.others, now.cosines
    rows = []
    for at in fresh.tolist():
        name = int(now.names[at])
        data = cells[now.starts[at] : now.starts[at + 1]].tobytes()
        rows.append((name, data))
    transaction.vectors.put_near(rows)


def _marks(lists: NearNames) -> npt.NDArray[np.uint64]:
    """Return a checksum of each list, (n,): equal for lists with the same entries in any order."""
    mixed = lists.others.astype(np.uint64) << np.uint64(32) | lists.cosines.view(
        np.uint32
    ).astype(np.uint64)
    # splitmix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    marks: npt.NDArray[np.uint64] = sums[lists.starts[1:]] - sums[lists.starts[:-1]]
    return marks + np.diff(lists.starts).astype(np.uint64)
