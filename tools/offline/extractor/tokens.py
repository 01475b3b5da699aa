"""Tokens of a sentence that are more than a word: names, quoted titles, dates, numbers, genitive endings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS, MONTHS
from ras_agent.tools.offline.extractor import lexicon

__all__ = ["DATE", "Tag", "Token", "fixed_tokens"]

Tag = Literal[
    "name",
    "title",  # in quotation marks
    "date",
    "number",
    "noun",  # or adjective: all that is nothing else
    "det",
    "poss",  # his, its
    "'s",
    "pronoun",
    "prep",
    "conj",
    "sub",  # while, although
    "rel",  # who, which
    "be",
    "have",
    "do",
    "modal",
    "to",
    "verb",
    "participle",  # or a regular past: "directed"
    "gerund",
    "adverb",
    "mark",
]

_MONTH = "(?:" + "|".join(month.capitalize() for month in MONTHS) + ")"
_YEAR = r"(?:1\d{3}|20\d{2})"
DATE = (
    rf"(?:{_MONTH}\s+\d{{1,2}},?\s+{_YEAR}|\d{{1,2}}\s+{_MONTH},?\s+{_YEAR}|{_MONTH},?\s+{_YEAR}|{_MONTH}\s+\d{{1,2}}"
    rf"|\d{{1,2}}\s+{_MONTH}|(?:(?:early|mid|late)[-\s]+)?(?:the\s+)?{_YEAR}s"
    r"|(?:(?:early|mid|late)[-\s]+)?(?:\d{1,2}(?:st|nd|rd|th)|\w+(?:th|first|second|third))[-\s](?:century|centuries)"
    rf"(?:\s+(?:AD|BC|CE|BCE))?"
    r"|(?:\d{1,2}(?:st|nd|rd|th)|\w+th|first|second|third)\s+(?:and|to|or)\s+(?:the\s+)?"
    r"(?:\d{1,2}(?:st|nd|rd|th)|\w+th)[-\s]centur(?:y|ies)"
    rf"|{_YEAR}(?:[–/-]\d{{2,4}})?|\d{{1,4}}\s+(?:AD|BC|BCE|CE))(?!\w)(?![.,]\d)"
)
"""The pattern of a date, a year, a decade or a century."""
_DATE = re.compile(rf"\b{DATE}")
_QUOTED = re.compile(r"[\"“]\s*([^\"“”]{1,90}?)\s*[\"”]")
_NUMBER = re.compile(
    r"(?:[$€£¥]|US\$)?\d[\d,]*(?:\.\d+)?(?:[–/-]\d[\d,]*(?:\.\d+)?)?%?(?![-–]\w)"
    r"(?:\s(?:million|billion|trillion|thousand|hundred))?(?:\s?(?:km2|sq|km|mi|m|ft|kg|cm|mm|mph|percent))?\b%?"
)
_LEADING_YEAR = re.compile(rf"(?:{_YEAR}(?:[–-]\d{{2,4}})?|\d{{1,3}}(?:,\d{{3}})+)\s+")
_GENITIVE = re.compile(r"(?:(?<=s)['’]|['’]s)(?=\s)")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, or what counts as one; `text` is characters `start` to `end` of the sentence."""

    text: str
    start: int
    end: int
    tag: Tag

    @property
    def low(self) -> str:
        return self.text.lower()


def fixed_tokens(sentence: str, titles: re.Pattern[str] | None, subject: int) -> list[Token]:
    """The tokens whose bounds do not depend on grammar, in order, none inside another.

    What `titles` matches counts as a name wherever it cuts none in two, and so do the first `subject` characters.
    """
    return [
        Token(sentence[start:end], start, end, tag) for start, end, tag in sorted(_spans(sentence, titles, subject))
    ]


def _spans(sentence: str, titles: re.Pattern[str] | None, subject: int) -> Iterator[tuple[int, int, Tag]]:
    taken = bytearray(len(sentence))

    def free(start: int, end: int) -> bool:
        if any(taken[start:end]):
            return False
        taken[start:end] = b"\x01" * (end - start)
        return True

    if subject and free(0, subject):
        yield 0, subject, "name"
    for match in _QUOTED.finditer(sentence):
        if free(*match.span()):
            yield (*match.span(1), "title")
    names = list(_names(sentence, taken))
    if titles is not None:
        for match in titles.finditer(sentence):
            start, end = match.span()
            cut = any(a < start < b or a < end < b for a, b in names)
            if not cut and free(start, end):
                yield start, end, "name"
    for pattern, tag in ((_DATE, "date"), (_GENITIVE, "'s")):
        for match in pattern.finditer(sentence):
            if free(*match.span()):
                yield (*match.span(), tag)  # type: ignore[misc]
    for start, end in names:
        if free(start, end):
            yield start, end, "name"
    for match in _NUMBER.finditer(sentence):
        if match.start() == 0 or not sentence[match.start() - 1].isalnum():
            if match.end() < len(sentence) and sentence[match.end()].isalnum():
                continue
            if free(*match.span()):
                yield (*match.span(), "number")


def _names(sentence: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Name spans without dates, years in front, or a first word that is capitalised only for its place."""
    bare = "".join("," if used else char for char, used in zip(sentence, taken, strict=True))
    for pattern in (_DATE, _GENITIVE):  # commas part names and keep the offsets
        bare = pattern.sub(lambda match: "," * len(match.group()), bare)
    first = len(bare) - len(bare.lstrip(" ,\"'“"))
    for start, end in name_spans(bare):
        year = _LEADING_YEAR.match(bare, start, end)
        if year:
            start = year.end()
        if bare[start:end].replace(".", "").replace(",", "").replace("–", "").isdigit():
            continue
        if start == first and _ordinary(bare[start:end]):
            space = bare.find(" ", start, end)
            if space < 0:
                continue
            start = space + 1
        if any(map(str.isalpha, bare[start:end])) and start < end and not bare[start:end].islower():
            yield start, end


def _ordinary(name: str) -> bool:
    """Whether the first word of a sentence is an ordinary word there."""
    word = name.split(" ", 1)[0].lower()
    return word in FUNCTION_WORDS or word in lexicon.KNOWN or (word.endswith(("ed", "ing", "ly")) and " " not in name)
