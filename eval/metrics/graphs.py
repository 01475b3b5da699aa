"""Triples against gold triples, and what an answer says of a graph against the graph (G-Retriever, appendix F)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.text.canonical import canonical_key

__all__ = ["CitedGraph", "GraphValidity", "entity_score", "graph_validity", "pooled_validity", "triple_score"]

Triple3 = Sequence[str]


class CitedGraph(NamedTuple):
    """The nodes and edges that an answer refers to; an edge is its (head, relation, tail) texts."""

    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GraphValidity:
    """What exists of the `nodes` and `edges` that were cited."""

    nodes: int
    valid_nodes: int
    edges: int
    valid_edges: int

    @property
    def cites(self) -> bool:
        """Whether anything is cited."""
        return self.nodes + self.edges > 0

    @property
    def fully_valid(self) -> bool:
        """All that is cited exists, and something is cited."""
        return self.cites and (self.nodes, self.edges) == (self.valid_nodes, self.valid_edges)


def triple_score(predicted: Iterable[Triple3], gold: Iterable[Triple3]) -> SetScore:
    """Precision, recall and F1 of triples; two are the same if all three parts have the same canonical key."""
    return set_score(map(_key, predicted), map(_key, gold))


def entity_score(triples: Iterable[Triple3], answers: Iterable[str]) -> SetScore:
    """Gold answers against the entities (heads and tails) of a retrieved graph: LEGO-GraphRAG's scores of a module."""
    entities = {canonical_key(triple[end]) for triple in triples for end in (0, 2)}
    return set_score(entities, set(map(canonical_key, answers)))


def graph_validity(cited: CitedGraph, nodes: Iterable[str], edges: Iterable[Triple3]) -> GraphValidity:
    """Which of the cited nodes and edges the graph has. Texts are compared by canonical key, edges with direction.

    A node is a whole text or, of a scene graph's "name: banana; attribute: ...", its name.
    """
    names = {key for node in nodes for key in (canonical_key(node), canonical_key(_name(node)))}
    known = {key for edge in edges for key in (_key(edge), _key((_name(edge[0]), edge[1], _name(edge[2]))))}
    return GraphValidity(
        len(cited.nodes),
        sum(canonical_key(node) in names for node in cited.nodes),
        len(cited.edges),
        sum(_key(edge) in known for edge in cited.edges),
    )


def pooled_validity(responses: Iterable[GraphValidity]) -> dict[str, float]:
    """`valid_nodes` and `valid_edges` over all that was cited, `fully_valid` over the responses that cite something.

    0.0 over nothing.
    """
    found = list(responses)

    def share(part: int, whole: int) -> float:
        return part / whole if whole else 0.0

    return {
        "valid_nodes": share(sum(each.valid_nodes for each in found), sum(each.nodes for each in found)),
        "valid_edges": share(sum(each.valid_edges for each in found), sum(each.edges for each in found)),
        "fully_valid": share(sum(each.fully_valid for each in found), sum(each.cites for each in found)),
    }


def _key(triple: Triple3) -> tuple[str, str, str]:
    head, relation, tail = triple
    return canonical_key(head), canonical_key(relation), canonical_key(tail)


def _name(node: str) -> str:
    bare = node.partition(";")[0]
    return bare.removeprefix("name:").strip() if bare.startswith("name:") else node
