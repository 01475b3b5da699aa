"""Reasoning paths: found by shape or led by a scorer, then refined (LEGO-GraphRAG's second and third module).

A path leads from an entity of the question over edges, whichever way they point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from random import Random

import numpy as np

from ras_agent.records import Failure, Triple
from ras_agent.tools.subgraph.graph import (
    Graph,
    Step,
    Subgraph,
    adjacency_of,
    plain_name,
)
from ras_agent.tools.subgraph.scoring import (
    RelativeScorer,
    Scorer,
    Wording,
    best,
    score_distinct,
)


@dataclass(frozen=True, slots=True)
class Path:
    """Nodes and edges by their numbers in the graph; `edges[i]` joins `nodes[i]` and `nodes[i + 1]`."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        return self.nodes[0]

    @property
    def end(self) -> int:
        return self.nodes[-1]

    def __len__(self) -> int:
        """Count its edges."""
        return len(self.edges)

    def extended(self, step: Step) -> Path:
        return Path((*self.nodes, step.node), (*self.edges, step.edge))

    def triples(self, graph: Graph) -> tuple[Triple, ...]:
        return tuple(map(graph.triple, self.edges))

    def text(self, graph: Graph, label: Callable[[str], str] = str) -> str:
        """Draw the path for readers: "frederica → spouse → ernest ← parents ← george". label: the form of a name."""
        return " ".join(self._words(graph, label))

    def scored_text(self, graph: Graph, wording: Wording = "facts") -> str:
        """Draw the path for scorers, with plain names; or only its relations, "→ spouse ← parents"."""
        words = self._words(graph, plain_name, names=wording != "relations")
        return " ".join(words)

    def _words(
        self, graph: Graph, label: Callable[[str], str], names: bool = True
    ) -> list[str]:
        words = []
        if names:
            words.append(label(graph.nodes[self.start]))
        for before, after, edge in zip(
            self.nodes, self.nodes[1:], self.edges, strict=False
        ):
            head, relation, _ = map(int, graph.edges[edge])
            arrow = "→" if head == before else "←"
            words += [arrow, label(graph.relations[relation])]
            if names:
                words += [arrow, label(graph.nodes[after])]
        return words


@dataclass(frozen=True, slots=True)
class PathLimits:
    """Limits of the search for paths.

    longest: edges of a path; 0 for any number, which complete paths refuse, since they might never end.
    most: how many paths are returned, the shortest first; `Filtered.truncated` reports that there were more.
    width: of the beam. The published width is 128; the other two are ours, since the paper does not state them.
    """

    longest: int = 4
    most: int = 20000
    width: int = 128

    def __post_init__(self) -> None:
        if self.longest < 0 or self.most < 1 or self.width < 1:
            raise ValueError(
                f"longest is at least 0, most and width at least 1, got {self}"
            )


@dataclass(frozen=True, slots=True)
class Filtered:
    """Paths in the order they were found. truncated: there were more than `most`."""

    paths: tuple[Path, ...]
    truncated: bool = False
    failures: tuple[Failure, ...] = ()


def shortest(
    subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()
) -> Filtered:
    """Find every shortest path from each start to each other node, the shortest first; parallel edges make several.

    Directions do not count. scipy measures the distances; paths are then read off edge by edge. Raises MissingExtra
    without scipy.
    """
    inside = {int(node): place for place, node in enumerate(subgraph.nodes)}
    edges = subgraph.graph.edges[subgraph.edges]
    ends = np.searchsorted(subgraph.nodes, edges[:, [0, 2]])
    adjacency = adjacency_of(ends, len(inside))
    from scipy.sparse.csgraph import dijkstra

    sources = [start for start in dict.fromkeys(starts) if start in inside]
    away = []
    for start in sources:
        # infinite where no path leads
        row = dijkstra(adjacency, unweighted=True, indices=inside[start])
        away.append(dict(zip(inside, row.tolist(), strict=True)))
    # level by level and not start by start, so that the limit cuts the longest
    levels = [[Path((start,))] for start in sources]
    paths = _by_level(
        subgraph, levels, limits, lambda turn, node: away[turn].get(node, inf)
    )
    return _take_first(paths, limits)


def complete(
    subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()
) -> Filtered:
    """Find every path from each start that meets no node twice, detours included; the shortest first."""
    if not limits.longest:
        raise ValueError("complete paths need a length cap: give `longest`")
    inside = set(subgraph.nodes.tolist())
    levels = [[Path((start,))] for start in dict.fromkeys(starts) if start in inside]
    paths = _by_level(subgraph, levels, limits, None)
    return _take_first(paths, limits)


