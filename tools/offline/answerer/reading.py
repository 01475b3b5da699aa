"""The sentences of the passages that were found, split and stemmed once for all that looks at them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.records import Passage
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.words import FUNCTION_WORDS, fold, stem

__all__ = ["Read", "Token", "plain_title", "read", "tokens_of"]

_WORD = re.compile(r"\w+(?:[.,]\d+)*(?:['’]\w+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_DISAMBIGUATOR = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Token:
    """A word at characters `start` to `end`. stem: of a content word, blank for a function word."""

    start: int
    end: int
    word: str
    stem: str


@dataclass(frozen=True, slots=True)
class Read:
    """Sentence `number` of passage `passage` (places in reading order); `start` is where its text begins there."""

    passage: int
    number: int
    start: int
    text: str
    tokens: tuple[Token, ...]
    stems: frozenset[str]


def plain_title(title: str) -> str:
    """A title without its disambiguator: "Casino (film)" names what "Casino" names."""
    return _DISAMBIGUATOR.sub("", title) or title


def tokens_of(text: str) -> tuple[Token, ...]:
    """The words of `text`, folded, in order."""
    found = []
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", fold(match.group()))
        found.append(Token(match.start(), match.end(), word, "" if word in FUNCTION_WORDS else stem(word)))
    return tuple(found)


def read(passages: Sequence[Passage]) -> tuple[Read, ...]:
    """Every sentence of every passage, in order."""
    sentences = []
    for place, passage in enumerate(passages):
        for number, (start, end) in enumerate(sentence_spans(passage.text)):
            text = passage.text[start:end]
            tokens = tokens_of(text)
            stems = frozenset(token.stem for token in tokens if token.stem)
            sentences.append(Read(place, number, start, text, tokens, stems))
    return tuple(sentences)
