"""Which spans have the form of an answer: a year is no name, a name no year, and a length holds a number."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ras_agent.text.figures import figures_in
from ras_agent.text.words import stem, word_set
from ras_agent.tools.offline.answerer.candidates import Mention
from ras_agent.tools.offline.answerer.reading import Read
from ras_agent.tools.offline.expected_answer import head_type
from ras_agent.tools.offline.question import QuestionAnalysis

__all__ = ["fitting"]

# asked for these, an answer states when; an "age" or a "time" may be told in many ways
_POINTS_IN_TIME = word_set("year date decade century month birthday birthdate")
_COUNTS = re.compile(r"\bhow many\b", re.IGNORECASE)
_NAMED = frozenset({"person", "place", "organisation", "work", "nationality"})


def fitting(
    asked: QuestionAnalysis, texts: Sequence[str], sentences: Sequence[Read], mentions: Sequence[Mention | None]
) -> npt.NDArray[np.bool_]:
    """(M,): False for spans whose form cannot answer. All True where the question does not tell what it wants.

    What is counted ("How many children") must be spoken of in the span's sentence. A span without a mention is a
    passage's title, which names something whatever its form ("1984").
    """
    kinds = [mention.kind if mention else "title" for mention in mentions]
    if asked.answer_type == "date" and (not asked.answer_noun or asked.answer_noun[-1] in _POINTS_IN_TIME):
        return np.array([kind == "date" or _tells(text, date=True) for kind, text in zip(kinds, texts, strict=True)])
    if asked.answer_type == "number":
        counted = stem(asked.answer_noun[-1]) if asked.answer_noun and _COUNTS.search(asked.question) else None
        return np.array(
            [
                kind != "date" and _tells(text, date=False) and (counted is None or counted in sentence.stems)
                for kind, text, sentence in zip(kinds, texts, sentences, strict=True)
            ]
        )
    if asked.answer_type in _NAMED and (not asked.answer_noun or head_type(asked.answer_noun) in _NAMED):
        return np.array([kind not in ("date", "number") for kind in kinds])
    return np.ones(len(texts), dtype=bool)


def _tells(text: str, *, date: bool) -> bool:
    """Whether a date, or a number, stands in the text."""
    return any((figure.kind not in ("number", "ordinal")) == date for figure in figures_in(text))
