"""A graph with text on nodes and edges, and its form for a prompt (G-Retriever, section 3: two CSV blocks)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ras_agent.errors import IngestError

__all__ = ["TextualGraph", "parse_textual_graph"]


@dataclass(frozen=True, slots=True)
class TextualGraph:
    """nodes: their texts; a node's id is its place. edges: (source's place, text, target's place)."""

    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[int, str, int], ...] = ()

    @classmethod
    def from_triples(cls, triples: Iterable[Sequence[str]]) -> Self:
        """Nodes in the order of first appearance; equal texts are one node."""
        places: dict[str, int] = {}
        edges = [
            (places.setdefault(subject, len(places)), predicate, places.setdefault(target, len(places)))
            for subject, predicate, target in triples
        ]
        return cls(tuple(places), tuple(edges))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(tuple(data["nodes"]), tuple((source, text, target) for source, text, target in data["edges"]))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: {"nodes": [text], "edges": [[source, text, target]]}."""
        return {"nodes": list(self.nodes), "edges": [list(edge) for edge in self.edges]}

    def triples(self) -> tuple[tuple[str, str, str], ...]:
        """Edges with their nodes' texts."""
        return tuple((self.nodes[source], text, self.nodes[target]) for source, text, target in self.edges)

    def to_text(self) -> str:
        """`node_id,node_attr` and `src,edge_attr,dst` blocks, each with its header, quoted as CSV where needed."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("node_id", "node_attr"))
        rows.writerows(enumerate(self.nodes))
        rows.writerow(("src", "edge_attr", "dst"))
        rows.writerows(self.edges)
        return out.getvalue()


def parse_textual_graph(text: str, where: str = "graph") -> TextualGraph:
    """The inverse of `to_text`; node ids may be any numbers. Raises IngestError with the line that is neither."""
    nodes: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    rows = csv.reader(io.StringIO(text))
    width = 0
    try:
        for row in rows:
            if [cell.strip() for cell in row] in (["node_id", "node_attr"], ["src", "edge_attr", "dst"]):
                width = len(row)
            elif row and len(row) != width:
                raise IngestError(
                    f"{where} line {rows.line_num}: expected node_id,node_attr or src,edge_attr,dst: {row!r:.80}"
                )
            elif width == 2 and row:
                nodes[row[0].strip()] = row[1]
            elif row:
                edges.append((row[0].strip(), row[1], row[2].strip()))
    except csv.Error as error:
        raise IngestError(f"{where} line {rows.line_num}: not CSV ({error})") from error
    places = {identity: place for place, identity in enumerate(nodes)}
    for source, predicate, target in edges:
        if source not in places or target not in places:
            raise IngestError(f"{where}: edge {source},{predicate},{target} names a node that is not there")
    return TextualGraph(tuple(nodes.values()), tuple((places[s], text, places[t]) for s, text, t in edges))
