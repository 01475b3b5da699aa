"""Prize-collecting Steiner tree: the connected subgraph whose nodes and edges are worth more than its edges cost.

G-Retriever (arXiv:2402.07630), eq. 6 to 8: the k nodes that fit best have prizes k, k-1, ..., 1, edges likewise, an
edge costs C, and the subgraph S with the highest sum of prizes less |E(S)| C is wanted. pcst_fast knows node prizes
alone: an edge of prize P <= C becomes one of cost C - P, and one of P > C becomes a virtual node of prize P - C that
costs nothing to reach from either end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles, Ints
from ras_agent.errors import MissingExtra, SettingsError
from ras_agent.tools.subgraph.graph import Subgraph
from ras_agent.tools.subgraph.scoring import best

__all__ = ["Instance", "Prizes", "instance_of", "prizes_of", "steiner_tree"]


@dataclass(frozen=True, slots=True)
class Prizes:
    """nodes: (n,), edges: (m,), at least 0, of a subgraph's nodes and edges in their order. cost: C, of an edge."""

    nodes: Doubles
    edges: Doubles
    cost: float = 0.5

    def __post_init__(self) -> None:
        if self.cost < 0 or self.nodes.min(initial=0) < 0 or self.edges.min(initial=0) < 0:
            raise ValueError("prizes and the cost of an edge cannot be negative")


@dataclass(frozen=True, slots=True)
class Instance:
    """What pcst-fast gets: node prizes only. The nodes of the subgraph come first, then the virtual ones.

    ends: (M, 2); prizes: (n + v,); costs: (M,). plain: (m',) the edges that the first m' rows of `ends` stand for;
    virtual: (v,) the edges that the virtual nodes stand for, each with two free rows behind.
    """

    ends: Ints
    prizes: Doubles
    costs: Doubles
    plain: Ints
    virtual: Ints


def prizes_of(
    node_scores: npt.NDArray[Any], edge_scores: npt.NDArray[Any], *, nodes: int = 3, edges: int = 5, cost: float = 0.5
) -> Prizes:
    """The `nodes` best nodes get nodes, nodes - 1, ..., 1, and the `edges` best edges likewise; the others nothing.

    What scores 0 or less does not fit at all and gets nothing. Nodes that tie keep their order. Edges tie whenever they
    share a relation, so those of one score share its prize.
    Defaults are the paper's for WebQSP; for scene graphs it has 3, 3 and a cost of 1.
    """
    node_prizes, edge_prizes = np.zeros(len(node_scores)), np.zeros(len(edge_scores))
    top = [place for place in best(np.asarray(node_scores), nodes) if node_scores[place] > 0]
    node_prizes[top] = np.arange(nodes, nodes - len(top), -1)
    for rank, score in enumerate(np.unique(edge_scores[edge_scores > 0])[::-1][:edges]):
        equal = np.flatnonzero(edge_scores == score)
        edge_prizes[equal] = (edges - rank) / len(equal)
    return Prizes(node_prizes, edge_prizes, cost)


def instance_of(ends: Ints, prizes: Prizes) -> Instance:
    """The problem with node prizes alone that has the same best value; `ends` (m, 2) number the n nodes from 0."""
    count = len(prizes.nodes)
    dear = prizes.edges > prizes.cost
    loops = ends[:, 0] == ends[:, 1]  # one that is not worth its cost is never taken
    plain, virtual = np.flatnonzero(~dear & ~loops), np.flatnonzero(dear)
    stand_ins = count + np.arange(len(virtual))
    return Instance(
        ends=np.concatenate(
            [
                ends[plain].reshape(-1, 2),
                np.stack([ends[virtual, 0], stand_ins], axis=1),
                np.stack([stand_ins, ends[virtual, 1]], axis=1),
            ]
        ).astype(np.int64),
        prizes=np.concatenate([prizes.nodes, prizes.edges[virtual] - prizes.cost]),
        costs=np.concatenate([prizes.cost - prizes.edges[plain], np.zeros(2 * len(virtual))]),
        plain=plain,
        virtual=virtual,
    )


def steiner_tree(subgraph: Subgraph, prizes: Prizes, trees: int = 1) -> Subgraph:
    """The connected part that pcst_fast finds best, or `trees` of them.

    Its guarantee is a factor of 2 on costs plus prizes left behind.

    Empty if nothing has a prize. Raises MissingExtra without pcst-fast2.
    """
    graph = subgraph.graph
    ends = np.searchsorted(subgraph.nodes, graph.edges[subgraph.edges][:, [0, 2]]).reshape(-1, 2).astype(np.int64)
    problem = instance_of(ends, prizes)
    if not len(problem.prizes) or not problem.prizes.max() > 0:
        return Subgraph.of_edges(graph, ())
    # "strong" pruning is at least as good as the published code's "gw"
    chosen, rows = _pcst_fast()(problem.ends, problem.prizes, problem.costs, -1, trees, "strong", 0)
    chosen, rows = np.asarray(chosen, dtype=np.int64), np.asarray(rows, dtype=np.int64)
    count = len(prizes.nodes)
    bought = problem.virtual[chosen[chosen >= count] - count]
    edges = np.union1d(problem.plain[rows[rows < len(problem.plain)]], bought)
    # an edge whose virtual node hangs on one end brings the other end with it, for nothing
    nodes = np.union1d(chosen[chosen < count], ends[edges].ravel())
    # prizes of edges inside that the tree went round: a subgraph may have cycles, and these are worth their cost
    inside = np.isin(ends, nodes).all(axis=1) & (prizes.edges > prizes.cost)
    edges = np.union1d(edges, np.flatnonzero(inside))
    return Subgraph.of_edges(graph, subgraph.edges[edges], subgraph.nodes[nodes])


@cache
def _pcst_fast() -> Any:
    try:
        from pcst_fast import pcst_fast
    except ImportError as error:
        raise MissingExtra("PCST subgraphs", "graph") from error
    # the first pcst-fast has the same module, and under numpy 2 it answers [0, 0] here without a word
    nodes, _ = pcst_fast(np.array([[0, 1]]), np.ones(2), np.array([0.5]), -1, 1, "strong", 0)
    if sorted(nodes.tolist()) != [0, 1]:
        raise SettingsError(
            "the package pcst-fast gives wrong results with numpy 2: "
            "pip uninstall pcst-fast && pip install --force-reinstall pcst-fast2"
        )
    return pcst_fast
