"""Finds G-Retriever's subgraph of a question: a prize-collecting Steiner tree.

G-Retriever (arXiv:2402.07630), eq. 6 to 8: the k nodes with the best scores get prizes k, k-1, ..., 1, and edges
likewise; an edge costs C. The result is the connected subgraph S with the highest sum of prizes less |E(S)| C.
pcst_fast supports only node prizes: an edge of prize P <= C becomes one of cost C - P, and one of P > C becomes a
virtual node of prize P - C that costs nothing to reach from either end. In a large graph only a neighbourhood is
searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Doubles, Floats, Ints
from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.contracts.records import Failure
from ras_agent.running.protocols import Embedder, Scored, Scorer
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.subgraph.extract import Extraction, ppr
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.scoring import RelativeScorer, best

_LESS = 0.01
"""The share by which the published code lowers a prize below that of the next better score."""


@dataclass(frozen=True, slots=True)
class Prizes:
    """Holds the prizes of a subgraph's nodes (n,) and edges (m,), at least 0, in their order, and the cost C of an
    edge.
    """

    nodes: Doubles
    edges: Doubles
    cost: float = 0.5

    def __post_init__(self) -> None:
        if (
            self.cost < 0
            or self.nodes.min(initial=0) < 0
            or self.edges.min(initial=0) < 0
        ):
            raise ValueError("prizes and the cost of an edge cannot be negative")


@dataclass(frozen=True, slots=True)
class Instance:
    """Holds the problem in pcst_fast's form, with prizes only for nodes: the nodes of the subgraph, then v virtual
    nodes.
    """

    ends: Ints
    """(M, 2), the nodes of each edge."""
    prizes: Doubles
    """(n + v,), the prize of each node."""
    costs: Doubles
    """(M,), the cost of each edge."""
    plain: Ints
    """(m',), the subgraph's edge for each of the first m' rows of `ends`."""
    virtual: Ints
    """(v,), the subgraph's edge for each virtual node. The last 2v rows of `ends` join each virtual node to the ends
    of its edge, at cost 0.
    """


def prizes_of(
    node_scores: npt.NDArray[Any],
    edge_scores: npt.NDArray[Any],
    *,
    nodes: int = 3,
    edges: int = 5,
    cost: float = 0.5,
    published: bool = False,
) -> Prizes:
    """Return the prizes for scores: the best node gets `nodes`, the next one 1 less, down to 1; edges likewise, from
    `edges`.

    A score of 0 or less gets no prize. Nodes with equal scores keep their order. Edges with equal scores share one
    prize, since all edges of a relation tie. Defaults are the paper's for WebQSP; for scene graphs it has 3, 3 and
    cost 1.

    Args:
        node_scores: (n,).
        edge_scores: (m,).
        nodes, edges: the number of prizes, which is also the greatest prize.
        cost: the cost of an edge.
        published: whether to do as G-Retriever's code does, although the paper does not say so. Any score may get a
            prize; there are no more prizes of edges than different scores, and an edge's prize is below that of a
            better score even if more edges share that; the cost is lowered below the best edge's prize, so that at
            least one edge is worth it.
    """
    if published:
        return _published_prizes(node_scores, edge_scores, nodes, edges, cost)
    node_prizes = np.zeros(len(node_scores))
    top = best(np.asarray(node_scores), nodes)
    for rank, place in enumerate(top):
        if node_scores[place] > 0:
            node_prizes[place] = nodes - rank
    edge_prizes = np.zeros(len(edge_scores))
    positive = edge_scores[edge_scores > 0]
    values = np.unique(positive)[::-1]
    for rank, score in enumerate(values[:edges]):
        equal = np.flatnonzero(edge_scores == score)
        prize = edges - rank
        edge_prizes[equal] = prize / len(equal)
    return Prizes(node_prizes, edge_prizes, cost)


def _published_prizes(
    node_scores: npt.NDArray[Any],
    edge_scores: npt.NDArray[Any],
    nodes: int,
    edges: int,
    cost: float,
) -> Prizes:
    node_prizes = np.zeros(len(node_scores))
    top = best(np.asarray(node_scores), min(nodes, len(node_scores)))
    for rank, place in enumerate(top):
        node_prizes[place] = len(top) - rank
    edge_prizes = np.zeros(len(edge_scores))
    descending = np.unique(edge_scores)[::-1]
    values = descending[:edges]
    most = float(len(values))
    for rank, score in enumerate(values):
        equal = np.flatnonzero(edge_scores == score)
        share = (len(values) - rank) / len(equal)
        prize = min(share, most)
        edge_prizes[equal] = prize
        most = prize * (1 - _LESS)
    if len(values):
        highest = float(edge_prizes.max())
        cost = min(cost, highest * (1 - _LESS / 2))
    return Prizes(node_prizes, edge_prizes, cost)


def instance_of(ends: Ints, prizes: Prizes) -> Instance:
    """Return an equivalent problem that has only node prizes.

    Args:
        ends: (m, 2), the nodes of each edge, numbered from 0.
    """
    dear = prizes.edges > prizes.cost
    loops = ends[:, 0] == ends[:, 1]
    # a loop that is not worth its cost is never taken
    plain = np.flatnonzero(~dear & ~loops)
    plain_ends = ends[plain].reshape(-1, 2)
    plain_costs = prizes.cost - prizes.edges[plain]
    virtual = np.flatnonzero(dear)
    virtual_prizes = prizes.edges[virtual] - prizes.cost
    stand_ins = len(prizes.nodes) + np.arange(len(virtual))
    # two rows for each edge, to the virtual node and from it; pcst_fast breaks ties by this order
    sources, targets = ends[virtual].T
    reached = np.stack([sources, stand_ins, stand_ins, targets], axis=1)
    virtual_ends = reached.reshape(-1, 2)
    all_ends = np.concatenate([plain_ends, virtual_ends])
    no_costs = np.zeros(len(virtual_ends))
    return Instance(
        ends=all_ends.astype(np.int64),
        prizes=np.concatenate([prizes.nodes, virtual_prizes]),
        costs=np.concatenate([plain_costs, no_costs]),
        plain=plain,
        virtual=virtual,
    )


def steiner_tree(
    subgraph: Subgraph, prizes: Prizes, trees: int = 1, published: bool = False
) -> Subgraph:
    """Return the best connected part that pcst_fast finds, or the `trees` best; an empty subgraph if there are no
    prizes.

    Its costs plus uncollected prizes are within a factor of 2 of the optimum. Raises MissingExtra without
    pcst-fast2.

    Args:
        trees: the maximum number of parts.
        published: whether to prune as G-Retriever's code does, which keeps more, and to leave out edges between
            nodes of the tree that the tree itself does not use.
    """
    graph = subgraph.graph
    edges = graph.edges[subgraph.edges]
    ends = np.searchsorted(subgraph.nodes, edges[:, [0, 2]]).reshape(-1, 2)
    problem = instance_of(ends, prizes)
    if not len(problem.prizes) or not problem.prizes.max() > 0:
        return Subgraph.of_edges(graph, ())
    # "strong" pruning gives results at least as good as "gw", the published code's
    pruning = "gw" if published else "strong"
    solve = _pcst_fast()
    picks, rows = solve(
        problem.ends, problem.prizes, problem.costs, -1, trees, pruning, 0
    )
    picks = np.asarray(picks, dtype=np.int64)
    rows = np.asarray(rows, dtype=np.int64)
    count = len(prizes.nodes)
    picked_virtual = picks[picks >= count] - count
    bought = problem.virtual[picked_virtual]
    picked_plain = rows[rows < len(problem.plain)]
    edges = np.union1d(problem.plain[picked_plain], bought)
    # a virtual node may be reached from one end only; its edge then adds the other end at no cost
    picked_nodes = picks[picks < count]
    nodes = np.union1d(picked_nodes, ends[edges].ravel())
    # add edges between chosen nodes whose prize exceeds their cost; unlike a tree, a subgraph may have cycles
    if not published:
        inside = np.isin(ends, nodes).all(axis=1)
        worth = prizes.edges > prizes.cost
        gained = np.flatnonzero(inside & worth)
        edges = np.union1d(edges, gained)
    return Subgraph.of_edges(graph, subgraph.edges[edges], subgraph.nodes[nodes])


@cache
def _pcst_fast() -> Any:
    with needs_extra("PCST subgraphs", "graph"):
        from pcst_fast import pcst_fast
    # the original pcst-fast has the same module name, and under numpy 2 it silently returns [0, 0] here
    nodes, _ = pcst_fast(
        np.array([[0, 1]]), np.ones(2), np.array([0.5]), -1, 1, "strong", 0
    )
    if sorted(nodes.tolist()) != [0, 1]:
        raise SettingsError(
            "the package pcst-fast gives wrong results with numpy 2: "
            "pip uninstall pcst-fast && pip install --force-reinstall pcst-fast2"
        )
    return pcst_fast


@dataclass(frozen=True, slots=True)
class PCSTSettings:
    """Sets prizes, costs and the neighbourhood. Defaults are the paper's for WebQSP.

    `nodes` and `edges` are how many nodes and edges get a prize, and the prize of the best one. With 0 and 0, the whole
    neighbourhood is taken, as in the paper for small graphs.
    """

    nodes: int = 3
    edges: int = 5
    cost: float = 0.5
    """The cost of an edge."""
    named_prize: float = 0.0
    """An additional prize for each node that the question names; 0 in the paper."""
    trees: int = 1
    """The maximum number of parts, which need not be connected with each other; 1 in the paper."""
    published: bool = False
    """Whether prizes of ties and pruning are as in G-Retriever's code; see `prizes_of` and `steiner_tree`."""
    neighbourhood: Extraction = field(default_factory=Extraction)
    """How a graph of more than `max_ent` nodes is cut: to the nodes of highest PageRank, started from the best nodes
    and from those that the question names.
    """

    def __post_init__(self) -> None:
        if min(self.nodes, self.edges, self.cost, self.named_prize) < 0:
            raise ValueError(
                f"nodes, edges, cost and named_prize have to be at least 0, got {self}"
            )
        if self.trees < 1:
            raise ValueError(f"trees has to be at least 1, got {self}")


@dataclass(frozen=True, slots=True)
class QuestionSubgraph:
    """Holds a question's subgraph, and the size of the neighbourhood that was searched for it."""

    subgraph: Subgraph
    nodes: int
    """The number of nodes in the neighbourhood."""
    edges: int
    """The number of edges in the neighbourhood."""
    node_prizes: npt.NDArray[np.float64]
    """The prizes of the subgraph's nodes, in their order."""
    edge_prizes: npt.NDArray[np.float64]
    """The prizes of the subgraph's edges, in their order."""
    failures: tuple[Failure, ...] = ()


class PCSTFinder:
    """Finds subgraphs in one graph; its names are scored by a scorer, or by the vectors of its KGIndex."""

    def __init__(
        self,
        graph: Graph,
        scorer: Scorer | None = None,
        settings: PCSTSettings | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Take the graph. Raises ValueError if there is neither a scorer nor a graph with vectors.

        Args:
            scorer: scores the names of nodes and relations for a question; by default the graph's own vectors do.
            settings: by default `PCSTSettings()`.
            embedder: embeds questions; by default the graph's.
        """
        self.graph = graph
        self._scorer = scorer
        self.settings = settings or PCSTSettings()
        self._embedder = embedder
        if scorer is None and (
            graph.origin is None or graph.origin.entity_vectors is None
        ):
            raise ValueError(
                "PCST needs a score for each name in the graph: give a scorer, or the graph of a KGIndex with vectors"
            )

    def find(
        self,
        question: str,
        starts: Sequence[int] = (),
        weights: Sequence[float] | None = None,
    ) -> QuestionSubgraph:
        """Return the question's subgraph.

        Args:
            starts: nodes that the question names; they are part of the neighbourhood, and each gets the prize
                `settings.named_prize` times its weight.
            weights: the weight of each start; 1 for all by default.
        """
        how = self.settings
        graph = self.graph
        failures = list[Failure]()
        node_scores, relation_scores = self._scores(question, failures)
        around = Subgraph.full(graph)
        if len(graph.nodes) > how.neighbourhood.max_ent:
            best_nodes = best(node_scores, max(how.nodes, 1))
            around = ppr(graph, [*starts, *best_nodes], how.neighbourhood)
        prizes = prizes_of(
            node_scores[around.nodes],
            relation_scores[graph.edges[around.edges, 1]],
            nodes=how.nodes,
            edges=how.edges,
            cost=how.cost,
            published=how.published,
        )
        for start, weight in zip(starts, weights or [1.0] * len(starts), strict=True):
            prizes.nodes[around.nodes == start] += how.named_prize * weight
        tree = around
        if how.nodes or how.edges:
            tree = steiner_tree(around, prizes, how.trees, how.published)
        return QuestionSubgraph(
            tree,
            len(around.nodes),
            len(around.edges),
            prizes.nodes[np.searchsorted(around.nodes, tree.nodes)],
            prizes.edges[np.searchsorted(around.edges, tree.edges)],
            tuple(failures),
        )

    def _scores(self, question: str, failures: list[Failure]) -> tuple[Floats, Floats]:
        """Return the score of every node (N,) and of every relation (R,)."""
        origin = self.graph.origin
        if self._scorer is not None:
            nodes, relations = (judge(question) for judge in self._judges)
            failures += nodes.failures + relations.failures
            return nodes.values, relations.values
        assert origin is not None  # else there is a scorer
        embedder: Any = self._embedder or origin.embedder
        vector = query_vector(embedder, question)
        node_scores, relation_scores = (part @ vector for part in self._vectors)
        # an equivalence of two names does not answer a question
        relation_scores[origin.equivalence_relation] = 0
        return node_scores, relation_scores

    @cached_property
    def _judges(self) -> list[Callable[[str], Scored]]:
        """Return functions that score the names of nodes and of relations for a question; both are prepared once."""
        scorer: Any = self._scorer
        judges: list[Callable[[str], Scored]] = []
        for listed in (self.graph.nodes, self.graph.relations):
            names = list(map(plain_name, listed))
            if isinstance(scorer, RelativeScorer):
                judges.append(scorer.over(names))
            else:
                judges.append(partial(scorer.score, texts=names))
        return judges

    @cached_property
    def _vectors(self) -> tuple[Floats, Floats]:
        """Return the vectors (N, d) and (R, d) in single precision; the disk may hold half precision."""
        origin: Any = self.graph.origin
        return (
            np.asarray(origin.entity_vectors, np.float32),
            np.asarray(origin.relation_vectors, np.float32),
        )
