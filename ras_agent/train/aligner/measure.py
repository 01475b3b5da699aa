"""What pruning leaves of a question's graph: facts, and answers among their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.text.canonical import canonical_key
from ras_agent.train.aligner.samples import AlignerSample

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.aligner import AlignedGraph, GraphAligner

Scores = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Kept:
    """Holds means over questions: answers that are an end of a fact that is left, the facts left, and their share."""

    answers: float
    facts: float
    share: float


def kept_by_seeds(samples: Sequence[AlignerSample], examples: Sequence[AlignedGraph], scores: Scores, n: int) -> Kept:
    """Return what is left of the graphs when each is pruned to the `n` nodes of highest score and their neighbours."""
    from ras_agent.tools.graph_tokens.aligner import fact_places

    chosen = [
        np.flatnonzero(fact_places(example.graph, row)[0] < n) for example, row in zip(examples, scores, strict=True)
    ]
    return kept(samples, chosen)


def kept_by_number(
    samples: Sequence[AlignerSample], examples: Sequence[AlignedGraph], scores: Scores, most: int
) -> Kept:
    """Return what is left of the graphs of which each keeps its best `most` facts, as `GraphAligner.best` has them."""
    from ras_agent.tools.graph_tokens.aligner import fact_places

    chosen = [
        np.lexsort(fact_places(example.graph, row)[::-1])[:most] for example, row in zip(examples, scores, strict=True)
    ]
    return kept(samples, chosen)


def kept(samples: Sequence[AlignerSample], chosen: Sequence[Sequence[int] | npt.NDArray[Any]]) -> Kept:
    """Return what is left of the graphs of which the facts at the places `chosen` are left."""
    found = []
    for sample, places in zip(samples, chosen, strict=True):
        ends = {canonical_key(sample.facts[place][end]) for place in places for end in (0, 2)}
        gold = {canonical_key(answer) for answer in sample.answers}
        found.append((len(gold & ends) / len(gold), len(places), len(places) / len(sample.facts)))
    answers, facts, share = np.mean(found, axis=0).tolist() if found else (0.0, 0.0, 0.0)
    return Kept(answers, facts, share)


def scores_of(aligner: GraphAligner, examples: Sequence[AlignedGraph]) -> list[npt.NDArray[Any]]:
    """Return the aligner's scores of each graph's nodes. A graph that several questions share is encoded once."""
    groups: dict[int, list[int]] = {}
    for place, one in enumerate(examples):
        groups.setdefault(id(one.graph), []).append(place)
    found: dict[int, npt.NDArray[Any]] = {}
    for places in groups.values():
        questions = np.stack([examples[place].question for place in places])
        found.update(zip(places, aligner.scores(examples[places[0]].graph, questions), strict=True))
    return [found[place] for place in range(len(examples))]


def likeness_of(examples: Sequence[AlignedGraph], *, reasoning: bool = False) -> list[npt.NDArray[Any]]:
    """Return the cosines of each graph's nodes with the question, or with the reasoning, which knows the answer."""
    return [one.graph.nodes @ (one.reasoning if reasoning else one.question) for one in examples]
