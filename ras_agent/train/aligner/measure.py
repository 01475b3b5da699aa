"""What pruning leaves of a question's graph: facts, and answers among their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.text.canonical import canonical_key
from ras_agent.tools.subgraph.graph import Graph, Subgraph, textualise
from ras_agent.train.aligner.samples import AlignerSample

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.aligner import AlignedGraph, GraphAligner

Scores = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Kept:
    """Means over questions of what pruning keeps.

    answers: the share of answers that are an end of a kept fact. facts: the number of kept facts. share: of all facts.
    """

    answers: float
    facts: float
    share: float


def kept_by_seeds(samples: Sequence[AlignerSample], examples: Sequence[AlignedGraph], scores: Scores, n: int) -> Kept:
    """Measure what is kept of graphs that are pruned to the `n` nodes of highest score and their neighbours."""
    from ras_agent.tools.graph_tokens.aligner import fact_places

    fact_numbers = [
        np.flatnonzero(fact_places(example.graph, row)[0] < n) for example, row in zip(examples, scores, strict=True)
    ]
    return measure_kept(samples, fact_numbers)


def kept_by_number(
    samples: Sequence[AlignerSample], examples: Sequence[AlignedGraph], scores: Scores, most: int
) -> Kept:
    """Measure what is kept of graphs that are pruned to `most` facts, the best first as `GraphAligner.best` has it."""
    from ras_agent.tools.graph_tokens.aligner import fact_places

    fact_numbers = [
        np.lexsort(fact_places(example.graph, row)[::-1])[:most] for example, row in zip(examples, scores, strict=True)
    ]
    return measure_kept(samples, fact_numbers)


def measure_kept(samples: Sequence[AlignerSample], fact_numbers: Sequence[Sequence[int] | npt.NDArray[Any]]) -> Kept:
    """Measure what is kept of graphs that are pruned to some facts. fact_numbers: the facts' places in each graph."""
    rows = []
    for sample, places in zip(samples, fact_numbers, strict=True):
        ends = {canonical_key(sample.facts[place][end]) for place in places for end in (0, 2)}
        gold = {canonical_key(answer) for answer in sample.answers}
        rows.append((len(gold & ends) / len(gold), len(places), len(places) / len(sample.facts)))
    answers, facts, share = np.mean(rows, axis=0).tolist() if rows else (0.0, 0.0, 0.0)
    return Kept(answers, facts, share)


def scores_of(aligner: GraphAligner, examples: Sequence[AlignedGraph]) -> list[npt.NDArray[Any]]:
    """Return the aligner's scores of each graph's nodes. A graph that several questions share is encoded once."""
    groups: dict[int, list[int]] = {}
    for place, example in enumerate(examples):
        groups.setdefault(id(example.graph), []).append(place)
    scores: dict[int, npt.NDArray[Any]] = {}
    for places in groups.values():
        questions = np.stack([examples[place].question for place in places])
        scores.update(zip(places, aligner.scores(examples[places[0]].graph, questions), strict=True))
    return [scores[place] for place in range(len(examples))]


def cosines_of(
    aligner: GraphAligner, samples: Sequence[AlignerSample], examples: Sequence[AlignedGraph]
) -> dict[str, float]:
    """Return the mean cosines of graphs' states with questions, reasoning and texts (Align-GRAG, Fig. 2)."""
    texts = [textualise(Subgraph.full(Graph.from_triples(sample.facts))) for sample in samples]
    vectors = {
        "question": np.stack([example.question for example in examples]),
        "reasoning": np.stack([example.reasoning for example in examples]),
        "text": aligner.vectors.of_texts(texts),
    }
    graphs = [example.graph for example in examples]
    return {f"cosine_{name}": float(aligner.likeness(graphs, rows).mean()) for name, rows in vectors.items()}


def likeness_of(examples: Sequence[AlignedGraph], *, reasoning: bool = False) -> list[npt.NDArray[Any]]:
    """Return the cosines of each graph's nodes with its question, or with its reasoning, which knows the answer."""
    return [example.graph.nodes @ (example.reasoning if reasoning else example.question) for example in examples]
