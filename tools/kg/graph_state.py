"""Reads the state of a knowledge graph from the database of its index: its settings, and which of its rows readers see."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, Self

from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import damaged
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """Sets how a graph is made from its facts; KGManifest describes the fields."""

    embedder: EmbedderIdentity | None = None
    equivalence: Equivalence = field(default_factory=Equivalence)
    exact: bool = False

    def to_json(self) -> str:
        """Return the settings in the form stored in the database."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the settings that `to_json` wrote. Raises ValueError, KeyError or TypeError for any other text."""
        data = json.loads(text)
        embedder = data["embedder"]
        return cls(
            EmbedderIdentity(**embedder) if embedder else None,
            Equivalence(**data["equivalence"]),
            data["exact"],
        )


class GraphState(NamedTuple):
    """Holds the columns of the table `kg_state`; schema.py describes them."""

    published: int
    stamp: int
    changes: int
    made: int
    names: int
    settings: GraphSettings


def read_graph_state(transaction: Transaction, database: Database) -> GraphState | None:
    """Return the state of the graph, or None if no graph was begun. Raises IndexMismatch for damaged settings."""
    row = transaction.graph.read()
    if row is None:
        return None
    *counts, settings = row
    try:
        return GraphState._make((*counts, GraphSettings.from_json(settings)))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"the settings of its graph are not what was written: {error}"
        raise damaged(database, problem) from error
