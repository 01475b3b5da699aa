"""What kind of thing answers a question: told by its question word and the noun beside it."""

from __future__ import annotations

import re
from typing import Literal

from ras_agent.text.words import FUNCTION_WORDS, content_words, word_set

__all__ = ["ASKS", "AnswerType", "expected_answer", "head_type"]

AnswerType = Literal["person", "place", "date", "number", "organisation", "work", "nationality", "thing"]

ASKS = re.compile(r"\b(?:what|which|who|whom|whose|where|when|how)\b", re.IGNORECASE)
"""A question word."""
_RELATIVE = word_set("who which where when whose")
_COPULA = re.compile(r"\s*(?:is|are|was|were|'s)\s+(?:the\s+)?(?:names?\s+of\s+(?:the\s+)?)?", re.IGNORECASE)
_ASKED_OF = re.compile(r"(?:^|\b(?:in|of|at|on|by|for|from|to|with|under|as|is|was|are|were)|[,;:])\s*$", re.IGNORECASE)
_MEASURES = re.compile(r"\s*(?:many|much|long|tall|high|far|old|large|big|deep|wide|heavy|fast|often)\b")
_NOUN = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_LONGEST_NOUN_PHRASE = 6
_DETERMINERS = word_set("the a an other this same most")
_SORTS = word_set("type kind sort class form genre piece brand types kinds")
_COMPARATIVES = word_set("first earlier later older younger larger smaller longer last bigger came")

_NOUNS: dict[AnswerType, frozenset[str]] = {
    "person": word_set(
        """person man woman boy girl people actor actress author writer singer musician artist director producer player
        politician president king queen prince princess emperor governor senator mayor minister leader founder inventor
        composer poet novelist scientist physicist chemist mathematician philosopher painter architect engineer
        astronaut coach manager host comedian rapper guitarist drummer bassist vocalist father mother son daughter wife
        husband brother sister spouse child parent celebrity star judge general commander officer chief owner
        businessman executive character footballer driver champion winner creator designer developer model journalist
        filmmaker chef historian"""
    ),
    "place": word_set(
        """place location city town village country state county province region district island islands river lake
        mountain continent capital area neighborhood neighbourhood borough suburb street road highway airport
        venue stadium arena park hotel building castle birthplace hometown seat territory nation bay ocean sea canal
        bridge"""
    ),
    "date": word_set("year date day month century decade era birthday birthdate time age"),
    "number": word_set(
        """number population percentage amount total length height weight width depth distance area size capacity count
        score rank ratio record"""
    ),
    "organisation": word_set(
        """company band group team club organization organisation university college school party agency network
        channel station label studio publisher corporation firm league conference institution institute magazine
        newspaper army airline brand retailer manufacturer church government"""
    ),
    "work": word_set(
        """film movie song album single book novel series show sitcom play opera musical poem game documentary episode
        painting story comic manga anime trilogy franchise soundtrack programme program"""
    ),
    "nationality": frozenset({"nationality", "ethnicity", "citizenship"}),
}


def expected_answer(text: str) -> tuple[AnswerType | None, tuple[str, ...]]:
    """The type of a question's answer, None where its words do not tell, and the folded noun that it is one of.

    >>> expected_answer("What is the name of the pop band founded in 1990?")
    ('organisation', ('pop', 'band'))
    """
    asks = _question_word(text)
    if asks is None:
        return None, ()
    word, rest = asks.group().lower(), text[asks.end() :]
    if word in {"who", "whom", "whose"}:
        return "person", ()
    if word == "where":
        return "place", ()
    if word == "when":
        return "date", ()
    if word == "how":
        return ("number", _noun(re.sub(r"^\s*(?:many|much)\b", "", rest))) if _MEASURES.match(rest) else (None, ())
    copula = _COPULA.match(rest)
    noun = _noun(rest[copula.end() :] if copula else rest)
    return _type_of(noun), noun


def _question_word(text: str) -> re.Match[str] | None:
    """The word that asks: the first, unless it begins a relative clause and a later one asks."""
    found = list(ASKS.finditer(text))
    asking = [
        match
        for match in found
        if match.start() <= 4 or match.group().lower() not in _RELATIVE or _ASKED_OF.search(text[: match.start()])
    ]
    return next(iter(asking or found), None)


def _noun(rest: str) -> tuple[str, ...]:
    """The noun phrase that `rest` begins with, up to a function word, a participle, a comparative or a mark."""
    words: list[str] = []
    end = 0
    for match in _NOUN.finditer(rest):
        word = match.group().lower()
        if rest[end : match.start()].strip(" \"“”'’") or (words and _ends_noun(word)):
            break
        if word in FUNCTION_WORDS and not (word in _DETERMINERS or (word == "of" and words and words[-1] in _SORTS)):
            break
        if word not in FUNCTION_WORDS:
            words.append(word)
        end = match.end()
        if len(words) == _LONGEST_NOUN_PHRASE:
            break
    return tuple(found for word in words for found in content_words(word))


def _ends_noun(word: str) -> bool:
    return word.endswith("ed") or word in _COMPARATIVES


def head_type(noun: tuple[str, ...]) -> AnswerType | None:
    """The type by the last word alone: "song index" is no work."""
    return _type_of(noun[-1:])


def _type_of(noun: tuple[str, ...]) -> AnswerType | None:
    """By the last two words, the last one first: "New York city" is a place. "name" could name anything."""
    for word in reversed(noun[-2:]):
        if word in {"name", "names"}:
            return None
        for kind, nouns in _NOUNS.items():
            if word in nouns or word.removesuffix("s") in nouns:
                return kind
    return "thing" if noun else None