def beam(
    subgraph: Subgraph,
    starts: Sequence[int],
    scorer: Scorer,
    question: str,
    limits: PathLimits = PathLimits(),
    wording: Wording = "facts",
) -> Filtered:
    """Grow paths edge by edge from each start, keep the `width` best at every length, and return all that were kept.

    A path's score is the mean of its edges' scores, so that paths of different lengths compare; the best come first.
    A text is scored once per question. A RelativeScorer scores it once per front instead (the paths of one length from
    one start), so that a score does not depend on the other starts. `longest` 0 sets no limit.
    """
    values: dict[str, float] = {}  # by text
    failures: list[Failure] = []
    candidates: list[tuple[float, Path]] = []
    for start in dict.fromkeys(starts):
        front = [(0.0, Path((start,)))]  # with the sum of its edges' scores
        while front and (not limits.longest or len(front[0][1]) < limits.longest):
            longer = _longer(subgraph, front)
            texts = [
                subgraph.graph.edge_text(path.edges[-1], wording) for _, path in longer
            ]
            if isinstance(scorer, RelativeScorer):
                values.clear()
            fresh = [text for text in dict.fromkeys(texts) if text not in values]
            if fresh:
                scored = scorer.score(question, fresh)
                values.update(zip(fresh, scored.values.tolist(), strict=True))
                failures += scored.failures
            grown = []
            for (total, path), text in zip(longer, texts, strict=True):
                grown.append((total + values[text], path))
            means = np.array(
                [total / len(path) for total, path in grown], dtype=np.float32
            )
            front = [grown[place] for place in best(means, limits.width)]
            candidates += [(total / len(path), path) for total, path in front]
    # stable: the shorter first among equals
    candidates.sort(key=lambda candidate: -candidate[0])
    paths = [path for _, path in candidates[: limits.most]]
    return Filtered(
        tuple(paths), truncated=len(candidates) > limits.most, failures=tuple(failures)
    )


def _longer(
    subgraph: Subgraph, front: Sequence[tuple[float, Path]]
) -> list[tuple[float, Path]]:
    """Return the paths that are one edge longer, each with the sum before its last edge."""
    longer = []
    for total, path in front:
        for step in subgraph.steps.get(path.end, ()):
            if step.node not in path.nodes:
                longer.append((total, path.extended(step)))
    return longer


def _by_level(
    subgraph: Subgraph,
    levels: list[list[Path]],
    limits: PathLimits,
    distance: Callable[[int, int], float] | None,
) -> Iterator[Path]:
    """Yield the paths from all starts by length; no path meets a node twice.

    distance: gives a node's distance from start number `turn`; with it only shortest paths are yielded.
    """
    length = 0
    while any(levels) and (not limits.longest or length < limits.longest):
        length += 1
        for turn, front in enumerate(levels):
            grown = []
            for path in front:
                for step in subgraph.steps.get(path.end, ()):
                    if distance:
                        fits = distance(turn, step.node) == length
                    else:
                        fits = step.node not in path.nodes
                    if fits:
                        longer = path.extended(step)
                        grown.append(longer)
                        yield longer
            levels[turn] = grown


def _take_first(paths: Iterator[Path], limits: PathLimits) -> Filtered:
    first = tuple(islice(paths, limits.most))
    truncated = next(paths, None) is not None
    return Filtered(first, truncated)


@dataclass(frozen=True, slots=True)
class Pruned:
    subgraph: Subgraph
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedPath:
    """A path with its score, higher is better; comparable within one question, 0 for paths taken at random."""

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
    """Keep the `window` edges that fit the question best, with their ends, and the starts. The paper has 24."""
    edges = subgraph.edges.tolist()
    texts = [subgraph.graph.edge_text(edge, wording) for edge in edges]
    scored = score_distinct(scorer, question, texts)
    best_edges = subgraph.edges[best(scored.values, window)]
    nodes = set(subgraph.nodes.tolist())
    inside = [start for start in starts if start in nodes]
    return Pruned(
        Subgraph.of_edges(subgraph.graph, best_edges, inside), scored.failures
    )


def at_random(paths: Sequence[Path], top_k: int, seed: int = 0) -> Refined:
    """Take `top_k` of the paths at random, in their order; the same seed takes the same ones."""
    count = min(top_k, len(paths))
    places = sorted(Random(seed).sample(range(len(paths)), count))
    return Refined(tuple(RankedPath(paths[place], 0.0) for place in places))


def by_score(
    graph: Graph,
    paths: Sequence[Path],
    top_k: int,
    scorer: Scorer,
    question: str,
    wording: Wording = "facts",
) -> Refined:
    """Take the `top_k` paths that fit the question best, best first, ties in their order."""
    texts = [path.scored_text(graph, wording) for path in paths]
    scored = score_distinct(scorer, question, texts)
    ranked = []
    for place in best(scored.values, top_k):
        ranked.append(RankedPath(paths[place], float(scored.values[place])))
    return Refined(tuple(ranked), scored.failures)
