"""Names by their capitals: which words join two words into one name."""

import pytest

from ras_agent.text.names import is_name, names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("She met J. R. R. Tolkien in Oxford.", ["J. R. R. Tolkien", "Oxford"]),
        ('Who sang "All Join Hands"?', ["All Join Hands"]),
        (
            "the Battle of the Bulge and Ludwig van Beethoven",
            ["Battle of the Bulge", "Ludwig van Beethoven"],
        ),
        ("a song by Echo and the Bunnymen", ["Echo and the Bunnymen"]),
        ("the Ems and the Soeste", ["Ems", "Soeste"]),
        ("written by M. K. Asante, Jr. and others", ["M. K. Asante, Jr."]),
        ("Super Bowl XXXIV in 1999", ["Super Bowl XXXIV"]),
        ("Bill Cosby's third album", ["Bill Cosby"]),
        ("he had an OBE. Does she?", ["OBE"]),
        ("nothing here", []),
        ("The US took Varn, and IT was born in the US.", ["US", "Varn", "IT", "US"]),
        ("It helped us. THE END IS NEAR TO US", ["END IS NEAR TO US"]),
    ],
)
def test_names_are_runs_of_capitals_with_their_small_words(
    text: str, names: list[str]
) -> None:
    assert names_in(text) == names


def test_a_question_word_is_no_name() -> None:
    assert names_in("Which of Tara Strong's roles? What do they share?") == [
        "Tara Strong"
    ]


@pytest.mark.parametrize(
    "text", ["Bank of Boston", "Adriana Trigiani", "Milan", "42nd Street", "iPhone"]
)
def test_these_are_names(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text",
    ["American television program", "June 1999", "1999", "American", "the band", ""],
)
def test_these_are_not(text: str) -> None:
    assert not is_name(text)


def test_quotation_marks_around_white_space_quote_no_name() -> None:
    assert names_in('He said "  " and "Hail  " to Rome.') == ["Hail", "Rome"]


def test_each_item_of_a_bulleted_list_is_a_name_of_its_own() -> None:
    assert names_in("- Ann Ray\n- Bo Lind") == ["Ann Ray", "Bo Lind"]


def test_a_dash_with_blanks_parts_two_names() -> None:
    assert names_in("Budget - Linnea Berg explains") == ["Budget", "Linnea Berg"]
    assert names_in("a Coca-Cola sign") == ["Coca-Cola"]
    war = "Russo - Japanese War"  # in a tokenised text
    assert names_in(f"He fought in the {war}.") == [war]


def test_a_sum_is_of_no_name() -> None:
    assert names_in("he pays the Claimant 6,200 pounds") == ["Claimant"]
    assert names_in("a Boeing 747 landed") == ["Boeing 747"]
