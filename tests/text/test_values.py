"""Dates and quantities: what they are, and which agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.text.values import Date, Quantity, agree, value_of


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
        ("the 1840s", Date(1840, 1849)),
        ("the early 1900s", Date(1900, 1999)),
        ("c. 1850", Date(1845, 1855)),
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
    ],
)
def test_names_and_phrases_are_no_values(surface: str) -> None:
    assert value_of(surface) is None


@given(st.text(st.one_of(st.characters(), st.sampled_from("0123456789,. -cJunſixK$%")), max_size=24))
def test_any_text_may_be_asked_about(surface: str) -> None:
    value = value_of(surface)
    assert value is None or agree(value, value)


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
        ("1847", "35 km", True),
    ],
)
def test_agreement(one: str, other: str, together: bool) -> None:
    first, second = value_of(one), value_of(other)
    assert first is not None
    assert second is not None
    assert agree(first, second) is agree(second, first) is together
