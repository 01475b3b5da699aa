"""Dates and numbers in running text: where they stand, and what they are worth when they are compared."""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.words import MONTHS

FigureKind = Literal["date", "year", "decade", "century", "number", "ordinal"]

_MONTH = "|".join((*(month.capitalize() for month in MONTHS), "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"))
_DAY = r"(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATE = re.compile(
    rf"\b(?:(?P<d1>{_DAY})\s+(?:of\s+)?(?P<m1>{_MONTH})\b\.?(?:,?\s+(?P<y1>{_YEAR})\b)?"
    rf"|(?P<m2>{_MONTH})\b\.?\s+(?P<d2>{_DAY})\b(?:,?\s+(?P<y2>{_YEAR})\b)?"
    rf"|(?P<m3>{_MONTH})\b\.?,?\s+(?P<y3>{_YEAR})\b)"
)
_DECADE = re.compile(r"\b(?:(?:early|mid|late)[- ])?(?:the )?(?P<y>1\d\d0|20\d0)['’]?s\b", re.IGNORECASE)
_CENTURY = re.compile(
    r"\b(?P<c>\d{1,2}(?:st|nd|rd|th)|(?:nine|eigh|seven|six|fif|four|thir)teenth|twelfth|eleventh|tenth|twentieth|"
    r"twenty[- ]first)[- ](?:century|centuries)\b",
    re.IGNORECASE,
)
_YEAR_ALONE = re.compile(rf"(?<![\d,.$£€#-])\b(?P<y>{_YEAR})\b(?![,.]\d|%|[-–]\d{{3}})")
_UP_TO_TWENTY = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: float(value) for value, word in enumerate(_UP_TO_TWENTY.split(), start=1)} | {
    word: 10.0 * value for value, word in enumerate(_TENS.split(), start=3)
}
_ONCE = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_SCALE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_NUMBER = re.compile(
    r"(?P<money>[$£€¥]\s?)?(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?P<ord>st|nd|rd|th)?(?![\w]|,\d{3})"
    r"(?P<percent>\s?%)?(?P<scale>\s(?:hundred|thousand|million|billion|trillion|dozen)\b)?"
    rf"|\b(?P<word>{'|'.join((*_WORDS, *_ONCE))})\b(?P<wscale>[- ](?:hundred|thousand|million|billion|dozen)\b)?",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[- ]?(?:square (?:kilomet(?:er|re)s?|miles?|feet|met(?:er|re)s?)|sq\.? ?(?:mi|km|ft)|(?:k|c|m)?m²?|km2|mi|ft|feet"
    r"|foot|in(?:ch(?:es)?)?|miles?|met(?:er|re)s?|kilomet(?:er|re)s?|acres?|hectares?|ha|kg|lbs?|pounds?|tons?|tonnes?|mph|"
    r"km/h|years?|months?|weeks?|days?|hours?|minutes?|seconds?|percent|per cent|dollars?)(?![\w])"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Characters `start` to `end` of a text that state a date or a number.

    order: greater means later or more; comparable within dates (date, year, decade, century: in years) and within
    numbers. A unit in the text is inside the span, but not converted.
    """

    start: int
    end: int
    kind: FigureKind
    order: float


def figures_in(text: str) -> list[Figure]:
    """Return the dates and numbers of `text`, left to right, none inside another.

    >>> [(figure.kind, figure.order) for figure in figures_in("Born in May 1962, he made three albums.")]
    [('date', 1962.375), ('number', 3.0)]
    """
    found: list[Figure] = []
    taken: list[tuple[int, int]] = []

    def keep(match: re.Match[str], kind: FigureKind, order: float, end: int | None = None) -> None:
        end = match.end() if end is None else end
        place = bisect(taken, (match.start(), end))  # what is taken does not overlap, so its neighbours tell
        if (place and taken[place - 1][1] > match.start()) or (place < len(taken) and taken[place][0] < end):
            return
        taken.insert(place, (match.start(), end))
        found.append(Figure(match.start(), end, kind, order))

    for match in _DATE.finditer(text):
        month = _month(match["m1"] or match["m2"] or match["m3"])
        day = int(re.sub(r"\D", "", match["d1"] or match["d2"] or "16"))
        year = match["y1"] or match["y2"] or match["y3"]
        # a day without its year orders nothing, but is an answer all the same
        keep(match, "date", (int(year) if year else 0) + round((month - 1) / 12 + (day - 1) / 365, 3))
    for match in _DECADE.finditer(text):
        keep(match, "decade", int(match["y"]) + 5.0)
    for match in _CENTURY.finditer(text):
        digits = re.sub(r"\D", "", match["c"])
        keep(match, "century", (int(digits) - 0.5) * 100 if digits else 0.0)
    for match in _YEAR_ALONE.finditer(text):
        keep(match, "year", float(match["y"]))
    for match in _NUMBER.finditer(text):
        unit = _UNIT.match(text, match.end())
        keep(match, "ordinal" if match["ord"] else "number", _worth(match), unit.end() if unit else None)
    return sorted(found, key=lambda figure: figure.start)


def _month(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name.lower()[:3]))


def _worth(match: re.Match[str]) -> float:
    if match["word"]:
        word = match["word"].lower()
        scale = (match["wscale"] or "").strip(" -").lower()
        return (_WORDS | _ONCE)[word] * _SCALE.get(scale, 1.0)
    return float(match["n"].replace(",", "")) * _SCALE.get((match["scale"] or "").strip().lower(), 1.0)
