"""The period for which a sentence says that something holds, in years: "from 2012 to 2018", "since 2018", "until 2015".

A period is half-open, so that two directors who follow each other never hold the office at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ras_agent.text.values import Figure, figures_in

FROM = re.compile(r"\b(?:from|between)\s+(?:the\s+)?\Z", re.IGNORECASE)
TO = re.compile(r"\s*(?:to|until|till|and|through|[–—-])\s*(?:the\s+)?", re.IGNORECASE)
"""FROM stands before the first date of a period, TO between its two dates."""
_SINCE = re.compile(r"\bsince\s+(?:the\s+)?\Z", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till)\s+(?:the\s+)?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """The time from `first` up to, but not including, `end`, in years; infinite if one side is open."""

    first: float = -inf
    end: float = inf

    def holds_at(self, time: float) -> bool:
        """Tell whether a time lies in the period."""
        return self.first <= time < self.end


def period_of(sentence: str) -> Period | None:
    """Return the period that a sentence states; None if it states no period or several.

    >>> period_of("Ada Brenn was director from 2012 to 2018."), period_of("He has been mayor since 2015.")
    (Period(first=2012.0, end=2018.0), Period(first=2015.0, end=inf))
    >>> period_of("The bridge was opened in 1911."), period_of("She was mayor until 2015.")
    (None, Period(first=-inf, end=2015.0))
    """
    dates = [figure for figure in figures_in(sentence) if figure.is_date]
    periods = _periods(sentence, dates)
    if len(periods) != 1:
        return None
    return periods[0]


def _periods(sentence: str, dates: Sequence[Figure]) -> list[Period]:
    periods: list[Period] = []
    begun: Figure | None = (
        None  # the date after "from", until the end of its period is found
    )
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
