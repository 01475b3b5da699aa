"""Objects that are dates or quantities: those that can be compared without knowing the world."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ras_agent.text.canonical import canonical_key


@dataclass(frozen=True, slots=True)
class Date:
    """Holds a day, a month, a year or a run of years; `month` and `day` are 0 where they are not told."""

    first_year: int
    last_year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class Quantity:
    """`amount` of `unit` (a canonical key, "" for a bare number), told to the nearest `precision`."""

    amount: float
    unit: str
    precision: float


Value = Date | Quantity

_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = {form: n for n, name in enumerate(_MONTH_NAMES.split(), 1) for form in (name, name[:3])} | {"sept": 9}
_ABOUT = (
    r"(?:(?P<about>about|around|approximately|approx\.|roughly|circa|ca\.?|c\.|some|nearly|almost|over|under|early|mid|late"
    r"|more than|less than|at least|at most|up to)[\s-]+)?"
)
_YEAR = r"(?P<year>[12]\d{3})"
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?:(?:in|on|the) )*{_ABOUT}(?:the )?{pattern}", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}(?P<decade>s)?",
        rf"{_MONTH},? (?:of )?{_YEAR}",
        rf"{_DAY} (?:of )?{_MONTH},? {_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_YEAR}-(?P<month_number>0[1-9]|1[0-2])(?:-(?P<day>[0-2]\d|3[01]))?",
    )
)
_SMALL_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
_SMALL = {name: float(number) for number, name in enumerate(_SMALL_NUMBERS.split())}
_SCALES = {"": 1.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_QUANTITY = re.compile(
    rf"{_ABOUT}(?P<sign>[-−]?)(?P<currency>[$€£¥]?) ?"
    rf"(?P<number>\d{{1,3}}(?:,\d{{3}}){{1,4}}(?:\.\d+)?|\d{{1,15}}(?:\.\d+)?|(?:{'|'.join(_SMALL)})\b)"
    rf"(?:[ -](?P<scale>{'|'.join(filter(None, _SCALES))})\b)?(?P<unit>\D*)",
    re.IGNORECASE,
)
# "1936 Winter Olympics", "14th Congress", "two of his older brothers": names and phrases that begin with a number
_UNIT = re.compile(r"|[\s-]?(?:%|°[a-zA-Z]?|[a-zµ²³/^]+(?:[\s-][a-z²³/^]+){0,2})")
_ORDINALS = {"st", "nd", "rd", "th", "s"}
_LIKE_A_YEAR = re.compile(r"[12]\d{3}")


@lru_cache(maxsize=16384)
def value_of(surface: str) -> Value | None:
    """Return the date or quantity that `surface` is as a whole; None for anything else.

    >>> value_of("3 March 1847"), value_of("about 5,200 people")
    (Date(first_year=1847, last_year=1847, month=3, day=3), Quantity(amount=5200.0, unit='people', precision=1040.0))
    """
    text = " ".join(surface.split()).strip(" .,;")
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            return _date(match.groupdict())
    if match := _QUANTITY.fullmatch(text):
        return _quantity(match.groupdict(""))
    return None


def agree(one: Value, other: Value) -> bool:
    """Whether both can be told of one thing: one refines or rounds to the other, or they cannot be compared.

    "1960" agrees with "January 1960", "300" with "312", "5 km" with "3 miles"; "1960" does not agree with "1961".
    """
    if isinstance(one, Date) and isinstance(other, Date):
        overlap = one.first_year <= other.last_year and other.first_year <= one.last_year
        return overlap and _refines(one.month, other.month) and _refines(one.day, other.day)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.unit != other.unit or abs(one.amount - other.amount) <= max(one.precision, other.precision) / 2
    return True


def _refines(one: int, other: int) -> bool:
    return one == other or not one or not other


def _date(parts: dict[str, str | None]) -> Date:
    year = int(parts["year"] or 0)
    if parts.get("decade"):
        return Date(year, year + (9 if year % 100 else 99))
    if parts["about"]:
        return Date(year - 5, year + 5)
    month = int(parts.get("month_number") or 0) or _MONTHS.get((parts.get("month") or "").casefold(), 0)
    return Date(year, year, month, int(parts.get("day") or 0))


def _quantity(parts: dict[str, str]) -> Quantity | None:
    number, unit = parts["number"].casefold(), parts["unit"]
    name_like = unit.strip() and not parts["currency"] and _LIKE_A_YEAR.fullmatch(number)
    if name_like or not _UNIT.fullmatch(unit) or unit.strip("- ").split(" ")[0] in _ORDINALS:
        return None
    scale = _SCALES[parts["scale"].casefold()]
    if number in _SMALL:
        amount, precision = _SMALL[number], 1.0
    else:
        whole, _, fraction = number.replace(",", "").partition(".")
        amount = float(f"{whole}.{fraction}")
        # the last digit told: 0.01 for "3.25", 100 for "1,200"; numbers below 100 are seldom rounded
        zeros = len(whole) - len(whole.rstrip("0")) if amount >= 100 else 0
        precision = 10.0 ** (-len(fraction) if fraction else zeros)
    if parts["about"]:
        precision = max(precision, amount / 5)
    sign = -1.0 if parts["sign"] else 1.0
    return Quantity(sign * amount * scale, f"{parts['currency']}{canonical_key(unit)}", precision * scale)
