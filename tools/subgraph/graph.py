"""Holds graphs of named nodes and edges, and subgraphs of them.

Path and subgraph search work on this form, whether it comes from triples, a question graph or a KGIndex.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.records import Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.subgraph.scoring import Wording

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from ras_agent.question_graph import QuestionGraph
    from ras_agent.tools.kg.index import KGIndex


class Step(NamedTuple):
    """Describes a step along an edge to the node at its other end."""

    edge: int
    node: int


@dataclass(frozen=True)
class Graph:
    """Holds a directed graph of N named nodes, E edges and R relations, all referred to by number."""

    nodes: Sequence[str]
    """The N names of the nodes."""
    relations: Sequence[str]
    """The R names of the relations."""
    edges: npt.NDArray[np.int32]
    """(E, 3), head, relation and tail."""
    origin: KGIndex | None = None
    """The KGIndex that the graph was made from, if any, which has sources and vectors; nodes and edges have the same
    numbers there.
    """
    facts: tuple[Triple, ...] = field(default=(), repr=False)
    """The fact of each edge, if the graph was made from triples."""

    @classmethod
    def from_triples(cls, triples: Iterable[Triple | Sequence[str]]) -> Self:
        """Build a graph with nodes and relations in the order of first mention.

        Names with the same canonical key are one node. A fact that is stated twice is one edge, with the sources of
        both.
        """
        nodes: dict[str, tuple[int, str]] = {}
        relations: dict[str, tuple[int, str]] = {}
        edges: dict[tuple[int, int, int], Triple] = {}

        def number(table: dict[str, tuple[int, str]], name: str) -> int:
            key = canonical_key(name)
            entry = table.setdefault(key, (len(table), name))
            return entry[0]

        for triple in triples:
            if not isinstance(triple, Triple):
                subject, predicate, target = triple[:3]
                triple = Triple(subject, predicate, target)
            head = number(nodes, triple.subject)
            tail = number(nodes, triple.object)
            key = (head, number(relations, triple.predicate), tail)
            first = edges.setdefault(key, triple)
            sources = dict.fromkeys((*first.sources, *triple.sources))
            edges[key] = replace(first, sources=tuple(sources))
        return cls(
            [name for _, name in nodes.values()],
            [name for _, name in relations.values()],
            _edge_rows(edges),
            facts=tuple(edges.values()),
        )

    @classmethod
    def of_texts(
        cls, nodes: Sequence[str], edges: Iterable[tuple[int, str, int]]
    ) -> Self:
        """Build a graph in which each text is a separate node, even if texts are equal.

        Args:
            edges: (index of the source in `nodes`, text, index of the target).
        """
        relations: dict[str, int] = {}
        rows = []
        for source, text, target in edges:
            number = relations.setdefault(text, len(relations))
            rows.append((source, number, target))
        return cls(list(nodes), list(relations), _edge_rows(rows))

    @classmethod
    def from_question_graph(cls, graph: QuestionGraph) -> Self:
        """Build the graph of a question's facts, with their sources."""
        return cls.from_triples(graph.facts)

    @classmethod
    def from_index(cls, index: KGIndex) -> Self:
        """Return the graph of a KGIndex, whose edges include equivalences. Nothing is copied."""
        return cls(
            nodes=index.entities,
            relations=index.relations,
            edges=index.edges,
            origin=index,
        )

    def find(self, name: str) -> int | None:
        """Return the number of the node with this name, compared by canonical keys; None if the graph does not contain
        it.
        """
        if self.origin is not None:
            return self.origin.entity_id(name)
        return self._by_key.get(canonical_key(name))

    def triple(self, edge: int) -> Triple:
        """Return an edge as a fact, with the passages in which it was read if they are known."""
        if self.origin is not None:
            return self.origin.triple(edge)
        if self.facts:
            return self.facts[edge]
        return Triple(*self._names(edge))

    def _names(self, edge: int) -> tuple[str, str, str]:
        row: list[int] = self.edges[edge].tolist()
        head, relation, tail = row
        return (
            self.nodes[head],
            self.relations[relation],
            self.nodes[tail],
        )

    def edge_text(self, edge: int, wording: Wording = "facts") -> str:
        """Return an edge as text for scorers: "frederica spouse ernest", or for "relations" only "spouse"."""
        head, relation, tail = map(plain_name, self._names(edge))
        if wording == "relations":
            return relation
        return f"{head} {relation} {tail}"

    @cached_property
    def incident(self) -> SparseRows:
        """Return the edges at each node as sparse rows (N, E), ascending; a loop is listed once."""
        heads = self.edges[:, 0]
        tails = self.edges[:, 2]
        numbers = np.arange(len(self.edges))
        other = heads != tails
        rows = np.concatenate([heads, tails[other]])
        columns = np.concatenate([numbers, numbers[other]])
        shape = (len(self.nodes), len(self.edges))
        return SparseRows.counted(rows, columns, shape)

    def neighbours(self, node: int) -> list[int]:
        """Return the other end of each edge at `node`, in the order of the edges, without loops."""
        numbers = self.incident.row(node)
        edges = self.edges[numbers]
        others = edges[:, 0] + edges[:, 2] - node
        neighbours = others[others != node]
        listed: list[int] = neighbours.tolist()
        return listed

    @cached_property
    def adjacency(self) -> csr_matrix:
        """Return the number of edges that join two nodes, a symmetric (N, N) matrix. Raises MissingExtra without
        scipy.

        A loop counts twice, once for each of its ends.
        """
        ends = self.edges[:, ::2]
        return adjacency_of(ends, len(self.nodes))

    @cached_property
    def _by_key(self) -> dict[str, int]:
        numbers = {}
        for number, name in enumerate(self.nodes):
            numbers[canonical_key(name)] = number
        return numbers


