"""Reads the time that a question asks about, and finds the sentences of passages that hold at that time.

Who is the director?            not "Ada Brenn was director from 2012 to 2018."
Who was director in 2014?       "Ada Brenn was director from 2012 to 2018.", and asked without the year
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from ras_agent.question_graph.times import (
    FROM,
    TO,
    Period,
    periods_of,
    time_asked,
    without_as_of,
)
from ras_agent.text.names import names_in
from ras_agent.text.values import figures_in
from ras_agent.text.words import stem_set
from ras_agent.tools.offline import english
from ras_agent.tools.offline.reading import ReadPassage, Sentence

_NOW = re.compile(
    r"(?i)(?:(?:who|where)|(?:what|which)(?: \w+)?) (?P<verb>is|are|has|[a-z]+s)\b(?! been\b)"
)
_AT = re.compile(r"\s*,?\s*\b(?:in|at|during)\s+(?:the year\s+)?\Z", re.IGNORECASE)
_DAYS_OF_YEAR = 366


def in_its_time(
    question: str, passages: Sequence[ReadPassage]
) -> tuple[str, list[ReadPassage]]:
    """Return the question, and the passages without the sentences that only hold at other times.

    If a sentence about the same things states that it holds at the time asked for, the question is returned without its
    time, and sentences that state no time are removed too.
    """
    asked = _asked_in(question)
    if asked is None:
        return question, list(passages)
    periods: dict[Sentence, list[Period]] = {}
    for passage in passages:
        for sentence in passage.sentences:
            if asked.is_about(sentence):
                periods[sentence] = periods_of(sentence.text)
    has_period = any(asked.is_in(some) for some in periods.values())
    left_out: dict[str, set[int]] = {}
    for sentence, some in periods.items():
        if some:
            is_out = not asked.is_in(some)
        else:
            is_out = has_period and not asked.is_now
        if is_out:
            left_out.setdefault(sentence.passage.id, set()).add(sentence.number)
    left: list[ReadPassage] = []
    for passage in passages:
        numbers = left_out.get(passage.id)
        left.append(passage.without(numbers) if numbers else passage)
    if has_period or asked.is_now:
        return asked.without_time, left
    return question, left


def holds_then(question: str, grounds: Sequence[Sentence]) -> bool:
    """Return whether a sentence of a proof states a period that includes the time that a question asks about."""
    asked = _asked_in(question)
    if asked is None:
        return False
    return any(asked.is_in(periods_of(one.text)) for one in grounds)


@dataclass(frozen=True)
class _Asked:
    """Holds the time that a question asks about, in years, and the question without it."""

    time: float
    without_time: str
    is_now: bool = False

    @cached_property
    def stems(self) -> frozenset[str]:
        return stem_set(self.without_time)

    @cached_property
    def relation(self) -> frozenset[str]:
        """Return the stems of the words that are not names, such as "director"."""
        names = names_in(self.without_time)
        return self.stems - stem_set(" ".join(names))

    def is_in(self, periods: Sequence[Period]) -> bool:
        """Return whether one of the periods includes the time."""
        return any(period.holds_at(self.time) for period in periods)

    def is_about(self, sentence: Sentence) -> bool:
        """Return whether a sentence, with its title, contains most of the question's words, and not only its names."""
        stems_there = sentence.stems | sentence.passage.title_stems
        shared = self.stems & stems_there
        if self.relation and self.relation.isdisjoint(shared):
            return False
        return 2 * len(shared) > len(self.stems)


def _asked_in(question: str) -> _Asked | None:
    """Return the time that a question asks about; None if it mentions no time, or several."""
    time = time_asked(question)
    if time is not None:
        return _Asked(time, without_as_of(question), is_now=True)
    dates = [figure for figure in figures_in(question) if figure.is_date]
    if not dates and _is_of_now(question):
        today = date.today()
        day = today.timetuple().tm_yday
        return _Asked(today.year + day / _DAYS_OF_YEAR, question, is_now=True)
    if not dates or len(dates) > 2:
        return None
    first = dates[0]
    last = dates[-1]
    before = _AT.search(question[: first.start])
    if len(dates) == 2:
        before = FROM.search(question[: first.start])
        if TO.fullmatch(question[first.end : last.start]) is None:
            return None
    if before is None:
        return None
    bare = question[: before.start()].rstrip(" ,") + question[last.end :]
    return _Asked((first.order + last.order) / 2, bare)


def _is_of_now(question: str) -> bool:
    asks = _NOW.match(question)
    if asks is None:
        return False
    verb = asks["verb"].lower()
    if verb in ("is", "are", "has"):
        return True
    return verb not in ("was", "does") and english.is_third_person(verb)
