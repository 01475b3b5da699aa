"""Finds reasoning paths by enumeration or beam search, and chooses among them (LEGO-GraphRAG's second and third
module).

A path leads from an entity of the question along edges, in either direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from random import Random

import numpy as np

from ras_agent.contracts.records import Failure, Triple
from ras_agent.running.protocols import Scorer
from ras_agent.tools.subgraph.graph import (
    Graph,
    Step,
    Subgraph,
    adjacency_of,
    plain_name,
)
from ras_agent.tools.subgraph.scoring import (
    RelativeScorer,
    Wording,
    best,
    score_distinct,
)


@dataclass(frozen=True, slots=True)
class Path:
    """Holds a path as numbers of nodes and edges of a graph; `edges[i]` joins `nodes[i]` and `nodes[i + 1]`."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """Return the first node."""
        return self.nodes[0]

    @property
    def end(self) -> int:
        """Return the last node."""
        return self.nodes[-1]

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.edges)

    def extended(self, step: Step) -> Path:
        """Return the path with one more step."""
        nodes = (*self.nodes, step.node)
        edges = (*self.edges, step.edge)
        return Path(nodes, edges)

    def triples(self, graph: Graph) -> tuple[Triple, ...]:
        """Return the edges of the path as facts."""
        facts = map(graph.triple, self.edges)
        return tuple(facts)

    def text(self, graph: Graph, label: Callable[[str], str] = str) -> str:
        """Return the path as text for readers: "frederica → spouse → ernest ← parents ← george".

        Args:
            label: returns a name as it is shown.
        """
        words = self._words(graph, label)
        return " ".join(words)

    def scored_text(self, graph: Graph, wording: Wording = "facts") -> str:
        """Return the path as text for scorers, with plain names, or for "relations" only "→ spouse ← parents"."""
        has_names = wording != "relations"
        words = self._words(graph, plain_name, has_names)
        return " ".join(words)

    def _words(
        self, graph: Graph, label: Callable[[str], str], names: bool = True
    ) -> list[str]:
        words = []
        if names:
            words.append(label(graph.nodes[self.start]))
        before = self.start
        further = self.nodes[1:]
        for after, edge in zip(further, self.edges, strict=True):
            row: list[int] = graph.edges[edge].tolist()
            head, relation, _ = row
            arrow = "←"
            if head == before:
                arrow = "→"
            words += [arrow, label(graph.relations[relation])]
            if names:
                words += [arrow, label(graph.nodes[after])]
            before = after
        return words


@dataclass(frozen=True, slots=True)
class PathLimits:
    """Sets limits of the search for paths."""

    longest: int = 4
    """The maximum number of edges of a path. 0 means no limit, which `complete` does not allow, since it might never
    end.
    """
    most: int = 20000
    """The maximum number of paths, the shortest first; `Filtered.truncated` says whether there were more."""
    width: int = 128
    """The width of the beam. 128 is the paper's; the other two defaults are ours, since the paper does not state them.
    """

    def __post_init__(self) -> None:
        if self.longest < 0 or self.most < 1 or self.width < 1:
            raise ValueError(
                f"longest has to be at least 0, most and width at least 1, got {self}"
            )


@dataclass(frozen=True, slots=True)
class Filtered:
    """Holds paths in the order in which they were found."""

    paths: tuple[Path, ...]
    truncated: bool = False
    """Whether there were more paths than `PathLimits.most`."""
    failures: tuple[Failure, ...] = ()


def shortest(
    subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()
) -> Filtered:
    """Return every shortest path from each start to each other node, the shortest first.

    Directions are ignored; parallel edges give several paths. Raises MissingExtra without scipy.
    """
    nodes = subgraph.nodes.tolist()
    edges = subgraph.graph.edges[subgraph.edges]
    ends = np.searchsorted(subgraph.nodes, edges[:, [0, 2]])
    adjacency = adjacency_of(ends, len(nodes))
    from scipy.sparse.csgraph import dijkstra

    # by length and not by start, so that the limit drops the longest paths
    levels = _begin_at(starts, subgraph)
    away: list[dict[int, float]] = []
    for (begun,) in levels:
        place = np.searchsorted(subgraph.nodes, begun.start)
        # infinite if no path leads there
        row = dijkstra(adjacency, unweighted=True, indices=place)
        distances = zip(nodes, row.tolist(), strict=True)
        away.append(dict(distances))

    def distance(turn: int, node: int) -> float:
        return away[turn].get(node, inf)

    paths = _by_level(subgraph, levels, limits, distance)
    return _take_first(paths, limits)


def complete(
    subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()
) -> Filtered:
    """Return every path from each start that visits no node twice, including detours, the shortest first.

    Raises ValueError if `limits.longest` is 0.
    """
    if not limits.longest:
        raise ValueError("complete paths need a maximum length: give `longest`")
    levels = _begin_at(starts, subgraph)
    paths = _by_level(subgraph, levels, limits, None)
    return _take_first(paths, limits)


def _begin_at(starts: Sequence[int], subgraph: Subgraph) -> list[list[Path]]:
    """Return, for each start in the subgraph, a list with a path of no edges."""
    inside = set(subgraph.nodes.tolist())
    begun = []
    for start in dict.fromkeys(starts):
        if start in inside:
            begun.append([Path((start,))])
    return begun


def beam(
    subgraph: Subgraph,
    starts: Sequence[int],
    scorer: Scorer,
    question: str,
    limits: PathLimits = PathLimits(),
    wording: Wording = "facts",
) -> Filtered:
    """Find paths by beam search: grow them edge by edge from each start, and keep the `width` best of every length.

    All kept paths are returned, best first. A path's score is the mean of its edges' scores, so that paths of
    different lengths can be compared. Each text is scored once for a question; a RelativeScorer instead scores the
    texts of all paths of one length from one start together, so that a score does not depend on other starts. If
    `limits.longest` is 0, the length has no limit.

    Args:
        wording: the form of the texts that the scorer reads.
    """
    values: dict[str, float] = {}  # text -> score
    failures: list[Failure] = []
    candidates: list[tuple[float, Path]] = []
    for start in dict.fromkeys(starts):
        front = [(0.0, Path((start,)))]  # (sum of edge scores, path)
        while front and (not limits.longest or len(front[0][1]) < limits.longest):
            longer = _longer(subgraph, front)
            texts = []
            for _, path in longer:
                text = subgraph.graph.edge_text(path.edges[-1], wording)
                texts.append(text)
            if isinstance(scorer, RelativeScorer):
                values.clear()
            fresh = [text for text in dict.fromkeys(texts) if text not in values]
            if fresh:
                scored = scorer.score(question, fresh)
                values.update(zip(fresh, scored.values.tolist(), strict=True))
                failures += scored.failures
            grown = []
            means = []
            for (total, path), text in zip(longer, texts, strict=True):
                total += values[text]
                grown.append((total, path))
                means.append(total / len(path))
            scores = np.array(means, dtype=np.float32)
            front = []
            for place in best(scores, limits.width):
                total, path = grown[place]
                front.append((total, path))
                candidates.append((means[place], path))
    # the sort is stable, so of equal scores the shorter path comes first
    candidates.sort(key=lambda candidate: -candidate[0])
    paths = [path for _, path in candidates[: limits.most]]
    return Filtered(
        paths=tuple(paths),
        truncated=len(candidates) > limits.most,
        failures=tuple(failures),
    )


def _longer(
    subgraph: Subgraph, front: Sequence[tuple[float, Path]]
) -> list[tuple[float, Path]]:
    """Return the paths that are one edge longer, each with the score sum before its last edge."""
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
    """Yield the paths from all starts by length; no path visits a node twice.

    Args:
        distance: returns the distance of a node from a start, given the start's index in `levels` and the node; if
            given, only shortest paths are yielded.
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
    first = islice(paths, limits.most)
    kept = tuple(first)
    truncated = next(paths, None) is not None
    return Filtered(kept, truncated)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Holds a pruned subgraph, and the failures of the scorer."""

    subgraph: Subgraph
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedPath:
    """Holds a path with its score; higher is better.

    Scores of one question can be compared; paths chosen at random have 0.
    """

    path: Path
    score: float


@dataclass(frozen=True, slots=True)
class Refined:
    """Holds the chosen paths, best first, and the failures of the scorer."""

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
    """Return the subgraph of the `window` edges with the best scores, with their ends, and the starts.

    The paper's window is 24.

    Args:
        starts: numbers of nodes that stay in any case.
        wording: the form of the texts that the scorer reads.
    """
    edges = subgraph.edges.tolist()
    texts = [subgraph.graph.edge_text(edge, wording) for edge in edges]
    scored = score_distinct(scorer, question, texts)
    places = best(scored.values, window)
    best_edges = subgraph.edges[places]
    nodes = set(subgraph.nodes.tolist())
    inside = [start for start in starts if start in nodes]
    kept = Subgraph.of_edges(subgraph.graph, best_edges, inside)
    return Pruned(kept, scored.failures)


def at_random(paths: Sequence[Path], top_k: int, seed: int = 0) -> Refined:
    """Choose `top_k` of the paths at random, in their order. The same seed chooses the same paths."""
    every = range(len(paths))
    count = min(top_k, len(paths))
    places = Random(seed).sample(every, count)
    chosen = []
    for place in sorted(places):
        ranked = RankedPath(paths[place], score=0.0)
        chosen.append(ranked)
    return Refined(tuple(chosen))


def by_score(
    graph: Graph,
    paths: Sequence[Path],
    top_k: int,
    scorer: Scorer,
    question: str,
    wording: Wording = "facts",
) -> Refined:
    """Return the `top_k` paths with the best scores, best first, equal ones in their order.

    Args:
        wording: the form of the texts that the scorer reads.
    """
    texts = [path.scored_text(graph, wording) for path in paths]
    scored = score_distinct(scorer, question, texts)
    ranked = []
    for place in best(scored.values, top_k):
        score = float(scored.values[place])
        ranked.append(RankedPath(paths[place], score))
    return Refined(tuple(ranked), scored.failures)
