"""A part of a question's graph, taken at random: how much does the answer owe to how many triples? (RAS, Fig. 4.)"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Literal

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage

__all__ = ["Evidence", "kept_facts", "kept_graph", "kept_passages"]

Evidence = Literal["kept", "facts", "all"]


def kept_facts(graph: QuestionGraph, share: float, seed: str) -> list[str]:
    """Ids of the first `share` (over 0, at most 1) of the graph's facts in an order shuffled by `seed`, rounded up.

    With one seed a smaller share is always part of a larger one. Which order the facts were found in has no say.
    """
    if not 0 < share <= 1:
        raise ValueError(f"a share of the triples is over 0 and at most 1, got {share}")
    names = sorted(graph.by_id)
    random.Random(seed).shuffle(names)
    # 0.1 * 30 is a little over 3
    return names[: math.ceil(round(share * len(names), 9))]


def kept_graph(graph: QuestionGraph, kept: Sequence[str]) -> QuestionGraph:
    """The graph with the facts `kept` alone, each with all its readings."""
    wanted = frozenset(kept)
    return QuestionGraph(tuple(reading for reading in graph.readings if reading.id in wanted))


def kept_passages(graph: QuestionGraph, passages: Mapping[str, Passage], evidence: Evidence) -> list[Passage]:
    """The passages that an answerer sees beside `graph`, in their order.

    "facts": none, as in RAS, whose answerer reads triples alone. "all": all, whatever the graph has lost. "kept": those
    that facts of the graph were read in, with blanks for all sentences that none was read in, so that the facts'
    places still hold.
    """
    if evidence == "facts":
        return []
    if evidence == "all":
        return list(passages.values())
    spans: dict[str, list[tuple[int, int]]] = {}
    for fact in graph.facts:
        for source in fact.sources:
            spans.setdefault(source.passage_id, []).append((source.start, source.end))
    return [_blanked(passage, spans[name]) for name, passage in passages.items() if name in spans]


def _blanked(passage: Passage, spans: Sequence[tuple[int, int]]) -> Passage:
    if any(end <= start for start, end in spans):  # a fact without a place may come from anywhere in the passage
        return passage
    shown = [False] * len(passage.text)
    for start, end in spans:
        shown[start:end] = [True] * len(shown[start:end])
    text = "".join(char if seen else " " for char, seen in zip(passage.text, shown, strict=True))
    return Passage(passage.id, text, passage.title, passage.document_id, passage.metadata)
