"""Extracts the neighbourhood of a question's entities as a subgraph: LEGO-GraphRAG's first module.

Its nodes are chosen by personalised PageRank, by random walks with restart, or by distance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from ras_agent.tools.index.ties import best_places
from ras_agent.tools.kg.page_rank import PageRank
from ras_agent.tools.subgraph.graph import Graph, Subgraph

_TOLERANCE = 1e-12  # small, as the smallest scores decide which nodes are still taken


@dataclass(frozen=True, slots=True)
class Extraction:
    """Sets how subgraphs are extracted. Defaults are LEGO-GraphRAG's (section 5.1)."""

    max_ent: int = 2000
    """The maximum number of nodes; the entities that the question starts from are always among them."""
    damping: float = 0.8
    """The probability that a walk goes on rather than restarting. The paper calls 0.8 damping in section 5.1 and
    teleport in 4.1; here it is damping.
    """
    walks: int = 64
    """The number of random walks from each start."""
    steps: int = 32
    """The maximum number of steps of a walk."""
    seed: int = 0
    """The seed of the random choices."""
    hops: int = 3
    """The radius of an ego network."""

    def __post_init__(self) -> None:
        counts = (self.max_ent, self.walks, self.steps, self.hops)
        if min(counts) < 1 or not 0 <= self.damping < 1:
            raise ValueError(
                f"max_ent, walks, steps and hops have to be at least 1, and damping at least 0 and below 1, got {self}"
            )


def ppr(
    graph: Graph, starts: Sequence[int], how: Extraction = Extraction()
) -> Subgraph:
    """Return the subgraph of the nodes with the highest PageRank personalised to `starts`, with all edges between
    them.

    At most `how.max_ent` nodes are taken; among equals, those with lower numbers. Walks ignore the edges' directions.
    Nodes that no walk reaches are left out. Raises MissingExtra without scipy.

    Args:
        starts: the numbers of the nodes at which walks start.
    """
    if not starts:
        return Subgraph.induced(graph, ())
    seeds = np.zeros(len(graph.nodes))
    seeds[list(starts)] = 1
    walk = PageRank(
        graph.adjacency,
        damping=how.damping,
        tolerance=_TOLERANCE,
    )
    scores = walk.scores(seeds)
    best = best_places(scores, how.max_ent, relative=True)
    reached = best[scores[best] > 0]
    return _around(graph, starts, reached.tolist(), how)


def rwr(
    graph: Graph, starts: Sequence[int], how: Extraction = Extraction()
) -> Subgraph:
    """Return the subgraph of the nodes that random walks from `starts` visit most, with all edges between them.

    At most `how.max_ent` nodes are taken; among equals, those with lower numbers. `how.walks` walks leave each start;
    after every step a walk ends with a probability of 1 - damping.

    Args:
        starts: the numbers of the nodes at which walks start.
    """
    dice = Random(how.seed)
    visits = Counter[int]()
    near = cache(graph.neighbours)
    for start in sorted(set(starts)):
        for _ in range(how.walks):
            node = start
            for _ in range(how.steps):
                if not near(node):
                    break
                node = dice.choice(near(node))
                visits[node] += 1
                if dice.random() >= how.damping:
                    break
    ranked = sorted(visits, key=lambda node: (-visits[node], node))
    return _around(graph, starts, ranked, how)


def ego(
    graph: Graph, starts: Sequence[int], how: Extraction = Extraction()
) -> Subgraph:
    """Return the subgraph of the nodes at most `how.hops` edges away from a start, with all edges between them.

    At most `how.max_ent` nodes are taken, the nearest first, then the lower number.
    """
    if not starts:
        return Subgraph.induced(graph, ())
    adjacency = graph.adjacency
    from scipy.sparse.csgraph import dijkstra

    # each node's distance to the nearest start, infinite beyond the radius
    distances = dijkstra(
        adjacency,
        unweighted=True,
        indices=sorted(set(starts)),
        min_only=True,
        limit=how.hops,
    )
    reached = np.flatnonzero(np.isfinite(distances))
    nearest = np.argsort(distances[reached], kind="stable")
    return _around(graph, starts, reached[nearest].tolist(), how)


EXTRACTIONS: Mapping[str, Callable[[Graph, Sequence[int], Extraction], Subgraph]] = {
    "ppr": ppr,
    "rwr": rwr,
    "ego": ego,
}


def _around(
    graph: Graph, starts: Sequence[int], ranked: Sequence[int], how: Extraction
) -> Subgraph:
    """Return the subgraph of the starts and the first nodes of `ranked`, at most `how.max_ent` nodes in all."""
    first = sorted(set(starts))
    nodes = list(dict.fromkeys([*first, *ranked]))
    return Subgraph.induced(graph, nodes[: how.max_ent])
