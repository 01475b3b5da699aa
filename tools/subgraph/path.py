"""A path of facts: from an entity of the question, edge by edge, whichever way the edges point."""

from __future__ import annotations

from dataclasses import dataclass

from ras_agent.records import Triple
from ras_agent.tools.subgraph.graph import Graph, Step, plain_name
from ras_agent.tools.subgraph.scoring import Wording

__all__ = ["Path"]


@dataclass(frozen=True, slots=True)
class Path:
    """A node more than edges; `nodes[i]` and `nodes[i + 1]` are the ends of `edges[i]`. Numbers are the graph's."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        return self.nodes[0]

    @property
    def end(self) -> int:
        return self.nodes[-1]

    def __len__(self) -> int:
        """How many edges it has."""
        return len(self.edges)

    def extended(self, step: Step) -> Path:
        return Path((*self.nodes, step.node), (*self.edges, step.edge))

    def triples(self, graph: Graph) -> tuple[Triple, ...]:
        return tuple(map(graph.triple, self.edges))

    def text(self, graph: Graph) -> str:
        """For readers: "frederica → spouse → ernest ← parents ← george"."""
        return " ".join(self._drawn(graph, plain=False))

    def scored_text(self, graph: Graph, wording: Wording = "facts") -> str:
        """For scorers: the same with plain names, which have no underscores and no dotted prefixes; or "→ spouse ←
        parents"."""
        if wording == "relations":
            return " ".join(self._drawn(graph, plain=True, names=False))
        return " ".join(self._drawn(graph, plain=True))

    def _drawn(self, graph: Graph, plain: bool, names: bool = True) -> list[str]:
        shown = plain_name if plain else str
        parts = [shown(graph.nodes[self.start])] if names else []
        for before, after, edge in zip(self.nodes, self.nodes[1:], self.edges, strict=False):
            arrow = "→" if int(graph.edges[edge, 0]) == before else "←"
            relation = shown(graph.relations[int(graph.edges[edge, 1])])
            parts += [arrow, relation, arrow, shown(graph.nodes[after])] if names else [arrow, relation]
        return parts
