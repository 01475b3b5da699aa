"""What hangs on the passages of an index, such as the knowledge graph read of them: found in the registry, not imported.

A process that deletes a passage and never asked for a graph erases its facts all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ras_agent.registry import find, names
from ras_agent.tools.index.passages import Table
from ras_agent.tools.store.database import Connection, Database


class Attached(Protocol):
    """Rows and arrays that rest on the passages of an index."""

    @property
    def folder(self) -> str:
        """Return the name of its folder in the cache of an index."""
        ...

    def forget(self, connection: Connection, database: Database, table: Table) -> None:
        """Delete, within a transaction, all that rests on passages that are not in `table`, or have another text there."""
        ...

    def keep(self, database: Database, cache: Path | None) -> None:
        """Save the arrays of the last commit in the cache, and delete all others."""
        ...


def all_attached() -> list[Attached]:
    """Return all that hangs on passages."""
    found: list[Any] = [find("attached", name) for name in names("attached")]
    return found
