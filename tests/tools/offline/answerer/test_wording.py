"""The verdict of sentences on a question of yes or no in the question's own words."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.answerer.wording import wording
from ras_agent.tools.offline.reading import read

MILL = "The Corn Mill, a tall building, was built in 1874 by Ann Lee in Wick, Kent (near Dover). It has four floors."


def verdict(question: str, text: str = MILL, title: str = "Corn Mill") -> str:
    found = wording(question, read([Passage("1", text, title)]))
    return found[0] if found else ""


@pytest.mark.parametrize(
    "question",
    [
        "Was the Corn Mill built in 1874?",
        "Was the Corn Mill built in 1874 by Ann Lee?",
        "Is it true that the Corn Mill was built in 1874?",
        "The Corn Mill was built in 1874.",
        "Does the Corn Mill have four floors?",  # of "It"
    ],
)
def test_words_in_their_order_affirm(question: str) -> None:
    assert verdict(question) == "yes"


def test_another_figure_in_its_place_denies() -> None:
    assert verdict("Was the Corn Mill built in 1847?") == "no"
    assert verdict("Does the Corn Mill have five floors?") == "no"


def test_another_name_in_its_place_hardly_affirms() -> None:
    assert verdict("Was the Corn Mill built in 1874 by Bo Day?") == "hardly yes"


def test_a_wider_place_that_follows_is_no_other_name() -> None:
    text = "Ann Lee was born in Wick, Kent."
    assert verdict("Was Ann Lee born in Kent?", text, "Ann Lee") == ""


def test_a_statement_that_denies_is_turned_round() -> None:
    assert verdict("The Corn Mill was not built in 1874.") == "no"
    assert verdict("The Corn Mill was not built in 1847.") == "yes"
    assert verdict("The Corn Mill was not built in 1874 by Bo Day.") == "hardly no"


def test_a_name_between_may_change_who_did_it() -> None:
    text = "Ann Lee met Bo Day in Leeds and was married in 1874."
    assert verdict("Was Ann Lee married in 1874?", text, "Ann Lee") == ""


@pytest.mark.parametrize(
    "text",
    [
        "The Corn Mill was not built in 1874.",
        "The Corn Mill wasn't built in 1874.",
        "The Corn Mill failed to be built in 1874.",
        "The Corn Mill was allegedly built in 1874.",
        "The Corn Mill might have been built in 1874.",
        "It is a legend that the Corn Mill was built in 1874.",
    ],
)
def test_what_denies_or_doubts_decides_nothing(text: str) -> None:
    assert verdict("Was the Corn Mill built in 1874?", text) == ""


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Is the Orr longer than 50 km?", "The Orr is longer than 80 km."),
        (
            "Did more than 100 people come to the mill?",
            "More than 200 people came to the mill.",
        ),
        ("Was Ann Lee born before 1900?", "Ann Lee was born before 1950."),
        ("Was Ann Lee born before 1900?", "Ann Lee was born in 1850."),
    ],
)
def test_another_figure_behind_a_bound_denies_nothing(question: str, text: str) -> None:
    assert verdict(question, text, "") == ""


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Was the mill built by Ann Lee?", "The mill was built by Ann Lee Cole."),
        ("Is the mill in New York?", "The mill is in New York Mills."),
        ("Was the mill built in 1874?", "The mill was built in 1874 BC."),
        ("Was Ann Lee a doctor?", "Ann Lee was a doctor's daughter."),
    ],
)
def test_what_goes_on_behind_the_question_may_be_something_else(
    question: str, text: str
) -> None:
    assert verdict(question, text, "") == ""


def test_a_word_that_begins_as_a_denial_is_none() -> None:
    text = "The Corn Mill, noted for its wheel, was built in 1874."
    assert verdict("Was the Corn Mill built in 1874?", text) == "yes"


def test_a_question_that_denies_asks_whether_it_is_so() -> None:
    assert verdict("Wasn't the Corn Mill built in 1874?") == "yes"


def test_when_it_was_may_come_first() -> None:
    assert (
        verdict(
            "Was the Corn Mill sold to Bo Day?",
            "In 1901, the Corn Mill was sold to Bo Day.",
        )
        == "yes"
    )


def test_a_short_name_stands_for_what_the_passage_is_about() -> None:
    assert (
        verdict("Was Ann Lee born in Kent?", "Lee was born in Kent.", "Ann Lee")
        == "yes"
    )


def test_what_the_question_lacks_in_a_sentence_decides_nothing() -> None:
    assert verdict("Was the Corn Mill built in 1874 of brick?") == ""
    assert verdict("Who built the Corn Mill?") == ""
    assert verdict("?") == ""


def test_of_several_sentences_the_one_that_affirms_is_told() -> None:
    passages = read(
        [
            Passage(
                "1",
                "The Corn Mill was built in 1847. The Corn Mill was built in 1874.",
                "Corn Mill",
            )
        ]
    )
    found = wording("Was the Corn Mill built in 1874?", passages)
    assert found is not None
    assert (found[0], found[1].text) == ("yes", "The Corn Mill was built in 1874.")