def _edge_rows(edges: Iterable[tuple[int, int, int]]) -> npt.NDArray[np.int32]:
    rows = np.array(list(edges), np.int32)
    return rows.reshape(-1, 3)


@dataclass(frozen=True)
class Subgraph:
    """Holds some nodes and edges of a graph, both ascending. The ends of its edges are among its nodes."""

    graph: Graph = field(repr=False)
    nodes: Ints
    edges: Ints

    @classmethod
    def full(cls, graph: Graph) -> Self:
        """Return the subgraph that contains the whole graph."""
        nodes = np.arange(len(graph.nodes))
        edges = np.arange(len(graph.edges))
        return cls(graph, nodes, edges)

    @classmethod
    def induced(cls, graph: Graph, nodes: Iterable[int]) -> Self:
        """Return the subgraph of `nodes` and every edge between them."""
        inside_nodes = np.unique(np.fromiter(nodes, np.int64))
        inside = np.isin(graph.edges[:, ::2], inside_nodes).all(axis=1)
        return cls(graph, inside_nodes, np.flatnonzero(inside))

    @classmethod
    def of_edges(
        cls, graph: Graph, edges: Iterable[int], nodes: Iterable[int] = ()
    ) -> Self:
        """Return the subgraph of `edges`, their ends, and `nodes`."""
        numbers = np.unique(np.fromiter(edges, np.int64))
        others = np.fromiter(nodes, np.int64)
        ends = graph.edges[numbers, ::2]
        inside = np.union1d(ends, others)
        return cls(graph, inside.astype(np.int64), numbers)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """Return the edges as facts."""
        edges = self.edges.tolist()
        return tuple(map(self.graph.triple, edges))

    def texts(self) -> tuple[tuple[str, ...], tuple[tuple[int, str, int], ...]]:
        """Return the names of the nodes, and the edges as (index of the source, text, index of the target)."""
        places = {}
        names = []
        for place, node in enumerate(self.nodes.tolist()):
            places[node] = place
            names.append(self.graph.nodes[node])
        edges = []
        for head, relation, tail in self.graph.edges[self.edges].tolist():
            source = places[head]
            text = self.graph.relations[relation]
            target = places[tail]
            edges.append((source, text, target))
        return tuple(names), tuple(edges)

    @cached_property
    def steps(self) -> dict[int, list[Step]]:
        """Return, for each node, the steps that leave it, in the order of the edges, without loops."""
        by_node: dict[int, list[Step]] = {}
        numbers = self.edges.tolist()
        rows = self.graph.edges[self.edges].tolist()
        for edge, row in zip(numbers, rows, strict=True):
            head, _, tail = row
            if head == tail:
                continue
            steps_of_head = by_node.setdefault(head, [])
            steps_of_head.append(Step(edge, tail))
            steps_of_tail = by_node.setdefault(tail, [])
            steps_of_tail.append(Step(edge, head))
        return by_node


def textualise(subgraph: Subgraph) -> str:
    """Return a subgraph as G-Retriever's two CSV blocks, `node_id,node_attr` and `src,edge_attr,dst`.

    Nodes are numbered from 0 in their order; names with commas, quotes or line ends are quoted.
    """
    names, edges = subgraph.texts()
    node_rows = enumerate(names)
    node_block = _csv("node_id", "node_attr", rows=node_rows)
    edge_block = _csv("src", "edge_attr", "dst", rows=edges)
    return f"{node_block}\n{edge_block}"


def _csv(*header: str, rows: Iterable[Sequence[object]]) -> str:
    written = StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return written.getvalue()


def plain_name(name: str) -> str:
    """Return a name as it reads in a sentence: the last part of a dotted relation, with blanks for underscores.

    >>> plain_name("people.person.place_of_birth"), plain_name("J. S. Bach")
    ('place of birth', 'J. S. Bach')
    """
    is_sentence = " " in name or name.startswith(".") or name.endswith(".")
    if not is_sentence:
        _, _, name = name.rpartition(".")
    return name.replace("_", " ")


def adjacency_of(ends: npt.NDArray[Any], count: int) -> csr_matrix:
    """Return the number of edges that join two of `count` nodes, a symmetric (count, count) matrix.

    Raises MissingExtra without scipy.

    Args:
        ends: (E, 2), the nodes of each edge.
    """
    with needs_extra("subgraphs and paths", "graph"):
        from scipy.sparse import csr_matrix
    # repeated cells are added up
    ones = np.ones(len(ends))
    sources, targets = ends.T
    cells = (ones, (sources, targets))
    one_way = csr_matrix(cells, shape=(count, count))
    both_ways = one_way + one_way.T
    return both_ways.tocsr()
