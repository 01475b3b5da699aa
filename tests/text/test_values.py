"""Dates and numbers: the value of a phrase as a whole, which agree, and where they are in running text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.text.values import Date, Quantity, agree, figures_in, value_of
from tests.find_any import find_any


@pytest.mark.parametrize(
    ("surface", "date"),
    [
        ("1847", Date(1847, 1847)),
        ("in 1847", Date(1847, 1847)),
        ("March 1847", Date(1847, 1847, 3)),
        ("Sept. 2001", Date(2001, 2001, 9)),
        ("3 March 1847", Date(1847, 1847, 3, 3)),
        ("March 3rd, 1847", Date(1847, 1847, 3, 3)),
        ("1847-03-03", Date(1847, 1847, 3, 3)),
        ("1847/3/4", Date(1847, 1847, 3, 4)),
        ("4.3.1847", Date(1847, 1847, 3, 4)),
        ("31-12-1847", Date(1847, 1847, 12, 31)),
        ("12/31/1847", Date(1847, 1847, 12, 31)),
        ("3/4/1847", Date(1847, 1847)),
        ("the 1840s", Date(1840, 1849)),
        ("the early 1900s", Date(1900, 1999)),
        ("c. 1850", Date(1845, 1855)),
        ("1908-05", Date(1908, 1908, 5)),
        ("march 1847", Date(1847, 1847, 3)),
        ("the 19th century", Date(1800, 1899)),
        ("late nineteenth century", Date(1800, 1899)),
    ],
)
def test_dates(surface: str, date: Date) -> None:
    assert value_of(surface) == date


@pytest.mark.parametrize(
    ("surface", "quantity"),
    [
        ("1,047 kilometres", Quantity(1047, "kilometres", 1)),
        ("5,200", Quantity(5200, "", 100)),
        ("about 5,200", Quantity(5200, "", 1040)),
        ("$5.5 million", Quantity(5.5e6, "$", 1e5)),
        ("two children", Quantity(2, "children", 1)),
        ("-5 °C", Quantity(-5, "°c", 1)),
        ("20%", Quantity(20, "%", 1)),
        ("ſix cities", Quantity(6, "cities", 1)),
        ("fifteen tracks", Quantity(15, "tracks", 1)),
        ("seventy-nine percent", Quantity(79, "percent", 1)),
        ("three dozen", Quantity(36, "", 12)),
        ("2571", Quantity(2571, "", 1)),
    ],
)
def test_quantities(surface: str, quantity: Quantity) -> None:
    assert value_of(surface) == quantity


@pytest.mark.parametrize(
    "surface",
    [
        "Edinburgh",
        "1936 Winter Olympics",
        "14th Congress",
        "30th",
        "5 ft 11 in",
        "1914–1918",
        "",
        "1 of the best five",
        "3 Idiots",
        "3 March",
        "fifty-ninth",
    ],
)
def test_names_and_phrases_are_no_values(surface: str) -> None:
    assert value_of(surface) is None


_PIECES = (
    *(
        "1",
        "12",
        "1847",
        "2020",
        "3,000",
        "0.5",
        "six",
        "twenty",
        "-",
        "−",
        "$",
        "£",
        "%",
        " ",
        ",",
        ".",
        "th",
        "s",
        "km",
    ),
    *(
        "March",
        "Jun",
        "of",
        "the",
        "in",
        "about",
        "c.",
        "million",
        "dozen",
        "century",
        "first",
        "ſix",
        "K",
        "٣",
    ),
)
surfaces = st.lists(st.sampled_from([*_PIECES, " "]), max_size=7).map("".join)


@given(surfaces)
def test_any_text_may_be_asked_about(surface: str) -> None:
    value = value_of(surface)
    assert value is None or agree(value, value)


@pytest.mark.parametrize("kind", [Date, Quantity])
def test_the_texts_drawn_above_are_dates_and_quantities(kind: type) -> None:
    assert find_any(surfaces, lambda surface: isinstance(value_of(surface), kind))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("1960", "1961", False),
        ("1960", "January 1960", True),
        ("January 1960", "March 1960", False),
        ("3 March 1847", "4 March 1847", False),
        ("1924", "the 1920s", True),
        ("300", "312", True),
        ("300", "412", False),
        ("20 people", "21 people", False),
        ("1.25 km", "1.254 km", True),
        ("5 km", "3 miles", True),
        ("two", "2", True),
        ("1847", "19th century", True),
        ("1901", "19th century", False),
        ("fifteen albums", "16 albums", False),
        ("1847", "35 km", True),
    ],
)
def test_agreement(one: str, other: str, together: bool) -> None:
    first, second = value_of(one), value_of(other)
    assert first is not None
    assert second is not None
    assert agree(first, second) is agree(second, first) is together


def told(text: str) -> list[tuple[str, str]]:
    return [
        (text[figure.start : figure.end], figure.kind) for figure in figures_in(text)
    ]


def test_dates_are_found_whole() -> None:
    text = "Born on 6 March 1937, crowned in May 1962, died February 3, 1999."
    assert told(text) == [
        ("6 March 1937", "date"),
        ("May 1962", "date"),
        ("February 3, 1999", "date"),
    ]


def test_years_decades_and_centuries_are_told_apart() -> None:
    text = "Built in 1712, painted in the early 1970s, rebuilt in the 19th century."
    assert told(text) == [
        ("1712", "year"),
        ("early 1970s", "decade"),
        ("19th century", "century"),
    ]


def test_numbers_keep_their_unit() -> None:
    assert told("It is 8 km long and cost $150 million for 22,513 people.") == [
        ("8 km", "number"),
        ("$150 million", "number"),
        ("22,513", "number"),
    ]


def test_later_dates_have_a_greater_order() -> None:
    early, late = (
        figures_in(text)[0].order for text in ("3 February 1945", "21 July 1945")
    )
    assert 1945 <= early < late < 1946


def test_number_words_and_scales_count() -> None:
    text = "three acts, twenty-four songs, 1.5 million copies, twice"
    assert [figure.order for figure in figures_in(text)] == [3.0, 24.0, 1.5e6, 2.0]


def test_a_century_in_words_has_the_order_of_its_middle() -> None:
    text = "Begun in the nineteenth century, ended in the 20th century."
    assert [(figure.kind, figure.order) for figure in figures_in(text)] == [
        ("century", 1850.0),
        ("century", 1950.0),
    ]


def test_two_years_with_a_hyphen_and_small_months_are_no_dates_in_running_text() -> (
    None
):
    assert told("In the 2008-09 season they may 3 times march 10 miles.") == [
        ("2008", "year"),
        ("09", "number"),
        ("3", "number"),
        ("10 miles", "number"),
    ]
    assert told("Signed on 1847-03-09.") == [("1847-03-09", "date")]


def test_a_table_of_numbers_gives_each_once_in_order() -> None:
    table = " ".join(f"{year} 3 May {year + 1}" for year in range(1700, 2000))
    assert told(table) == [
        found
        for year in range(1700, 2000)
        for found in ((str(year), "year"), (f"3 May {year + 1}", "date"))
    ]
