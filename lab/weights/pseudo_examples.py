"""Make the pseudo questions that the reader is trained on, of plain passages."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from lab.weights.reader.examples import ReaderExample, occurrences, text_with_title
from ras_agent.contracts.records import Passage
from ras_agent.train.pseudo_questions import Cloze, clozes

_TWO_HOP = 0.4  # share of questions that name their subject by another passage, where one mentions it
_UNANSWERABLE = 0.2  # share of two-hop questions asked of only the other passage
_BOTH_TEXTS = 0.4  # share of two-hop questions asked of both passages together


def pseudo_examples(
    passages: Sequence[Passage], per_passage: int, seed: int
) -> Iterator[ReaderExample]:
    """Yield at most `per_passage` examples for each passage; the same for the same passages and seed."""
    rng = random.Random(seed)
    for cloze in clozes(passages, per_passage, _TWO_HOP, rng):
        yield _example(cloze, rng)


def _example(cloze: Cloze, rng: random.Random) -> ReaderExample:
    passage, other = cloze.passage, cloze.other
    text = text_with_title(passage) if rng.random() < 0.85 else passage.text
    if other is not None:
        second, way = text_with_title(other.passage), rng.random()
        if way < _UNANSWERABLE and cloze.answer not in second:
            return ReaderExample(cloze.question, second, (), "pseudo")
        if way < _UNANSWERABLE + _BOTH_TEXTS:
            text = f"{text} {second}" if rng.random() < 0.5 else f"{second} {text}"
    at = text.find(cloze.sentence)
    spans = occurrences([cloze.answer], text)
    inside = tuple(span for span in spans if at <= span[0] < at + len(cloze.sentence))
    return ReaderExample(cloze.question, text, inside or spans, "pseudo")
