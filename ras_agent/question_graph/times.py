"""Reads the period for which a sentence says that something holds, in years: "from 2012 to 2018", "since 2018".

A period is half-open, so that two directors who follow each other never hold the office at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from ras_agent.contracts.records import Passage, Triple
from ras_agent.text.values import Figure, figures_in

FROM = re.compile(r"\b(?:from|between)\s+(?:the\s+)?\Z", re.IGNORECASE)
TO = re.compile(r"\s*(?:to|until|till|and|through|[–—-])\s*(?:the\s+)?", re.IGNORECASE)
"""FROM stands before the first date of a period, TO between its two dates."""
_AS_OF = re.compile(r" \(as of (?P<date>\d{4}(?:-\d\d(?:-\d\d)?)?)\)\Z")
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_WORD = re.compile(r"\b(?:from|between|since|until|till)\b", re.IGNORECASE)
_SINCE = re.compile(r"\bsince\s+(?:the\s+)?\Z", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till)\s+(?:the\s+)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """Holds the time from `first` up to, but not including, `end`, in years; infinite if one side is open."""

    first: float = -inf
    end: float = inf

    def holds_at(self, time: float) -> bool:
        """Tell whether a time lies in the period."""
        return self.first <= time < self.end


def as_of(question: str, date: str) -> str:
    """Return the question with a note of the date for which it is to be answered.

    >>> as_of("Who is the director?", "2016-05")
    'Who is the director? (as of 2016-05)'
    """
    return f"{without_as_of(question)} (as of {date})"


def without_as_of(question: str) -> str:
    """Return the question without the note that `as_of` adds."""
    return _AS_OF.sub("", question)


def time_asked(question: str) -> float | None:
    """Return the date that `as_of` has added to a question, in years (see `year_of`); None for a question without a
    date.
    """
    match = _AS_OF.search(question)
    if match is None:
        return None
    return year_of(match["date"])


def year_of(date: str) -> float:
    """Return a date such as 2016, 2016-05 or 2016-05-01 as a number of years.

    >>> year_of("2016"), year_of("2016-07"), year_of("2016-01-01")
    (2016.0, 2016.5, 2016.0)
    """
    year, *rest = map(int, date.split("-"))
    month = rest[0] if rest else 1
    day = rest[1] if len(rest) > 1 else 1
    return year + (month - 1) / 12 + (day - 1) / 365


def facts_at(
    facts: Iterable[Triple], passages: Mapping[str, Passage], date: str
) -> list[Triple]:
    """Return the facts without those that are known to hold only at other times than `date`.

    A fact's time is the period in the sentence in which it was read, and the period in its attributes `valid_from` and
    `valid_until`. A fact that was read in several places is left out if none of their periods includes the date.
    """
    time = year_of(date)
    return [fact for fact in facts if _may_hold(fact, passages, time)]


def _may_hold(fact: Triple, passages: Mapping[str, Passage], time: float) -> bool:
    if not stated_period(fact.attributes).holds_at(time):
        return False
    periods: list[Period | None] = []
    for source in fact.sources:
        passage = passages.get(source.passage_id)
        said = passage.text[source.start : source.end] if passage else ""
        periods.append(period_of(said))
    if not periods:
        return True
    return any(one is None or one.holds_at(time) for one in periods)


def stated_period(attributes: Mapping[str, Any]) -> Period:
    """Return the period in a fact's attributes; a side without a date is open."""
    ends = []
    for name, otherwise in (("valid_from", -inf), ("valid_until", inf)):
        date = attributes.get(name)
        ends.append(year_of(str(date)) if is_date(date) else otherwise)
    return Period(*ends)


def is_date(value: object) -> bool:
    """Tell whether a value is a date such as "2016", "2016-05" or "2016-05-01"."""
    return isinstance(value, str) and _DATE.fullmatch(value) is not None


def period_of(sentence: str) -> Period | None:
    """Return the period that a sentence states; None if it states no period or several.

    >>> period_of("Ada Brenn was director from 2012 to 2018."), period_of("He has been mayor since 2015.")
    (Period(first=2012.0, end=2018.0), Period(first=2015.0, end=inf))
    >>> period_of("The bridge was opened in 1911."), period_of("She was mayor until 2015.")
    (None, Period(first=-inf, end=2015.0))
    """
    if not _WORD.search(sentence):  # most sentences; finding dates takes longer
        return None
    dates = [figure for figure in figures_in(sentence) if figure.is_date]
    periods = _periods(sentence, dates)
    if len(periods) != 1:
        return None
    return periods[0]


def _periods(sentence: str, dates: Sequence[Figure]) -> list[Period]:
    periods: list[Period] = []
    # the date after "from", until the end of its period is found
    begun: Figure | None = None
    end = 0
    for date in dates:
        before = sentence[: date.start]
        between = sentence[end : date.start]
        end = date.end
        if begun is not None and TO.fullmatch(between):
            periods.append(Period(begun.order, date.order))
            begun = None
        elif FROM.search(before):
            begun = date
        elif _SINCE.search(before):
            periods.append(Period(first=date.order))
        elif _UNTIL.search(before):
            periods.append(Period(end=date.order))
    return periods
