"""The sentences of the passages that were found, read once for all that looks at them, and what could be an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ras_agent.records import Passage
from ras_agent.text.figures import figures_in
from ras_agent.text.names import name_spans
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.words import FUNCTION_WORDS, fold, stem

_WORD = re.compile(r"\w+(?:[.,]\d+)*(?:['’]\w+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Token:
    """Holds a word at characters `start` to `end`. stem: of a content word, blank for a function word."""

    start: int
    end: int
    word: str
    stem: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """Holds sentence `number` of passage `passage` (places in reading order); its text begins at `start` there."""

    passage: int
    number: int
    start: int
    text: str
    tokens: tuple[Token, ...]
    stems: frozenset[str]


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the words of `text`, folded, in order."""
    found = []
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", fold(match.group()))
        found.append(Token(match.start(), match.end(), word, "" if word in FUNCTION_WORDS else stem(word)))
    return tuple(found)


def read(passages: Sequence[Passage]) -> tuple[Sentence, ...]:
    """Return every sentence of every passage, in order."""
    sentences = []
    for place, passage in enumerate(passages):
        for number, (start, end) in enumerate(sentence_spans(passage.text)):
            text = passage.text[start:end]
            tokens = tokens_of(text)
            stems = frozenset(token.stem for token in tokens if token.stem)
            sentences.append(Sentence(place, number, start, text, tokens, stems))
    return tuple(sentences)


MentionKind = Literal["name", "part", "place", "extended", "date", "number", "phrase"]

_LONGEST_PHRASE = 5
_INNER_JOINT = re.compile(r",?\s+(?:of|in|and|the|for|at|on)\b(?:\s+the\b)?\s+|\s*[,&]\s+|\s+[-–]\s+")
_COMMA = re.compile(r",\s+")
_SPACE = re.compile(r"[\s-]+")
_QUOTES = "\"“”‘’'"


@dataclass(frozen=True, slots=True)
class Mention:
    """Tokens `first` to `last` (half-open) of a sentence, its characters `start` to `end`."""

    first: int
    last: int
    start: int
    end: int
    kind: MentionKind


def mentions_in(sentence: Sentence) -> list[Mention]:
    """Return candidate spans, each once; a span that is several things is the first of them."""
    text, tokens = sentence.text, sentence.tokens
    at_start = {token.start: place for place, token in enumerate(tokens)}
    at_end = {token.end: place + 1 for place, token in enumerate(tokens)}
    found: dict[tuple[int, int], Mention] = {}
    for start, end, kind in _spans(text, tokens):
        first = at_start.get(start)
        last = at_end.get(end)
        if first is None or last is None:
            first = next((place for place, token in enumerate(tokens) if token.end > start), None)
            last = next((place + 1 for place in reversed(range(len(tokens))) if tokens[place].start < end), None)
        if first is not None and last is not None and first < last:
            found.setdefault((start, end), Mention(first, last, start, end, kind))
    return list(found.values())


def _spans(text: str, tokens: tuple[Token, ...]) -> Iterator[tuple[int, int, MentionKind]]:
    figures = figures_in(text)
    for figure in figures:
        yield figure.start, figure.end, "number" if figure.kind in {"number", "ordinal"} else "date"
    names = name_spans(text)
    for start, end in names:
        # "in 1876 Alexander Graham Bell": the year is no part of the name
        bare = next((figure.end for figure in figures if figure.start == start and figure.end < end), start)
        bare += len(text[bare:end]) - len(text[bare:end].lstrip(" ,"))
        yield bare, end, "name"
        yield start, end, "name"
    yield from _places(text, names)
    for start, end in names:
        yield from _parts(text, start, end)
    for first, last in _runs(text, tokens):
        yield from _phrases(tokens, first, last)


def _places(text: str, names: list[tuple[int, int]]) -> Iterator[tuple[int, int, MentionKind]]:
    """Yield names parted by a comma alone: "Birmingham, Alabama"."""
    for (start, left), (right, end) in pairwise(names):
        if _COMMA.fullmatch(text, left, right):
            yield start, end, "place"


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int, MentionKind]]:
    """Yield the two sides of a joint inside a name: "Earl of Northumbria"."""
    for joint in _INNER_JOINT.finditer(text, start, end):
        yield start, joint.start(), "part"
        yield joint.end(), end, "part"


def _runs(text: str, tokens: tuple[Token, ...]) -> Iterator[tuple[int, int]]:
    """Runs of words without a function word or a mark between them."""
    first = 0
    for place, token in enumerate(tokens):
        if place > first and not _SPACE.fullmatch(text, tokens[place - 1].end, token.start):
            yield first, place
            first = place
        if token.word in FUNCTION_WORDS:
            if place > first:
                yield first, place
            first = place + 1
    if first < len(tokens):
        yield first, len(tokens)


def _phrases(tokens: tuple[Token, ...], first: int, last: int) -> Iterator[tuple[int, int, MentionKind]]:
    """Yield a run, and what is left of it without its first words or its last one."""
    for begin in range(first, last):
        for finish in (last, last - 1):
            if begin < finish <= begin + _LONGEST_PHRASE:
                yield tokens[begin].start, tokens[finish - 1].end, "phrase"
