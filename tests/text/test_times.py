"""The periods that a sentence states, half-open, and which of them belongs to a fact; dates of events are no periods."""

from math import inf

import pytest

from ras_agent.question_graph.times import Period, period_of_fact, periods_of


@pytest.mark.parametrize(
    ("sentence", "periods"),
    [
        ("Ada Brenn was director from 2012 to 2018.", [Period(2012.0, 2018.0)]),
        ("She lived there between 1911 and 1917.", [Period(1911.0, 1917.0)]),
        ("From 1998 until 2006 the editor was Sigrid Moe.", [Period(1998.0, 2006.0)]),
        ("Tom Vell has been director since 2018.", [Period(2018.0, inf)]),
        ("Greta Lund was mayor until 2015.", [Period(-inf, 2015.0)]),
        ("From 2007 on, Korl Press printed it.", [Period(2007.0, inf)]),
        ("He coached Norland in 2010 - 2014.", [Period(2010.0, 2014.0)]),
        ("During 1990–94 she led the mill.", [Period(1990.0, 1994.0)]),
        ("1811–1827: Ada Brenn", [Period(1811.0, 1827.0)]),
        (
            "He led it from 1990 to 1994 and has led it again since 2001.",
            [Period(1990.0, 1994.0), Period(2001.0, inf)],
        ),
        ("The bridge was opened in 1911.", []),
        ("He moved from Varn to Pellis in 1911.", []),
        ("It was opened in 1990-05.", []),
        ("In 2010-05-01 it burnt.", []),
        ("Ada Brenn (1857–1915) was a director.", []),
        ("The score was 3–10 in 1911.", []),
        ("From 2007 on the coast it rained.", []),
        ("", []),
    ],
)
def test_the_periods_of_a_sentence(sentence: str, periods: list[Period]) -> None:
    assert periods_of(sentence) == periods


PRESS = "It was printed by Korl Press, from 1970 to 1986, then by Aune Mills, from 1987 to 2006."
FOLLOWED = "The first was Ada Brenn, who served from 1990 to 1991, followed by Tom Vell until 1993."
LIVED = "He lived at Quay 20, The Hague ( 1903–1915 )."


@pytest.mark.parametrize(
    ("sentence", "fact", "period"),
    [
        (PRESS, ("It", "was printed by", "Korl Press"), Period(1970.0, 1986.0)),
        (PRESS, ("It", "was printed by", "Aune Mills"), Period(1987.0, 2006.0)),
        (FOLLOWED, ("Ada Brenn", "followed by", "Tom Vell"), Period(-inf, 1993.0)),
        (PRESS, ("It", "was printed in", "Varn"), Period(1970.0, 1986.0)),
        (PRESS, ("The Gang", "was printed in", "Varn"), None),
        (
            "Ada Brenn was director from 2012 to 2018 and Tom Vell from 2018 to 2020.",
            ("Tom Vell", "was", "director"),
            Period(2018.0, 2020.0),
        ),
        (LIVED, ("He", "lived at", "The Hague"), Period(1903.0, 1915.0)),
        (LIVED, ("He", "lived at", "Quay 20"), None),
        (
            "It was founded by Ada Brenn (1857–1915).",
            ("It", "was founded by", "Ada Brenn"),
            None,
        ),
        ("In 1999 he became mayor.", ("he", "became", "mayor"), Period(1999.0, inf)),
        (
            "She was born in Varn and became mayor in 1999.",
            ("She", "was born in", "Varn"),
            None,
        ),
        (
            "She became mayor in 1999, after 1990.",
            ("She", "became", "mayor"),
            None,
        ),
    ],
)
def test_the_period_of_a_fact_is_that_of_its_clause(
    sentence: str, fact: tuple[str, str, str], period: Period | None
) -> None:
    assert period_of_fact(sentence, *fact) == period


def test_of_two_that_follow_each_other_one_holds_at_any_time() -> None:
    first = Period(2012.0, 2018.0)
    second = Period(2018.0)
    for time in (2012.0, 2017.99, 2018.0, 2030.0):
        assert first.holds_at(time) != second.holds_at(time)
