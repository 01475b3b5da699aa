"""Phrases of a question, told by closed-class words, capitals and word endings: where an object or a clause ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS, word_set

__all__ = [
    "DETERMINERS",
    "PREPOSITIONS",
    "RELATIVES",
    "QuestionToken",
    "clause_end",
    "object_end",
    "participle",
    "question_tokens",
]

_TOKEN = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*['’]?|[,;:?!]")
DETERMINERS = word_set("the a an this his her its their")
RELATIVES = word_set("who that which whom where")
PREPOSITIONS = word_set("of in on at by for with from to under near during after before through into as")
_FINITE = word_set(
    "is are was were has have had did does do can could will would won wrote made led met began became held found sang "
    "lies stands runs flows takes took came comes went goes gave gives died"
)
_PARTICIPLES = word_set("born known held won made built written led based located set sung shown taken found begun")
_MOST_PLAIN = 3


@dataclass(frozen=True, slots=True)
class QuestionToken:
    """Characters `start` to `end` of a question: a name, or a lower-cased word or mark."""

    start: int
    end: int
    word: str
    name: bool


def question_tokens(text: str) -> list[QuestionToken]:
    """Words and marks; a name, with its article, is one token."""
    names = name_spans(text)
    tokens = [QuestionToken(start, end, text[start:end], True) for start, end in names]
    for match in _TOKEN.finditer(text):
        if not any(start <= match.start() < end for start, end in names):
            tokens.append(QuestionToken(match.start(), match.end(), match.group().lower(), False))
    return sorted(tokens, key=lambda token: token.start)


def object_end(tokens: list[QuestionToken], start: int) -> int | None:
    """The last token of the noun phrase from `start`: up to a name's end, or a few plain words."""
    plain = 0
    for i in range(start, len(tokens)):
        token = tokens[i]
        if token.name:
            return _trailing(tokens, i)
        if token.word in DETERMINERS and i == start:
            continue
        if not token.word.isalpha() or token.word in FUNCTION_WORDS or _verbal(token.word) or plain == _MOST_PLAIN:
            return _trailing(tokens, i - 1) if plain else None
        plain += 1
    return len(tokens) - 1 if plain else None


def clause_end(tokens: list[QuestionToken], start: int, *, place: bool) -> int | None:
    """The last token of a relative clause: its first name, and the verb group behind it where the name is subject.

    A clause without a name ("the team that developed penicillin") ends before the next verb.
    """
    for i in range(start, len(tokens)):
        token = tokens[i]
        if token.word.isdigit() and i > start:
            return _trailing(tokens, i)
        if not token.name and (not token.word.isalpha() or (i > start + 1 and _verbal(token.word))):
            if place:
                return _happening_end(tokens, i)
            return i - 1 if i > start + 1 else None
        if not token.name:
            continue
        last = i
        if place or i == start:
            last = _verb_group_end(tokens, i)
        return _trailing(tokens, last)
    return None


def _happening_end(tokens: list[QuestionToken], verb: int) -> int | None:
    """What happened somewhere, told without a name: "... where the torch event was held in Vietnam"; else None."""
    if not _verbal(tokens[verb].word):
        return None
    last = _verb_group_end(tokens, verb - 1)
    return told if (told := _trailing(tokens, last)) > last else None


def _verb_group_end(tokens: list[QuestionToken], name: int) -> int:
    """From a subject's name over auxiliaries, adverbs and one verb: "... was first performed"."""
    last = name
    for i in range(name + 1, len(tokens)):
        word = tokens[i].word
        if tokens[i].name or word in PREPOSITIONS or not word.isalpha():
            break
        last = i
        if word not in FUNCTION_WORDS and (participle(word) or word in _FINITE):
            break
    return last


def _trailing(tokens: list[QuestionToken], last: int) -> int:
    """Over prepositional phrases that end in a name or a year: "... who lived in Bath", "... of Train to Pakistan"."""
    while last + 2 < len(tokens) and tokens[last + 1].word in PREPOSITIONS:
        end = last + 3 if tokens[last + 2].word in DETERMINERS and last + 3 < len(tokens) else last + 2
        if not tokens[end].name and not tokens[end].word.isdigit():
            break
        last = end
    return last


def participle(word: str) -> bool:
    return word.endswith("ed") or word in _PARTICIPLES


def _verbal(word: str) -> bool:
    return participle(word) or word in _FINITE or word.endswith("ing")
