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
"""The words between the two dates of a period; those of FROM stand before its first date."""
_AS_OF = re.compile(r" \(as of (?P<date>\d{4}(?:-\d\d(?:-\d\d)?)?)\)\Z")
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_WORD = re.compile(
    r"\b(?:from|between|since|until|till)\b|\d\s*[–—-]\s*\d\d", re.IGNORECASE
)
_SINCE = re.compile(r"\bsince\s+(?:the\s+)?\Z", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till)\s+(?:the\s+)?\Z", re.IGNORECASE)
_ON = re.compile(r"\s*(?:on|onwards?)\b(?!\s+the\b)", re.IGNORECASE)
_YEARS = r"(?P<first>[12]\d{3})\s*(?P<dash>[–—-])\s*(?P<end>[12]\d{3}|\d\d)\b(?!\s*[–—-]\s*\d)"
_RANGE = re.compile(rf"(?:\b(?:in|during|for)\s+|\A[\s*•]*){_YEARS}", re.IGNORECASE)
_BRACKET = re.compile(rf"\s*\(\s*{_YEARS}\s*\)")
_LONGEST_BRACKET = 25  # years; a longer one behind a name is mostly that of a life
_CUT = re.compile(r"[,;:]|\b(?:and|but|then)\b")
_BETWEEN_CLAUSES = re.compile(r"[\s,;:]*")
_BEGINS = re.compile(
    r"(?:became|joined|(?:was )?moved to|took over|succeeded|was (?:appointed|elected|named|renamed|transferred)\b.*)"
)
_IN = re.compile(r"\b(?:in|on)\s+(?:the\s+)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """Holds the time from `first` up to, but not including, `end`, in years; infinite if one side is open."""

    first: float = -inf
    end: float = inf

    def holds_at(self, time: float) -> bool:
        """Tell whether a time lies in the period."""
        return self.first <= time < self.end


@dataclass(frozen=True, slots=True)
class _Stated:
    """Holds a period, and the characters of a sentence that state it."""

    period: Period
    start: int
    end: int


def as_of(question: str, date: str) -> str:
    """Return the question with a note that says for which date it must be answered.

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
    parts = [int(part) for part in date.split("-")]
    year, month, day = [*parts, 1, 1][:3]
    return year + (month - 1) / 12 + (day - 1) / 365


def facts_at(
    facts: Iterable[Triple], passages: Mapping[str, Passage], date: str
) -> list[Triple]:
    """Return the facts, without those that are known to hold only at other times than `date`.

    A fact's time is the period that the sentence in which it was read states for it (`period_of_fact`), and the
    period in its attributes `valid_from` and `valid_until`. A fact that was read in several places is left out
    if none of their periods includes the date.
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
        period = period_of_fact(said, fact.subject, fact.predicate, fact.object)
        periods.append(period)
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


def periods_of(sentence: str) -> list[Period]:
    """Return the periods that a sentence states, in its order.

    >>> periods_of("Ada Brenn was director from 2012 to 2018."), periods_of("He has been mayor since 2015.")
    ([Period(first=2012.0, end=2018.0)], [Period(first=2015.0, end=inf)])
    >>> periods_of("The bridge was opened in 1911."), periods_of("She was mayor until 2015.")
    ([], [Period(first=-inf, end=2015.0)])
    """
    return [one.period for one in _stated(sentence)]


def period_of_fact(
    sentence: str, subject: str, predicate: str, object_: str
) -> Period | None:
    """Return the period that a sentence states for a fact that was read in it; None if it states no period.

    Of several periods it is the one in the fact's clause, or right after that clause. Years in brackets right
    after the object are a period too. In "became mayor in 1999", the date is the beginning of a period.

    >>> said = "It was published by Abril, from 1970 to 1986, then by Globo, from 1987 to 2006."
    >>> period_of_fact(said, "It", "was published by", "Globo")
    Period(first=1987.0, end=2006.0)
    >>> period_of_fact("In 1999 he became mayor.", "he", "became", "mayor")
    Period(first=1999.0, end=inf)
    """
    place = sentence.rfind(object_)
    years = None
    if place >= 0:
        years = _BRACKET.match(sentence, place + len(object_))
    period = _years(years) if years else None
    if period is not None and period.end - period.first <= _LONGEST_BRACKET:
        return period
    stated = _stated(sentence)
    if len(stated) == 1:
        return stated[0].period
    if stated:
        return _in_clause(sentence, stated, (subject, object_))
    if _BEGINS.match(predicate):
        return _beginning(sentence)
    return None


def _in_clause(
    sentence: str, stated: Sequence[_Stated], names: Sequence[str]
) -> Period | None:
    """Return the period in, or right after, the clause that mentions the last of the names; None if this is
    ambiguous.
    """
    last = max(names, key=sentence.find)
    place = sentence.find(last)
    if place < 0:
        return None
    begin = 0
    end = len(sentence)
    for cut in _CUT.finditer(sentence):
        if any(one.start <= cut.start() < one.end for one in stated):
            continue
        if cut.start() < place:
            begin = cut.end()
        elif cut.start() >= place + len(last):
            end = cut.start()
            break
    inside = [one for one in stated if begin <= one.start < end]
    if not inside:
        behind = [one for one in stated if one.start >= end]
        if behind and _BETWEEN_CLAUSES.fullmatch(sentence[end : behind[0].start]):
            inside = behind[:1]
    return inside[0].period if len(inside) == 1 else None


def _beginning(sentence: str) -> Period | None:
    """Return the time from a sentence's only date on; None if the date has no "in" or "on" before it, or is not
    the only one.
    """
    dates = [figure for figure in figures_in(sentence) if figure.is_date]
    if len(dates) == 1 and _IN.search(sentence[: dates[0].start]):
        return Period(first=dates[0].order)
    return None


def _years(years: re.Match[str]) -> Period | None:
    """Return the period of two years with a dash between them; None if the second number is a month, or not the
    later year.
    """
    first = years["first"]
    end = years["end"]
    if len(end) == 2:
        if years["dash"] == "-":
            return None
        end = first[:2] + end
    if int(end) <= int(first):
        return None
    return Period(float(first), float(end))


def _stated(sentence: str) -> list[_Stated]:
    """Return the periods that a sentence states, with their places, in its order."""
    if not _WORD.search(sentence):  # most sentences; finding dates takes longer
        return []
    dates = [figure for figure in figures_in(sentence) if figure.is_date]
    stated = _in_words(sentence, dates)
    for years in _RANGE.finditer(sentence):
        period = _years(years)
        if period is not None:
            stated.append(_Stated(period, years.start(), years.end()))
    return sorted(stated, key=lambda one: one.start)


def _in_words(sentence: str, dates: Sequence[Figure]) -> list[_Stated]:
    """Return the periods whose beginning or end is stated by "from", "since" or "until"."""
    stated: list[_Stated] = []
    # the date after "from", until the end of its period is found
    begun: Figure | None = None
    start = 0
    end = 0
    for date in dates:
        before = sentence[: date.start]
        between = sentence[end : date.start]
        end = date.end
        if begun is not None and TO.fullmatch(between):
            stated.append(_Stated(Period(begun.order, date.order), start, end))
            begun = None
        elif opening := FROM.search(before):
            begun = date
            start = opening.start()
            if _ON.match(sentence, end):
                stated.append(_Stated(Period(first=date.order), start, end))
        elif opening := _SINCE.search(before):
            stated.append(_Stated(Period(first=date.order), opening.start(), end))
        elif opening := _UNTIL.search(before):
            stated.append(_Stated(Period(end=date.order), opening.start(), end))
    return stated
