"""Stores vectors of a knowledge graph in the database of its index: those of names and texts, and the nearest names.

They are stored as rows, so that a build that is killed embeds nothing twice, and so that lost array files can be
restored without embedding or comparing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Ints
from ras_agent.tools.index.passages import damaged
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction

NEAR = np.dtype([("name", "<i4"), ("cosine", "<f4")])
"""The form of a stored list: the number of each nearest name, and its cosine."""
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


def read_near(transaction: Transaction, database: Database) -> dict[int, bytes]:
    """Return the stored lists of nearest names, records of NEAR, by name. Raises IndexMismatch for a damaged list."""
    lists = transaction.vectors.near()
    for name, data in lists.items():
        if not isinstance(data, bytes) or len(data) % NEAR.itemsize:
            problem = f"the list of name {name:,} is not what was written"
            raise damaged(database, problem)
    others = np.frombuffer(b"".join(lists.values()), NEAR)["name"]
    end = transaction.names.end()
    if len(others) and not 0 <= int(others.min()) <= int(others.max()) < end:
        raise damaged(database, "its graph has lists of near names that are not there")
    return lists


def put_near(
    transaction: Transaction,
    before: Mapping[int, bytes] | None,
    now: Mapping[int, bytes],
) -> None:
    """Store the lists in `now` that differ from those in `before`, and delete lists that `now` does not have.

    Args:
        before: the stored lists; None if they were made with other settings, so that all are replaced.
    """
    if before is None:
        transaction.vectors.forget_near(None)
        before = {}
    transaction.vectors.forget_near(before.keys() - now.keys())
    rows = [(name, data) for name, data in now.items() if before.get(name) != data]
    transaction.vectors.put_near(rows)
