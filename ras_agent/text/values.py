"""Finds dates and numbers in running text, and reads the value of a phrase that is nothing but a date or
number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.canonical import canonical_key
from ras_agent.text.short_cache import cached_if_short
from ras_agent.text.words import MONTHS, word_set


@dataclass(frozen=True, slots=True)
class Date:
    """Holds a day, a month, a year or a range of years. `month` and `day` are 0 if they are unknown."""

    first_year: int
    last_year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class Quantity:
    """Holds an `amount` of a `unit` (a canonical key, "" for a bare number), known to the nearest `precision`."""

    amount: float
    unit: str
    precision: float


Value = Date | Quantity
FigureKind = Literal["date", "year", "decade", "century", "number", "ordinal"]


@dataclass(frozen=True, slots=True)
class Figure:
    """Locates a date or a number: characters `start` to `end` of a text. The span includes a unit."""

    start: int
    end: int
    kind: FigureKind
    order: float
    """The position among other figures: a greater value means later or more. Comparable among dates, decades and
    centuries (in years) and among numbers (units are not converted).
    """

    @property
    def is_date(self) -> bool:
        """Tell whether the figure is a date, a decade or a century."""
        return self.kind not in ("number", "ordinal")


# The grammar of dates. In running text the name of a month must be capitalised, because "may" and "march" are verbs.
_MONTH_NUMBERS = {
    form: n for n, name in enumerate(MONTHS, 1) for form in (name, name[:3])
} | {"sept": 9}
_MONTH = "|".join(
    form.capitalize() for form in sorted(_MONTH_NUMBERS, key=len, reverse=True)
)
_DAY = r"(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_M = r"(?:0?[1-9]|1[0-2])"
_D = r"(?:0?[1-9]|[12]\d|3[01])"
_AFTER_12 = r"(?:1[3-9]|2\d|3[01])"
# of 1/3/2016 only the year is certain: the month comes first in some countries, the day in others
_IN_FIGURES = (
    rf"\b(?:(?P<y6>{_YEAR})/(?P<m6>{_M})/(?P<d6>{_D})|(?P<d7>{_D})\.(?P<m7>{_M})\.(?P<y7>{_YEAR})"
    rf"|(?P<d8>{_AFTER_12})[/-](?P<m8>{_M})[/-](?P<y8>{_YEAR})|(?P<m9>{_M})[/-](?P<d9>{_AFTER_12})[/-](?P<y9>{_YEAR})"
    rf"|{_D}[/-]{_D}[/-](?P<y>{_YEAR}))\b"
)
_DATE = (
    rf"\b(?:(?P<d1>{_DAY})\s+(?:of\s+)?(?P<m1>{_MONTH})\b\.?(?:,?\s+(?P<y1>{_YEAR})\b)?"
    rf"|(?P<m2>{_MONTH})\b\.?\s+(?P<d2>{_DAY})\b(?:,?\s+(?P<y2>{_YEAR})\b)?"
    rf"|(?P<m3>{_MONTH})\b\.?,?\s+(?:of\s+)?(?P<y3>{_YEAR})\b"
    rf"|(?P<y4>{_YEAR})-(?P<m4>0[1-9]|1[0-2])-(?P<d4>[0-2]\d|3[01])\b)|{_IN_FIGURES}"
)
_DATE_IN_TEXT = re.compile(_DATE)
# in running text "2008-09" is two years
_WHOLE_DATE = re.compile(
    rf"{_DATE}|(?P<y5>{_YEAR})-(?P<m5>0[1-9]|1[0-2])", re.IGNORECASE
)
_DECADE = re.compile(
    r"\b(?:(?:early|mid|late)[- ])?(?:the )?(?P<y>1\d\d0|20\d0)['’]?s\b", re.IGNORECASE
)
_CENTURY_WORDS = """tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
twentieth twenty-first"""
_CENTURIES = {
    word: number for number, word in enumerate(_CENTURY_WORDS.split(), start=10)
}
_CENTURY = re.compile(
    rf"\b(?P<c>\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_CENTURIES)}|twenty first)[- ](?:century|centuries)\b",
    re.IGNORECASE,
)
_YEAR_ALONE = re.compile(rf"(?<![\d,.$£€#-])\b(?P<y>{_YEAR})\b(?![,.]\d|%|[-–]\d{{3}})")
_MID_MONTH = 16

# The grammar of numbers.
_UP_TO_TWENTY = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS = {
    **{
        word: float(number)
        for number, word in enumerate(_UP_TO_TWENTY.split(), start=1)
    },
    **{word: 10.0 * number for number, word in enumerate(_TENS.split(), start=2)},
    "zero": 0.0,
}
_ONES = "|".join(_UP_TO_TWENTY.split()[:9])
# matches "twenty-four", but no part of "fifty-ninth"
_WORDS = rf"(?:(?:{'|'.join(_TENS.split())})-(?:{_ONES})|{'|'.join(_NUMBER_WORDS)})(?!-(?:first|second|third|[a-z]+th)\b)"
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "dozen": 12.0,
}
_DIGITS = r"(?P<money>[$£€¥]\s?)?(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3}){1,4}(?:\.\d+)?|\d{1,15}(?:\.\d+)?)"
_SCALE = rf"(?:[\s-](?P<scale>{'|'.join(_SCALES)})\b)?"
_NUMBER_IN_TEXT = re.compile(
    rf"(?:{_DIGITS}(?P<ord>st|nd|rd|th)?(?!\w|,\d{{3}})(?:\s?%)?|\b(?P<word>{_WORDS}|{'|'.join(_TIMES)})\b)"
    + _SCALE,
    re.IGNORECASE,
)
# in running text only a measure belongs to the number: in "three albums" the span is "three"
_MEASURE = re.compile(
    r"[- ]?(?:square (?:kilomet(?:er|re)s?|miles?|feet|met(?:er|re)s?)|sq\.? ?(?:mi|km|ft)|(?:k|c|m)?m²?|km2|mi|ft|feet"
    r"|foot|in(?:ch(?:es)?)?|miles?|met(?:er|re)s?|kilomet(?:er|re)s?|acres?|hectares?|ha|kg|lbs?|pounds?|tons?|tonnes?|mph|"
    r"km/h|years?|months?|weeks?|days?|hours?|minutes?|seconds?|percent|per cent|dollars?)(?![\w])"
)
_WHOLE_QUANTITY = re.compile(
    rf"(?P<sign>[-−]?)(?:{_DIGITS}|(?P<word>{_WORDS})\b){_SCALE}(?P<unit>\D*)",
    re.IGNORECASE,
)
# "1936 Winter Olympics", "14th Congress", "two of his older brothers": names and phrases that begin with a number
_UNIT = re.compile(r"|[\s-]?(?:%|°[a-zA-Z]?|[a-zµ²³/^]+(?:[\s-][a-z²³/^]+){0,2})")
_NO_UNITS = {"st", "nd", "rd", "th", "s"}
_LIKE_A_YEAR = re.compile(r"[12]\d{3}")

_LEAD = re.compile(
    r"(?P<when>(?:(?:in|on|the) )*)"
    r"(?:(?P<about>about|around|approximately|approx\.|roughly|circa|ca\.?|c\.|some|nearly|almost|over|under|early|mid|late"
    r"|more than|less than|at least|at most|up to)[\s-]+)?(?P<the>(?:the )?)",
    re.IGNORECASE,
)


@cached_if_short(16384)
def value_of(surface: str) -> Value | None:
    """Return the date or quantity that the whole of `surface` states; None for anything else.

    >>> value_of("3 March 1847"), value_of("about 5,200 people")
    (Date(first_year=1847, last_year=1847, month=3, day=3), Quantity(amount=5200.0, unit='people', precision=1040.0))
    """
    text = " ".join(surface.split()).strip(" .,;")
    lead = _LEAD.match(text)
    # for the type checker: the pattern always matches, because it may match nothing
    if lead is None:
        return None
    bare = text[lead.end() :]
    about = bool(lead["about"])
    for pattern, reader in (
        (_WHOLE_DATE, _date),
        (_DECADE, _decade),
        (_CENTURY, _century),
        (_YEAR_ALONE, _year),
    ):
        if match := pattern.fullmatch(bare):
            date = reader(match)
            if about and date.first_year == date.last_year:
                date = Date(date.first_year - 5, date.last_year + 5)
            if date.last_year:
                return date
            return None
    if lead["when"] or lead["the"]:
        match = None
    else:
        match = _WHOLE_QUANTITY.fullmatch(bare)
    if match:
        return _with_unit(match, about)
    return None


_WORDS_OF_VALUES = word_set(
    "am pm each st nd rd th h min tsp tbsp monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri"
    " daily open closed yes no none"
).union(_MONTH_NUMBERS)
_LETTERS = re.compile(r"[^\W\d_]+")


def is_value(text: str) -> bool:
    """Return whether a text only states a date, a time, a price, another figure or yes or no, and so names nothing.

    >>> [is_value(text) for text in ("4 May", "7.00 pm", "£5 each", "07:15", "Monday", "–")]
    [True, True, True, True, True, True]
    >>> is_value("Lot 1"), is_value("May Ashdown"), is_value("Route 12A")
    (False, False, False)
    """
    words = _LETTERS.findall(text.lower())
    return _WORDS_OF_VALUES.issuperset(words) or value_of(text) is not None


def figures_in(text: str) -> list[Figure]:
    """Return the dates and numbers of `text`, left to right, not overlapping.

    >>> [(figure.kind, figure.order) for figure in figures_in("Born in May 1962, he made three albums.")]
    [('date', 1962.374), ('number', 3.0)]
    """
    figures: list[Figure] = []
    is_taken = bytearray(len(text))

    def keep(start: int, end: int, kind: FigureKind, order: float) -> None:
        if 1 in is_taken[start:end]:
            return
        is_taken[start:end] = b"\1" * (end - start)
        figures.append(Figure(start, end, kind, order))

    for match in _DATE_IN_TEXT.finditer(text):
        date = _date(match)
        # a day without a year has no place in the order, but can still be an answer
        of_year = (date.month - 1) / 12 + ((date.day or _MID_MONTH) - 1) / 365
        keep(*match.span(), "date", date.first_year + round(of_year, 3))
    for match in _DECADE.finditer(text):
        keep(*match.span(), "decade", _decade(match).first_year + 5.0)
    for match in _CENTURY.finditer(text):
        keep(*match.span(), "century", _century(match).first_year + 50.0)
    for match in _YEAR_ALONE.finditer(text):
        keep(*match.span(), "year", float(_year(match).first_year))
    for match in _NUMBER_IN_TEXT.finditer(text):
        kind: FigureKind = "number"
        if match["ord"]:
            kind = "ordinal"
        measure = _MEASURE.match(text, match.end()) or match
        keep(match.start(), measure.end(), kind, _amount(match))
    return sorted(figures, key=lambda figure: figure.start)


def agree(first: Value, second: Value) -> bool:
    """Tell whether both values can be true of the same thing, because one refines or rounds to the other, or
    they cannot be compared.

    "1960" agrees with "January 1960", "300" with "312", "5 km" with "3 miles"; "1960" does not agree with
    "1961".
    """
    if isinstance(first, Date) and isinstance(second, Date):
        if first.first_year > second.last_year or second.first_year > first.last_year:
            return False
        return _refines(first.month, second.month) and _refines(first.day, second.day)
    if isinstance(first, Quantity) and isinstance(second, Quantity):
        if first.unit != second.unit:
            return True
        tolerance = max(first.precision, second.precision) / 2
        return abs(first.amount - second.amount) <= tolerance
    return True


def _refines(first: int, second: int) -> bool:
    return first == second or not first or not second


def _date(match: re.Match[str]) -> Date:
    parts = dict.fromkeys("ymd", "")
    for name, text in match.groupdict().items():
        if text:
            parts[name[0]] = text
    year = int(parts["y"] or 0)
    name_of_month = parts["m"].casefold()
    month = _MONTH_NUMBERS.get(name_of_month) or int(name_of_month or 0)
    day = parts["d"].rstrip("sthndrSTHNDR")
    return Date(year, year, month, int(day or 0))


def _decade(match: re.Match[str]) -> Date:
    year = int(match["y"])
    if year % 100 == 0:
        return Date(year, year + 99)
    return Date(year, year + 9)


def _century(match: re.Match[str]) -> Date:
    name = match["c"].casefold().replace(" ", "-")
    number = _CENTURIES.get(name) or int(name[:-2])
    last = 100 * number - 1
    return Date(last - 99, last)


def _year(match: re.Match[str]) -> Date:
    year = int(match["y"])
    return Date(year, year)


def _amount(match: re.Match[str]) -> float:
    if match["word"]:
        values = _NUMBER_WORDS | _TIMES
        words = match["word"].casefold().split("-")
        amount = float(sum(values[word] for word in words))
    else:
        amount = float(match["n"].replace(",", ""))
    return amount * _scale(match)


def _scale(match: re.Match[str]) -> float:
    word = match["scale"] or ""
    return _SCALES.get(word.casefold(), 1.0)


def _with_unit(match: re.Match[str], about: bool) -> Quantity | None:
    unit = match["unit"]
    digits = match["n"] or ""
    money = (match["money"] or "").strip()
    name_like = unit.strip() and not money and _LIKE_A_YEAR.fullmatch(digits)
    first, _, _ = unit.strip("- ").partition(" ")
    is_unit = _UNIT.fullmatch(unit) and first.casefold() not in _NO_UNITS
    if name_like or not is_unit:
        return None
    amount = _amount(match)
    precision = _scale(match)
    if digits:
        digits_before, _, fraction = digits.replace(",", "").partition(".")
        # the value of the last given digit: 0.01 for "3.25", 100 for "1,200"; numbers below 100 are seldom rounded
        zeros = 0
        if int(digits_before) >= 100:
            zeros = len(digits_before) - len(digits_before.rstrip("0"))
        precision *= 10.0 ** (-len(fraction) if fraction else zeros)
    if about:
        precision = max(precision, amount / 5)
    return Quantity(
        -amount if match["sign"] else amount, f"{money}{canonical_key(unit)}", precision
    )
