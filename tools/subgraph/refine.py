"""What scorers throw away: edges of a subgraph, and, as the third module, paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ras_agent.records import Failure
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.tools.subgraph.path import Path
from ras_agent.tools.subgraph.scoring import Scorer, Wording, best, score_distinct

__all__ = ["Pruned", "RankedPath", "Refined", "at_random", "by_score", "prune"]


@dataclass(frozen=True, slots=True)
class Pruned:
    subgraph: Subgraph
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedPath:
    """The higher the score the better, comparable within one question; paths taken at random score 0."""

    path: Path
    score: float


@dataclass(frozen=True, slots=True)
class Refined:
    paths: tuple[RankedPath, ...]
    failures: tuple[Failure, ...] = ()


def prune(
    subgraph: Subgraph,
    starts: Sequence[int],
    scorer: Scorer,
    question: str,
    window: int = 24,
    wording: Wording = "facts",
) -> Pruned:
    """The `window` edges that fit the question best, with their ends, and the starts. The published window is 24."""
    edges = subgraph.edges.tolist()
    scored = score_distinct(scorer, question, [subgraph.graph.edge_text(edge, wording) for edge in edges])
    kept = [edges[place] for place in best(scored.values, window)]
    inside = [start for start in starts if start in set(subgraph.nodes.tolist())]
    return Pruned(Subgraph.of_edges(subgraph.graph, kept, inside), scored.failures)


def at_random(paths: Sequence[Path], top_k: int, seed: int = 0) -> Refined:
    """`top_k` of the paths, in their order; the same seed takes the same."""
    places = sorted(Random(seed).sample(range(len(paths)), min(top_k, len(paths))))
    return Refined(tuple(RankedPath(paths[place], 0.0) for place in places))


def by_score(
    graph: Graph, paths: Sequence[Path], top_k: int, scorer: Scorer, question: str, wording: Wording = "facts"
) -> Refined:
    """The `top_k` paths that fit the question best, best first, ties in their order."""
    scored = score_distinct(scorer, question, [path.scored_text(graph, wording) for path in paths])
    kept = best(scored.values, top_k)
    return Refined(tuple(RankedPath(paths[place], float(scored.values[place])) for place in kept), scored.failures)
