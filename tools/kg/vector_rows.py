"""Stores the lists of nearest names of a knowledge graph in the database of its index, since they are slow to compute."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ras_agent.tools.index.passages import damaged
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction

NEAR = np.dtype([("name", "<i4"), ("cosine", "<f4")])
"""The form of a stored list: the number of each nearest name, and its cosine."""


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
