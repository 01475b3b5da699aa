"""What a span reader thinks of the ranker's candidates.

A reader points at spans of its own, which rarely end where a candidate does. A candidate is therefore worth the overlap
to expect: the sum over the reader's spans of the span's probability times its character F1 with the candidate. Spans
compete within their passage; passages compete by their best span at a high temperature, because a passage that speaks
of the second hop alone shares few words with the question and is read with less certainty than it deserves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ras_agent.arrays import Doubles
from ras_agent.protocols import SpanReader
from ras_agent.records import Passage, Span
from ras_agent.tools.offline.answerer.features import Candidates

__all__ = ["expected_overlap", "reader_logits"]


# the middle of a plateau on HotpotQA's tuning questions: neighbouring values differ by less than a question's noise
_WEIGHT = 0.5
_FLOOR = 0.05
_TEMPERATURE = 4.0


def reader_logits(reader: SpanReader, question: str, passages: Sequence[Passage], found: Candidates) -> Doubles:
    """(M,) what to add to the candidates' logits: a multiple of the log of their expected overlap, floored."""
    heads = [f"{passage.title}. " if passage.title else "" for passage in passages]
    texts = [head + passage.text for head, passage in zip(heads, passages, strict=True)]
    places = []
    for sentence, mention in zip(found.sentences, found.mentions, strict=True):
        start = len(heads[sentence.passage]) + sentence.start
        title = (0, len(passages[sentence.passage].title))
        places.append((sentence.passage, *((start + mention.start, start + mention.end) if mention else title)))
    return _WEIGHT * np.log(expected_overlap(reader.read(question, texts), places) + _FLOOR)


def expected_overlap(spans: Sequence[Sequence[Span]], places: Sequence[tuple[int, int, int]]) -> Doubles:
    """(M,) in 0..1 for places (passage, start, end); `spans` are a reader's, passage by passage."""
    read = [number for number, found in enumerate(spans) if found]
    best = np.array([max(span.score for span in spans[number]) for number in read])
    weights = {
        number: share * _softmax(np.array([span.score for span in spans[number]]))
        for number, share in zip(read, _softmax(best / _TEMPERATURE), strict=True)
    }
    overlaps = np.zeros(len(places))
    for row, (number, start, end) in enumerate(places):
        for span, weight in zip(spans[number], weights.get(number, ()), strict=False):
            shared = max(0, min(end, span.end) - max(start, span.start))
            overlaps[row] += weight * 2 * shared / (end - start + span.end - span.start)
    return overlaps


def _softmax(logits: Doubles) -> Doubles:
    if not len(logits):
        return logits
    powers: Doubles = np.exp(logits - logits.max())
    powers /= powers.sum()
    return powers
