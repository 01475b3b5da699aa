"""Measures how many facts and answers pruning leaves in question graphs."""

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
    """Holds what pruning leaves, as means over questions."""

    answers: float
    """The share of the answers that are subject or object of a fact that is left."""
    facts: float
    """The number of facts that are left."""


def kept_by_seeds(
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
    scores: Scores,
    n: int,
) -> Kept:
    """Measure what is left of each graph if it is pruned to its `n` best nodes and their neighbours.

    Args:
        samples: The questions with their answers and facts.
        examples: The same samples as vectors, in the same order.
        scores: The aligner's scores of the nodes of each graph, (N,).
        n: The number of nodes with the highest scores.
    """
    from ras_agent.tools.graph_tokens.aligner import fact_places

    fact_numbers = []
    for example, row in zip(examples, scores, strict=True):
        places, _ = fact_places(example.graph, row)
        fact_numbers.append(np.flatnonzero(places < n))
    return measure_kept(samples, fact_numbers)


def measure_kept(
    samples: Sequence[AlignerSample],
    fact_numbers: Sequence[Sequence[int] | npt.NDArray[Any]],
) -> Kept:
    """Measure what is left of each graph if it is pruned to certain facts.

    `fact_numbers` has, for each sample, the indexes of the facts that are left.
    """
    if not samples:
        return Kept(0.0, 0.0)
    rows = []
    for sample, places in zip(samples, fact_numbers, strict=True):
        ends = set[str]()
        for place in places:
            subject, _, object_ = sample.facts[place]
            ends |= {canonical_key(subject), canonical_key(object_)}
        gold = set(map(canonical_key, sample.answers))
        rows.append((len(gold & ends) / len(gold), len(places)))
    answers, facts = np.mean(rows, axis=0).tolist()
    return Kept(answers, facts)


def cosines_of(
    aligner: GraphAligner,
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
) -> dict[str, float]:
    """Return the mean cosine between a graph's vector and that of its question, its reasoning and its text.

    The keys are "cosine_question", "cosine_reasoning" and "cosine_text" (Align-GRAG, Fig. 2).
    """
    texts = [
        textualise(Subgraph.full(Graph.from_triples(sample.facts)))
        for sample in samples
    ]
    vectors = {
        "question": np.stack([example.question for example in examples]),
        "reasoning": np.stack([example.reasoning for example in examples]),
        "text": aligner.vectors.of_texts(texts),
    }
    graphs = [example.graph for example in examples]
    return {
        f"cosine_{name}": float(aligner.likeness(graphs, rows).mean())
        for name, rows in vectors.items()
    }
