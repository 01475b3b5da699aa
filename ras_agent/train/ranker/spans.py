"""Training questions as rows of numbers: the spans that the loop found for each, and how rare words are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.eval.metrics import token_f1
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.features import Candidates, describe
from ras_agent.tools.offline.answerer.fitting import fitting
from ras_agent.tools.offline.answerer.question_words import BUCKETS, Rarity, bucket
from ras_agent.tools.offline.answerer.reading import read
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.train.ranker.examples import Found

__all__ = ["Example", "examples", "rarity_table"]


@dataclass(slots=True)
class Example:
    """A question's spans: inputs (M, len(INPUTS)), fits (M,) as `fitting` tells, and gain (M,) the square of each one's
    token F1 in 0..1, 0 where it is not in a supporting passage or much worse than the best."""

    group: int
    answers: tuple[str, ...]
    found: Candidates
    asked: QuestionAnalysis
    inputs: Floats
    gain: Floats
    fits: npt.NDArray[np.bool_]


def rarity_table(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """(BUCKETS,): inverse document frequencies, 255 for the rarest; stems that share a bucket share the commonest's."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        counts.update(set(stems(text)))
        total += 1
    seen = np.zeros(BUCKETS)
    for root, count in counts.items():
        if count > 1:
            seen[bucket(root)] = max(seen[bucket(root)], count)
    rare = np.log(total / (1 + seen))
    table: npt.NDArray[np.uint8] = np.round(255 * rare / rare.max()).clip(0, 255).astype(np.uint8)
    return table


def examples(found: Iterable[Found], rarity: Rarity, types: Sequence[TypeModel]) -> list[Example]:
    """One for each question with spans. Question n has its types told by model n modulo their number."""
    made = []
    for place, one in enumerate(found):
        asked = analyse(one.asked.question)
        spans = describe(asked, one.graph, one.passages, read(one.passages), rarity)
        if spans is None:
            continue
        scores = types[place % len(types)].scores(asked, spans.texts)
        inputs = np.column_stack([spans.features, scores, scores - scores.max()]).astype(np.float32)
        told = {text: token_f1(text, one.asked.answers) for text in set(spans.texts)}
        f1 = np.array([told[text] for text in spans.texts], np.float32)
        ids = [one.passages[sentence.passage].id for sentence in spans.sentences]
        gold = f1 * np.array([name in one.asked.supporting for name in ids])
        gain = np.where(gold >= 0.5 * gold.max(), gold, 0.0) ** 2 if gold.max() >= 0.3 else np.zeros_like(gold)
        fits = fitting(asked, spans.texts, spans.sentences, spans.mentions)
        made.append(Example(one.asked.group, one.asked.answers, spans, asked, inputs, gain.astype(np.float32), fits))
    return made
