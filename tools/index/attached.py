"""Finds the data that is attached to the passages of an index, such as its knowledge graph, through the registry.

So a process that deletes a passage also erases its facts, even if it never uses a graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ras_agent.config.registry import find, names
from ras_agent.tools.index.passages import Table
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction


class Attached(Protocol):
    """Describes rows and arrays that depend on the passages of an index."""

    @property
    def folder(self) -> str:
        """Return the name of the folder of these arrays in the cache of an index."""
        ...

    def forget(
        self, transaction: Transaction, database: Database, table: Table
    ) -> None:
        """Delete, within a transaction, the rows that depend on passages which are not in `table` or have another text
        there.
        """
        ...

    def keep(self, database: Database, cache: Path | None) -> None:
        """Save the arrays of the last commit in the cache, and delete all others."""
        ...


def all_attached() -> list[Attached]:
    """Return everything that is attached to passages."""
    found: list[Any] = [find("attached", name) for name in names("attached")]
    return found
