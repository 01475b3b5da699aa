"""Questions that are made from facts of a collection."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Passage, Triple
from ras_agent.page.examples import example_questions, is_answered, questions_about


def facts(*lines: str) -> list[Triple]:
    return [Triple(*line.split(" | ")) for line in lines]


@pytest.mark.parametrize(
    ("said", "question"),
    [
        (["Korvane | was founded by | Ingrid Solheim"], "Who founded Korvane?"),
        (["Emma | was written by | Jane Austen"], "Who wrote Emma?"),
        (["Tomas Ruel | was born in | Dunmarrow"], "Where was Tomas Ruel born?"),
        (
            ["Ada | was born in | London", "London | is capital city of | England"],
            "In which city was Ada born?",
        ),
        (["Nimbus 1 | was launched in | 1996"], "When was Nimbus 1 launched?"),
        (["Ashcombe | mayor is | Helen Varga"], "Who is the mayor of Ashcombe?"),
    ],
)
def test_a_fact_makes_a_question_that_it_answers(
    said: list[str], question: str
) -> None:
    assert example_questions(facts(*said)) == [question]


def test_two_facts_make_a_question_of_two_searches_which_comes_first() -> None:
    said = facts(
        "Nimbus 1 | was launched in | 1996",
        "Korvane | was founded by | Ingrid Solheim",
        "Ingrid Solheim | was born in | Trondmark",
    )
    assert example_questions(said) == [
        "Where was the founder of Korvane born?",
        "When was Nimbus 1 launched?",
        "Where was Ingrid Solheim born?",
    ]


def test_a_river_is_asked_for_by_who_was_born_where_it_flows() -> None:
    said = facts(
        "Leith | is river in | Scotland",
        "Leith | flows through | Edinburgh",
        "Edinburgh | is | city",
    )
    said += facts("Bell | was born in | Edinburgh")
    assert (
        example_questions(said, 2)[0]
        == "Which river flows through the city where Bell was born?"
    )


def test_what_has_two_answers_is_not_asked() -> None:
    said = facts(
        "Polonium | was discovered by | Marie Curie",
        "Polonium | was discovered by | Pierre Curie",
    )
    assert example_questions(said) == []


def test_class_words_and_other_predicates_make_no_question() -> None:
    assert (
        example_questions(
            facts(
                "river | is in | Scotland",
                "town | was founded by | Bell",
                "Bell | met | Gray",
            )
        )
        == []
    )


def test_only_what_the_collection_answers_is_asked() -> None:
    tower = Passage(
        "t",
        "Gannet Tower is a tower in Dunmere. Its chair is Ada Crane.",
        "Gannet Tower",
    )
    firm = Passage(
        "k", "Korvane is a firm. Korvane was founded by Ingrid Solheim.", "Korvane"
    )
    assert questions_about([tower, firm]) == ["Who founded Korvane?"]
    assert is_answered(
        "Who is the mayor of Ulm?",
        [Passage("u", "The mayor of Ulm is Helen Varga.", "Ulm")],
    )
    assert not is_answered("Who is the chair of Gannet Tower?", [tower, firm])
