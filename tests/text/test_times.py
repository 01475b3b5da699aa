"""A sentence states one period, half-open; dates of events are no periods."""

from math import inf

import pytest

from ras_agent.question_graph.times import Period, period_of


@pytest.mark.parametrize(
    ("sentence", "period"),
    [
        ("Ada Brenn was director from 2012 to 2018.", Period(2012.0, 2018.0)),
        ("She lived there between 1911 and 1917.", Period(1911.0, 1917.0)),
        ("From 1998 until 2006 the editor was Sigrid Moe.", Period(1998.0, 2006.0)),
        ("Tom Vell has been director since 2018.", Period(2018.0, inf)),
        ("Greta Lund was mayor until 2015.", Period(-inf, 2015.0)),
        ("The bridge was opened in 1911.", None),
        ("He moved from Varn to Pellis in 1911.", None),
        ("He led it from 1990 to 1994 and has led it again since 2001.", None),
        ("", None),
    ],
)
def test_the_period_of_a_sentence(sentence: str, period: Period | None) -> None:
    assert period_of(sentence) == period


def test_of_two_that_follow_each_other_one_holds_at_any_time() -> None:
    first = Period(2012.0, 2018.0)
    second = Period(2018.0)
    for time in (2012.0, 2017.99, 2018.0, 2030.0):
        assert first.holds_at(time) != second.holds_at(time)
