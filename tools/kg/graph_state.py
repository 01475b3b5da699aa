"""The state of a knowledge graph in the database of its index: its settings, and which of its rows readers see."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, Self

from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import damaged, hash_of
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.store.database import Connection, Database


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """Sets how a graph is made from its facts; KGManifest describes the fields."""

    embedder: EmbedderIdentity | None = None
    equivalence: Equivalence = field(default_factory=Equivalence)
    exact: bool = False

    @property
    def maker(self) -> int:
        """Return the number under which the embedder's vectors are stored; 0 without an embedder."""
        return (
            hash_of(f"{self.embedder.name} {self.embedder.dimension}")
            if self.embedder
            else 0
        )

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


def read_graph_state(connection: Connection, database: Database) -> GraphState | None:
    """Return the state of the graph, or None if no graph was begun. Raises IndexMismatch for damaged settings."""
    row = connection.execute(
        "SELECT published, stamp, changes, made, names, settings FROM kg_state"
    ).fetchone()
    if row is None:
        return None
    try:
        return GraphState._make((*row[:5], GraphSettings.from_json(row[5])))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"the settings of its graph are not what was written: {error}"
        raise damaged(database, problem) from error


def begin(connection: Connection) -> None:
    """Store the state of a new, empty graph, unless there is a state already."""
    row = (1, 0, _stamp(), 0, -1, 0, GraphSettings().to_json())
    connection.execute(
        "INSERT INTO kg_state VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", row
    )


def publish(connection: Connection, settings: GraphSettings) -> int:
    """Make everything that was read visible to readers, as the next graph. Returns the stamp of that graph."""
    stamp = _stamp()
    connection.execute(
        """UPDATE kg_state SET published = published + 1, stamp = ?, changes = changes + 1, made = changes + 1,
        settings = ?""",
        (stamp, settings.to_json()),
    )
    _advance(connection)
    return stamp


def changed(connection: Connection, *, visible: bool) -> None:
    """Record a change of the stored rows.

    Args:
        visible: whether it changes the graph that readers see, which then gets a new stamp.
    """
    if visible:
        made = "CASE WHEN made = changes THEN made + 1 ELSE made END"
        connection.execute(
            f"UPDATE kg_state SET stamp = ?, made = {made}, changes = changes + 1",
            (_stamp(),),
        )
        _advance(connection)
    else:
        connection.execute("UPDATE kg_state SET changes = changes + 1")


def _advance(connection: Connection) -> None:
    connection.execute("UPDATE index_state SET revision = revision + 1")


def _stamp() -> int:
    return secrets.randbits(60) | 1 << 60
