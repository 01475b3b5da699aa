"""G-Retriever's subgraph of a question: a prize-collecting Steiner tree.

G-Retriever (arXiv:2402.07630), eq. 6 to 8: the k nodes that fit best have prizes k, k-1, ..., 1, edges likewise, an
edge costs C, and the connected subgraph S with the highest sum of prizes less |E(S)| C is wanted. pcst_fast knows only
node prizes: an edge of prize P <= C becomes one of cost C - P, and one of P > C becomes a virtual node of prize P - C
that costs nothing to reach from either end. In a large graph only a neighbourhood is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles, Floats, Ints
from ras_agent.errors import MissingExtra, SettingsError
from ras_agent.protocols import Embedder, Scored, Scorer
from ras_agent.records import Failure
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.subgraph.extract import Extraction, ppr
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.scoring import RelativeScorer, best

_LESS = 0.01
"""How much less than the prize of a better score the published code gives, as a share of it."""


@dataclass(frozen=True, slots=True)
class Prizes:
    """Prizes of a subgraph's nodes (n,) and edges (m,), at least 0, in their order, and the cost C of an edge."""

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
    """The problem as pcst_fast takes it, with prizes of nodes only.

    The nodes of the subgraph come first, then v virtual ones.
    ends: (M, 2), the nodes of each edge; prizes: (n + v,); costs: (M,).
    plain: (m',), the subgraph's edge behind each of the first m' rows of `ends`.
    virtual: (v,), the subgraph's edge behind each virtual node. The last 2v rows of `ends` join it to the ends of that
        edge, at cost 0.
    """

    ends: Ints
    prizes: Doubles
    costs: Doubles
    plain: Ints
    virtual: Ints


