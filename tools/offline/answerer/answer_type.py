"""Does this text look like an answer to this question? Two hashed bags of features and their inner product.

Trained on questions with their answers alone (see ras_agent.train.ranker.train): "what year" meets four digits, "who"
two or three capitalised words, "profession" the words that name one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.text.names import name_spans
from ras_agent.text.words import fold, stem
from ras_agent.tools.offline.answerer.coverage import bucket
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import tokens_of

ROWS = 4096
_ASKING = re.compile(r"\b(what|which|who|whom|whose|where|when|how|why)\b((?:\s+\w+){0,2})")
_WORD = re.compile(r"\w+")
_LONGEST = 6


def question_features(asked: QuestionAnalysis) -> list[int]:
    """Return rows for the words that are no names, their pairs, the question word and the next two, the noun sought."""
    names = name_spans(asked.question)
    found, last = [], ""
    for token in tokens_of(asked.question):
        word = token.word
        if token.start and any(start <= token.start < end for start, end in names):
            word = "<n>"
        else:
            found.append(_row("u:" + (token.stem or word)))
        if last:
            found.append(_row(f"b:{last} {word}"))
        last = word
    found += [_row("n:" + stem(noun)) for noun in asked.answer_noun]
    found += [_row("N:" + noun) for noun in asked.answer_noun[-1:]]
    found.append(_row(f"t:{asked.answer_type}"))
    asking = _ASKING.search(asked.question.lower())
    return [*found, _row("q:" + asking[1]), _row("Q:" + asking[0])] if asking else found


@lru_cache(maxsize=1 << 16)
def answer_features(text: str) -> tuple[int, ...]:
    """Return rows for the words of a text, its first and last one, how they are written, and how many they are."""
    words = _WORD.findall(text)
    if not words:
        return (0,)
    folded = [fold(word) for word in words]
    shapes = [_shape(word) for word in words]
    features = [f"a:{word}" for word in folded[:_LONGEST]]
    features += [f"l:{folded[-1]}", f"f:{folded[0]}", f"s:{' '.join(shapes[:5])}", f"c:{min(len(words), 8)}"]
    features += [f"e:{folded[-1][-3:]}", f"sl:{shapes[-1]}", f"sf:{shapes[0]}"]
    return tuple(map(_row, features))


class TypeModel:
    """Scores answers by type. `questions` and `answers` have shape (ROWS, D)."""

    def __init__(self, questions: npt.NDArray[Any], answers: npt.NDArray[Any]) -> None:
        self.questions, self.answers = questions, answers

    def scores(self, asked: QuestionAnalysis, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return (len(texts),): how well each fits, in nats above a random answer, up to a constant of the question."""
        question = self.questions[question_features(asked)].astype(np.float32).mean(axis=0)  # (D,)
        rows = [answer_features(text) for text in texts]
        sizes = np.array([len(row) for row in rows])
        fits = self.answers.astype(np.float32) @ question  # (ROWS,)
        flat = fits[[row for found in rows for row in found]]  # (sum of sizes,)
        sums: npt.NDArray[np.float64] = np.add.reduceat(flat, np.cumsum(sizes) - sizes) / sizes
        return sums


def _row(feature: str) -> int:
    return bucket(feature, ROWS)


def _shape(word: str) -> str:
    if word.isdigit():
        return "d" * min(len(word), 5)
    if any(map(str.isdigit, word)):
        return "dx"
    if word[0].isupper():
        return "XX" if word.isupper() and len(word) > 1 else "X"
    return "x"
