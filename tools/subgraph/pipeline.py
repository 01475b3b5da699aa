"""Runs the modules of a path finder one after another: extraction, filtering and refinement."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ras_agent.contracts.records import Failure, Triple
from ras_agent.tools.subgraph.composition import Composition, parse_composition
from ras_agent.tools.subgraph.extract import EXTRACTIONS, Extraction
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import (
    Path,
    PathLimits,
    RankedPath,
    at_random,
    beam,
    by_score,
    complete,
    prune,
    shortest,
)
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers
from ras_agent.tools.subgraph.scoring import Wording


@dataclass(frozen=True, slots=True)
class PathSettings:
    """Sets the bounds of each module."""

    extraction: Extraction = field(default_factory=Extraction)
    """How subgraphs are extracted."""
    window: int = 24
    """The number of edges that pruning keeps."""
    limits: PathLimits = field(default_factory=PathLimits)
    """Limits of the search for paths."""
    top_k: int = 64
    """The number of paths that refinement keeps."""
    seed: int = 0
    """The seed of random choices."""
    wording: Wording = "facts"
    """The form of the texts that scorers read."""

    def __post_init__(self) -> None:
        if min(self.window, self.top_k) < 1:
            raise ValueError(
                f"window and top_k have to be at least 1, got {self.window} and {self.top_k}"
            )


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """Holds the results of each module for one question."""

    graph: Graph
    subgraph: Subgraph
    """The extracted subgraph, after pruning if the composition has it."""
    candidates: tuple[Path, ...]
    """The filtered paths."""
    paths: tuple[RankedPath, ...]
    """The refined paths, best first."""
    seconds: tuple[float, float, float]
    """The time of extraction (with pruning), of filtering, and of refinement."""
    truncated: bool = False
    """Whether there were more candidates."""
    failures: tuple[Failure, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """Return the facts of `paths`, each once, in their order, with their sources, as evidence for an answerer."""
        edges: dict[int, None] = {}
        for ranked in self.paths:
            edges |= dict.fromkeys(ranked.path.edges)
        return tuple(map(self.graph.triple, edges))


def without_names(question: str, names: Sequence[str]) -> str:
    """Return the question with "someone" in place of the names that it starts from, for scorers that read only
    relations.

    >>> without_names("who is ann_lee 's husband ?", ["ann_lee"])
    "who is someone 's husband ?"
    """
    question = plain_name(question)
    plain_names = map(plain_name, names)
    for name in sorted(plain_names, key=len, reverse=True):
        mention = re.compile(re.escape(name), re.IGNORECASE)
        question = mention.sub("someone", question)
    return question


class PathFinder:
    """Finds reasoning paths in one graph. Safe for use by several threads."""

    def __init__(
        self,
        graph: Graph,
        composition: Composition | str | int = 0,
        scorers: Scorers | ScorerModels | None = None,
        settings: PathSettings | None = None,
    ) -> None:
        """Prepare the scorers. Raises CompositionError, and SettingsError for a scorer without its model.

        Args:
            composition: such as "ppr+st>beam:st>rerank", or the number of an instance of Table 4.
            scorers: the scorers, or the models from which they are built.
            settings: by default `PathSettings()`.
        """
        if not isinstance(composition, Composition):
            composition = parse_composition(composition)
        if not isinstance(scorers, Scorers):
            scorers = Scorers(scorers)
        self.composition = composition
        self.graph = graph
        self.settings = settings or PathSettings()
        self._scorers = scorers
        for name in self.composition.scorers:
            self._scorers[name]

    def find(self, question: str, starts: Sequence[int]) -> FoundPaths:
        """Return paths from the nodes `starts`. Raises ValueError for a start that is not a node of the graph."""
        plan = self.composition
        how = self.settings
        starts = list(dict.fromkeys(starts))
        for start in starts:
            if start is None or not 0 <= start < len(self.graph.nodes):
                raise ValueError(
                    f"the start {start} is no node of the graph: give numbers from 0 to {len(self.graph.nodes) - 1}"
                )
        if how.wording == "relations":
            question = without_names(
                question, [self.graph.nodes[start] for start in starts]
            )
        times = [time.perf_counter()]
        subgraph = EXTRACTIONS[plan.extraction](self.graph, starts, how.extraction)
        failures: list[Failure] = []
        if plan.pruning:
            pruned = prune(
                subgraph,
                starts,
                self._scorers[plan.pruning],
                question,
                how.window,
                how.wording,
            )
            subgraph = pruned.subgraph
            failures += pruned.failures
        times.append(time.perf_counter())
        if plan.filtering == "beam":
            filtered = beam(
                subgraph,
                starts,
                self._scorers[plan.guide],
                question,
                how.limits,
                how.wording,
            )
        else:
            search = shortest if plan.filtering == "shortest" else complete
            filtered = search(subgraph, starts, how.limits)
        failures += filtered.failures
        times.append(time.perf_counter())
        if plan.refinement == "random":
            refined = at_random(filtered.paths, how.top_k, how.seed)
        else:
            scorer = self._scorers[plan.refinement]
            refined = by_score(
                self.graph, filtered.paths, how.top_k, scorer, question, how.wording
            )
        failures += refined.failures
        times.append(time.perf_counter())
        extraction, filtering, refinement = (
            end - begin for begin, end in pairwise(times)
        )
        return FoundPaths(
            self.graph,
            subgraph,
            filtered.paths,
            refined.paths,
            (extraction, filtering, refinement),
            filtered.truncated,
            tuple(failures),
        )
