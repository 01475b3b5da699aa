"""Words: content words without function words, stems under which related words meet."""

import pytest

from ras_agent.text.words import content_words, fold, stem, stems


def test_folding_drops_case_and_accents() -> None:
    assert fold("Mirosław Ångström") == "mirosław angstrom"


def test_content_words_leave_function_words_and_possessives_out() -> None:
    assert content_words("What was the name of Bell's wife?") == [
        "name",
        "bell",
        "wife",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("directed", "director"),
        ("starring", "stars"),
        ("located", "location"),
        ("cities", "city"),
        ("founder", "founded"),
        ("oldest", "older"),
        ("wrote", "writer"),
        ("died", "death"),
        ("built", "building"),
        ("children", "child"),
    ],
)
def test_related_words_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_what_is_founded_is_not_found() -> None:
    assert stem("founded") != stem("found") == stem("finding")


def test_stems_keep_at_least_three_letters() -> None:
    assert stems("The ion and the king") == ["ion", "king"]