def prizes_of(
    node_scores: npt.NDArray[Any],
    edge_scores: npt.NDArray[Any],
    *,
    nodes: int = 3,
    edges: int = 5,
    cost: float = 0.5,
    published: bool = False,
) -> Prizes:
    """Give the best node the prize `nodes`, the next one less by 1, and so on down to 1; edges likewise, from `edges`.

    A score of 0 or less gets no prize. Nodes that tie keep their order. Edges tie whenever they share a relation, so
    those of one score share its prize. Defaults are the paper's for WebQSP; for scene graphs it has 3, 3 and cost 1.

    published: as G-Retriever's code does, which the paper does not say. Any score may get a prize; there are no more
    prizes of edges than different scores, and an edge's is below that of a better score even where more edges share
    that; the cost is lowered below the best edge's prize, so that at least one edge is worth it.
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
    """Return the problem with only node prizes that has the same best value; `ends` (m, 2) number nodes from 0."""
    dear = prizes.edges > prizes.cost
    loops = ends[:, 0] == ends[:, 1]
    # a loop that is not worth its cost is never taken
    plain = np.flatnonzero(~dear & ~loops)
    plain_ends = ends[plain].reshape(-1, 2)
    plain_costs = prizes.cost - prizes.edges[plain]
    virtual = np.flatnonzero(dear)
    virtual_prizes = prizes.edges[virtual] - prizes.cost
    stand_ins = len(prizes.nodes) + np.arange(len(virtual))
    # from one end to the virtual node and on to the other, edge after edge: pcst_fast breaks ties by this order
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
    """Return the best connected part that pcst_fast finds, or `trees` of them; empty without prizes.

    It is within a factor of 2 on costs plus prizes not collected. published: with the pruning of G-Retriever's code,
    which leaves more, and without the edges that the tree went round. Raises MissingExtra without pcst-fast2.
    """
    graph = subgraph.graph
    edges = graph.edges[subgraph.edges]
    ends = np.searchsorted(subgraph.nodes, edges[:, [0, 2]]).reshape(-1, 2)
    problem = instance_of(ends, prizes)
    if not len(problem.prizes) or not problem.prizes.max() > 0:
        return Subgraph.of_edges(graph, ())
    # "strong" pruning is at least as good as the published code's "gw"
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
    # an edge with a virtual node that hangs on one end brings the other end with it, at no cost
    picked_nodes = picks[picks < count]
    nodes = np.union1d(picked_nodes, ends[edges].ravel())
    # prizes of edges inside that the tree went round: a subgraph may have cycles, and these are worth their cost
    if not published:
        inside = np.isin(ends, nodes).all(axis=1)
        worth = prizes.edges > prizes.cost
        gained = np.flatnonzero(inside & worth)
        edges = np.union1d(edges, gained)
    return Subgraph.of_edges(graph, subgraph.edges[edges], subgraph.nodes[nodes])


@cache
def _pcst_fast() -> Any:
    try:
        from pcst_fast import pcst_fast
    except ImportError as error:
        raise MissingExtra("PCST subgraphs", "graph") from error
    # the first pcst-fast has the same module, and under numpy 2 it answers [0, 0] here without a word
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
    """Prizes, costs and the neighbourhood. Defaults are the paper's for WebQSP.

    nodes, edges: how many have prizes, and the best one's prize; 0 and 0 take the whole neighbourhood, as the paper
        does for small graphs. cost: of an edge.
    named_prize: the further prize of a node that the question names; the paper has no such prize.
    trees: the most parts that need not be connected with each other; one in the paper.
    published: prizes of ties and pruning as in G-Retriever's code; see `prizes_of` and `steiner_tree`.
    neighbourhood: a graph of more than `max_ent` nodes is cut to those of highest PageRank, started from the best nodes
        and from those that the question names.
    """

    nodes: int = 3
    edges: int = 5
    cost: float = 0.5
    named_prize: float = 0.0
    trees: int = 1
    published: bool = False
    neighbourhood: Extraction = field(default_factory=Extraction)

    def __post_init__(self) -> None:
        if min(self.nodes, self.edges, self.cost, self.named_prize) < 0:
            raise ValueError(
                f"nodes, edges, cost and named_prize have to be at least 0, got {self}"
            )
        if self.trees < 1:
            raise ValueError(f"trees has to be at least 1, got {self}")


@dataclass(frozen=True, slots=True)
class QuestionSubgraph:
    """A question's subgraph, and how many nodes and edges were searched.

    node_prizes, edge_prizes: of the subgraph's nodes and edges, in their order.
    """

    subgraph: Subgraph
    nodes: int
    edges: int
    node_prizes: npt.NDArray[np.float64]
    edge_prizes: npt.NDArray[np.float64]
    failures: tuple[Failure, ...] = ()


class PCSTFinder:
    """Finder of subgraphs in one graph; a scorer judges its names, or the vectors of its KGIndex do."""

    def __init__(
        self,
        graph: Graph,
        scorer: Scorer | None = None,
        settings: PCSTSettings | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Take the graph, and a scorer of names. Raises ValueError for a graph without vectors and no scorer.

        scorer: judges names of nodes and relations; without one the graph's own vectors do, and `embedder` (by default
            the graph's) embeds questions.
        """
        self.graph = graph
        self._scorer = scorer
        self.settings = settings or PCSTSettings()
        self._embedder = embedder
        if scorer is None and (
            graph.origin is None or graph.origin.entity_vectors is None
        ):
            raise ValueError(
                "PCST needs a judge of what fits the question: give a scorer, or a KGIndex with vectors"
            )

    def find(
        self,
        question: str,
        starts: Sequence[int] = (),
        weights: Sequence[float] | None = None,
    ) -> QuestionSubgraph:
        """Find the question's subgraph.

        starts: nodes that the question names; the neighbourhood is taken around them too, and each gets the prize
            `settings.named_prize` times its weight.
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
        """Score every node (N,) and every relation (R,)."""
        origin = self.graph.origin
        if self._scorer is not None:
            nodes, relations = (judge(question) for judge in self._judges)
            failures += nodes.failures + relations.failures
            return nodes.values, relations.values
        assert origin is not None  # else there is a scorer
        embedder: Any = self._embedder or origin.embedder
        vector = query_vector(embedder, question)
        node_scores, relation_scores = (part @ vector for part in self._vectors)
        # that two names mean one thing answers no question
        relation_scores[origin.equivalence_relation] = 0
        return node_scores, relation_scores

    @cached_property
    def _judges(self) -> list[Callable[[str], Scored]]:
        """Return the scorer over the names of nodes and over those of relations; both are prepared once."""
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
        """Return the vectors (N, d) and (R, d) in single precision; on the disk they may be half."""
        origin: Any = self.graph.origin
        return (
            np.asarray(origin.entity_vectors, np.float32),
            np.asarray(origin.relation_vectors, np.float32),
        )
