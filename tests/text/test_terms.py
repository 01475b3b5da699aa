"""Words and figures of a text, each with the other forms in which the same may be written."""

from __future__ import annotations

import pytest

from ras_agent.text.terms import terms_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,777,539", "1777539"),
        ("1 777 539", "1777539"),
        ("1.604,5", "1,604.5"),
        ("1604.0", "1604"),
        ("1.8 million", "1,800,000"),
        ("3 Millionen", "three million"),
        ("146万", "1,460,000"),
        ("5 lakh", "500,000"),
        ("−6", "-6"),
        ("twenty-four", "24"),
        ("two hundred and five", "205"),
        ("fourteenth", "14th"),
        ("XIV", "14"),
        ("1990s", "1990"),
        ("١٩١١", "1911"),
        ("August", "août"),
        ("March", "marzo"),
        ("km", "kilometres"),
        ("U.S.", "United States"),
        ("Dutch", "Netherlands"),
        ("directed", "director"),
        ("Curies", "Curie"),
        ("Łódź", "Lodz"),
        ("l'Étoile", "Etoile"),
        ("Hawai'i", "Hawaii"),
        ("Bell's", "Bell"),
    ],
)
def test_these_are_forms_of_one_thing(one: str, other: str) -> None:
    (first,), (second,) = terms_of(one), terms_of(other)
    assert not first.forms.isdisjoint(second.forms)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1990", "1991"),
        ("777", "1,777,539"),
        ("four", "twenty-four"),
        ("5", "50"),
        ("-6", "6"),
        ("1.5", "15"),
        ("March", "march"),
        ("May", "may"),
        ("Paris", "Parma"),
    ],
)
def test_these_are_different_things(one: str, other: str) -> None:
    (first,), (second,) = terms_of(one), terms_of(other)
    assert (
        first.forms.isdisjoint(second.forms - {second.word})
        or first.is_figure != second.is_figure
    )


@pytest.mark.parametrize(
    "written",
    [
        "August 23, 2006",
        "23 August 2006",
        "2006-08-23",
        "23.08.2006",
        "23. August 2006",
    ],
)
def test_a_date_has_a_day_a_month_and_a_year_however_it_is_written(
    written: str,
) -> None:
    forms = [term.forms for term in terms_of(written)]
    assert {"@8", "#23", "#2006"} <= frozenset().union(*forms)
    assert len(forms) == 3


def test_the_second_of_two_years_may_be_short() -> None:
    first, second = terms_of("the 2008–09 season")[1:3]
    assert (first.text, second.text) == ("2008", "09")
    assert "#2009" in second.forms


def test_small_words_carry_no_meaning_but_short_forms_in_capitals_do() -> None:
    assert [
        term.text for term in terms_of("the US and one of us") if not term.is_empty
    ] == ["US"]
