"""Second module: paths from the question's entities through a subgraph, by shape alone or led by a scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ras_agent.records import Failure
from ras_agent.tools.subgraph.graph import Subgraph, require_igraph
from ras_agent.tools.subgraph.path import Path
from ras_agent.tools.subgraph.scoring import RelativeScorer, Scorer, Wording, best

__all__ = ["Filtered", "PathLimits", "beam", "complete", "shortest"]


@dataclass(frozen=True, slots=True)
class PathLimits:
    """longest: edges of a path, 0 for any number, which complete paths do not take: they would never end.

    most: paths kept, the shortest first; what is beyond is told in `Filtered.truncated`.
    width: of the beam. The published width is 128; the others are ours, for the paper states none.
    """

    longest: int = 4
    most: int = 20000
    width: int = 128

    def __post_init__(self) -> None:
        if self.longest < 0 or self.most < 1 or self.width < 1:
            raise ValueError(f"longest is at least 0, most and width at least 1, got {self}")


@dataclass(frozen=True, slots=True)
class Filtered:
    """Paths in the order they were found. truncated: `most` was reached, and there were more."""

    paths: tuple[Path, ...]
    truncated: bool = False
    failures: tuple[Failure, ...] = ()


def shortest(subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()) -> Filtered:
    """Every shortest path from each start to each other node, parallel edges apart; the shortest first.

    Directions do not count. igraph measures the distances; paths are then read off edge by edge.
    """
    inside = {int(node): place for place, node in enumerate(subgraph.nodes)}
    ends = np.searchsorted(subgraph.nodes, subgraph.graph.edges[subgraph.edges][:, [0, 2]])
    network = require_igraph().Graph(n=len(inside), edges=ends, directed=False)
    sources = [start for start in dict.fromkeys(starts) if start in inside]
    rows = network.distances([inside[start] for start in sources]) if sources else []
    away = [dict(zip(inside, row, strict=True)) for row in rows]
    # level by level and not start by start, so that the limit cuts the longest
    levels = [[Path((start,))] for start in sources]
    return _limited(_by_level(subgraph, levels, limits, lambda turn, node: away[turn].get(node, inf)), limits)


def complete(subgraph: Subgraph, starts: Sequence[int], limits: PathLimits = PathLimits()) -> Filtered:
    """Every path from each start that meets no node twice, detours included; the shortest first."""
    if not limits.longest:
        raise ValueError("complete paths need a length cap: give `longest`")
    inside = set(subgraph.nodes.tolist())
    levels = [[Path((start,))] for start in dict.fromkeys(starts) if start in inside]
    return _limited(_by_level(subgraph, levels, limits, None), limits)


def beam(
    subgraph: Subgraph,
    starts: Sequence[int],
    scorer: Scorer,
    question: str,
    limits: PathLimits = PathLimits(),
    wording: Wording = "facts",
) -> Filtered:
    """Paths grown edge by edge from each start, the `width` best kept at every length; all that were kept.

    A path's score is the mean of its edges' scores, so that lengths compare. A text is judged once a question, but by a
    RelativeScorer once a front: the paths of one length from one start, which compete, are judged in the same calls
    then, whatever other starts there are. Paths come best first. `longest` 0 means as long as paths grow.
    """
    values: dict[str, float] = {}  # by text
    failures: list[Failure] = []
    kept: list[tuple[float, Path]] = []
    for start in dict.fromkeys(starts):
        front = [(0.0, Path((start,)))]  # with the sum of its edges' scores
        while front and (not limits.longest or len(front[0][1]) < limits.longest):
            grown = [
                (total, path.extended(step))
                for total, path in front
                for step in subgraph.steps.get(path.end, ())
                if step.node not in path.nodes
            ]
            texts = [subgraph.graph.edge_text(path.edges[-1], wording) for _, path in grown]
            if isinstance(scorer, RelativeScorer):
                values.clear()
            fresh = [text for text in dict.fromkeys(texts) if text not in values]
            if fresh:
                scored = scorer.score(question, fresh)
                values.update(zip(fresh, scored.values.tolist(), strict=True))
                failures += scored.failures
            grown = [(total + values[text], path) for (total, path), text in zip(grown, texts, strict=True)]
            means = np.array([total / len(path) for total, path in grown], dtype=np.float32)
            front = [grown[place] for place in best(means, limits.width)]
            kept += [(total / len(path), path) for total, path in front]
    kept.sort(key=lambda one: -one[0])  # stable: the shorter first among equals
    return Filtered(tuple(path for _, path in kept[: limits.most]), len(kept) > limits.most, tuple(failures))


def _by_level(
    subgraph: Subgraph, levels: list[list[Path]], limits: PathLimits, distance: Callable[[int, int], float] | None
) -> Iterator[Path]:
    """Paths by length, or only the shortest, where `distance(turn, node)` says how far a node is from start `turn`."""
    length = 0
    while any(levels) and (not limits.longest or length < limits.longest):
        length += 1
        for turn, front in enumerate(levels):
            grown = []
            for path in front:
                for step in subgraph.steps.get(path.end, ()):
                    fits = distance(turn, step.node) == length if distance else step.node not in path.nodes
                    if fits:
                        longer = path.extended(step)
                        grown.append(longer)
                        yield longer
            levels[turn] = grown


def _limited(paths: Iterator[Path], limits: PathLimits) -> Filtered:
    found: list[Path] = []
    for path in paths:
        if len(found) == limits.most:
            return Filtered(tuple(found), truncated=True)
        found.append(path)
    return Filtered(tuple(found))
