"""What have two things in common? The phrases that are told of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ras_agent.question_analysis import QuestionAnalysis
from ras_agent.tools.answer.answer_type import TypeModel
from ras_agent.tools.answer.candidates import mentions_in
from ras_agent.tools.answer.reading import Read
from ras_agent.tools.answer.sides import Side
from ras_agent.words import stems

__all__ = ["Common", "common_phrases", "spoken"]

_NEARLY = 1.0


@dataclass(frozen=True, slots=True)
class Common:
    """A phrase told of every side, as the first one has it. grounds: a sentence a side."""

    text: str
    stems: tuple[str, ...]
    grounds: tuple[Read, ...]


def common_phrases(asked: QuestionAnalysis, sides: Sequence[Side], depth: int = 3) -> list[Common]:
    """Phrases that the first `depth` sentences about every side hold, in the order of the first side's text.

    A phrase that only occurs inside a longer common one is left out, and so are words of the question.
    """
    asked_stems = set(stems(asked.question))
    tables = [_phrases(side.sentences[:depth]) for side in sides]
    if len(tables) < 2:
        return []
    found = [
        Common(text, key, (sentence, *(table[key][1] for table in tables[1:])))
        for key, (text, sentence) in tables[0].items()
        if all(key in table for table in tables[1:]) and not set(key) <= asked_stems
    ]
    return [one for one in found if not any(_inside(one.stems, other.stems) for other in found)]


def spoken(asked: QuestionAnalysis, common: Sequence[Common], types: TypeModel) -> Common:
    """The common phrase that fits the question best; where it asks for several, all that fit nearly as well."""
    fits = types.scores(asked, [one.text for one in common])
    # longer phrases say more: "tennis player" before "player"
    scores = fits + 0.3 * np.array([min(len(one.stems), 3) for one in common])
    best = int(scores.argmax())
    if not asked.answer_noun or not asked.answer_noun[-1].endswith("s"):
        return common[best]
    chosen = [one for one, score in zip(common, scores, strict=True) if score >= scores[best] - _NEARLY]
    text = ", ".join(one.text for one in chosen[:-1]) + " and " * (len(chosen) > 1) + chosen[-1].text
    return Common(text, chosen[0].stems, tuple(dict.fromkeys(read for one in chosen for read in one.grounds)))


def _phrases(sentences: Sequence[Read]) -> dict[tuple[str, ...], tuple[str, Read]]:
    found: dict[tuple[str, ...], tuple[str, Read]] = {}
    for sentence in sentences:
        for mention in mentions_in(sentence):
            key = tuple(token.stem for token in sentence.tokens[mention.first : mention.last] if token.stem)
            if key:
                found.setdefault(key, (sentence.text[mention.start : mention.end], sentence))
    return found


def _inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    size = len(part)
    return size < len(whole) and any(whole[at : at + size] == part for at in range(len(whole) - size + 1))
