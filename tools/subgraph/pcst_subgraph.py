"""G-Retriever's subgraph of a question: prizes by meaning, a neighbourhood of a large graph, the Steiner tree in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.protocols import Embedder
from ras_agent.records import Failure
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.subgraph.extract import Extraction, ppr
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.pcst import prizes_of, steiner_tree
from ras_agent.tools.subgraph.scoring import RelativeScorer, Scored, Scorer, best

__all__ = ["PCSTFinder", "PCSTSettings", "QuestionSubgraph"]


@dataclass(frozen=True, slots=True)
class PCSTSettings:
    """nodes, edges: how many have prizes, the best getting as much; cost: of an edge. As in the paper for WebQSP.

    nodes 0 and edges 0: the whole neighbourhood, as the paper has it for small graphs.
    named: what a node that the question names wins beside its prize, which the paper does not have.
    trees: parts that need not be connected with each other, at most; one in the paper.
    neighbourhood: of a graph with more than its `max_ent` nodes only those of highest PageRank from the best nodes, and
        from the question's own where they are known, are looked at.
    """

    nodes: int = 3
    edges: int = 5
    cost: float = 0.5
    named: float = 0.0
    trees: int = 1
    neighbourhood: Extraction = field(default_factory=Extraction)

    def __post_init__(self) -> None:
        if min(self.nodes, self.edges, self.cost, self.named) < 0:
            raise ValueError(f"nodes, edges, cost and named are at least 0, got {self}")
        if self.trees < 1:
            raise ValueError(f"there is at least one tree, got {self}")


@dataclass(frozen=True, slots=True)
class QuestionSubgraph:
    """The subgraph, and how many nodes and edges were looked at.

    node_prizes, edge_prizes: of the subgraph's nodes and edges, in their order; 0 where nothing has a prize.
    """

    subgraph: Subgraph
    nodes: int
    edges: int
    node_prizes: npt.NDArray[np.float64]
    edge_prizes: npt.NDArray[np.float64]
    failures: tuple[Failure, ...] = ()


class PCSTFinder:
    """Subgraphs of one graph. A graph from a KGIndex with vectors is judged by them, any other by `scorer`."""

    def __init__(
        self,
        graph: Graph,
        scorer: Scorer | None = None,
        settings: PCSTSettings | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """scorer: judges names of nodes and relations; without one the graph's own vectors do, and `embedder` (by
        default the graph's) reads questions.

        Raises ValueError for a graph without vectors and no scorer.
        """
        self.graph, self._scorer, self.settings = graph, scorer, settings or PCSTSettings()
        self._embedder = embedder
        if scorer is None and (graph.origin is None or graph.origin.entity_vectors is None):
            raise ValueError("PCST needs to know what fits a question: a scorer, or a KGIndex with vectors")

    def find(
        self, question: str, starts: Sequence[int] = (), weights: Sequence[float] | None = None
    ) -> QuestionSubgraph:
        """starts: nodes that the question names, which keep their surroundings within reach; they win no prize but
        `settings.named`, times their `weights`."""
        how, graph, failures = self.settings, self.graph, list[Failure]()
        node_scores, relation_scores = self._scores(question, failures)
        around = Subgraph.whole(graph)
        if len(graph.nodes) > how.neighbourhood.max_ent:
            around = ppr(graph, [*starts, *best(node_scores, max(how.nodes, 1))], how.neighbourhood)
        prizes = prizes_of(
            node_scores[around.nodes],
            relation_scores[graph.edges[around.edges, 1]],
            nodes=how.nodes,
            edges=how.edges,
            cost=how.cost,
        )
        for start, weight in zip(starts, weights or [1.0] * len(starts), strict=True):
            prizes.nodes[around.nodes == start] += how.named * weight
        tree = steiner_tree(around, prizes, how.trees) if how.nodes or how.edges else around
        return QuestionSubgraph(
            tree,
            len(around.nodes),
            len(around.edges),
            prizes.nodes[np.searchsorted(around.nodes, tree.nodes)],
            prizes.edges[np.searchsorted(around.edges, tree.edges)],
            tuple(failures),
        )

    def _scores(self, question: str, failures: list[Failure]) -> tuple[Floats, Floats]:
        """Of every node (N,) and every relation (R,)."""
        origin = self.graph.origin
        if self._scorer is not None:
            scored = [judge(question) for judge in self._judges]
            failures += [failure for one in scored for failure in one.failures]
            return scored[0].values, scored[1].values
        embedder: Any = self._embedder or (origin.embedder if origin is not None else None)
        asked = query_vector(embedder, question)
        nodes, relations = (part @ asked for part in self._vectors)
        if origin is not None:
            relations[origin.equivalence_relation] = 0  # that two names mean one thing answers no question
        return nodes, relations

    @cached_property
    def _judges(self) -> list[Callable[[str], Scored]]:
        """The scorer on the names of nodes and on those of relations; they stay, so what can is done once."""
        scorer: Any = self._scorer
        names = [[*map(plain_name, some)] for some in (self.graph.nodes, self.graph.relations)]
        if isinstance(scorer, RelativeScorer):
            return [scorer.over(some) for some in names]
        return [partial(scorer.score, texts=some) for some in names]

    @cached_property
    def _vectors(self) -> tuple[Floats, Floats]:
        """(N, d) and (R, d), kept in single precision: on the disk they may be halves, and every question needs all."""
        origin: Any = self.graph.origin
        return np.asarray(origin.entity_vectors, np.float32), np.asarray(origin.relation_vectors, np.float32)
