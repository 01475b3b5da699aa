"""The reading of a chat model's replies when it picks documents and writes searches."""

import pytest

from ras_agent.contracts.errors import ParseError
from ras_agent.eval.question import Question
from ras_agent.train.subq.decompose import (
    problem_of,
    read_numbers,
    read_search,
    unknown_names,
)

QUESTION = Question(
    "a",
    "Which university did the author of Ivanhoe attend?",
    ("University of Edinburgh", "Edinburgh"),
)
SCOTT = "Walter Scott wrote Ivanhoe."


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("1,3", (1, 3)),
        ("3, 1", (3, 1)),
        ("**Output: 2**", (2,)),
        ("[1], [2] and [3].", (1, 2, 3)),
        ("1, 1, 2", (1, 2)),
        ("Document 2 is about 1998 and does not help.\n1, 3", (1, 3)),
        ("[NONE]", ()),
        ("[NONE]: neither helps.", ()),
    ],
)
def test_numbers_of_documents_are_read_in_their_order(
    reply: str, numbers: tuple[int, ...]
) -> None:
    assert read_numbers(reply, 3) == numbers


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "all",
        "0",
        "4",
        "1, 4",
        "1-3",
        "1" * 5000,
        "Document 2 is about 1998.",
        "None of them",
    ],
)
def test_a_reply_that_names_no_documents_is_refused(reply: str) -> None:
    with pytest.raises(ParseError, match="it lists no numbers from 1 to 3"):
        read_numbers(reply, 3)


@pytest.mark.parametrize(
    "reply",
    [
        "Who wrote Ivanhoe?",
        "who wrote Ivanhoe",
        '"Who wrote Ivanhoe?"',
        "[SUBQ] Who wrote Ivanhoe?",
        "**Sub-query:** Who wrote Ivanhoe?",
        "Search question: Who wrote Ivanhoe?",
        "Here is the next search:\n\nWho wrote Ivanhoe?",
        "<think>Who was it?</think>\nWho wrote Ivanhoe?",
    ],
)
def test_one_search_is_read_out_of_a_reply(reply: str) -> None:
    assert read_search(reply) == "Who wrote Ivanhoe?"


@pytest.mark.parametrize(
    "reply", ["", "...", "Who?\nWhen?", "First this.\nThen that.", "[SUFFICIENT]"]
)
def test_a_reply_without_one_search_is_refused(reply: str) -> None:
    with pytest.raises(ParseError):
        read_search(reply)


@pytest.mark.parametrize(
    ("search", "earlier", "known", "problem"),
    [
        ("Who wrote Ivanhoe?", (), (), ""),
        (
            "Who wrote Ivanhoe?",
            ("who wrote ivanhoe",),
            (),
            "it repeats an earlier search",
        ),
        (
            "Where did Walter Scott study?",
            (),
            (),
            "nothing that is known by then names Walter Scott",
        ),
        ("Where did Walter Scott study?", ("Who wrote Ivanhoe?",), (SCOTT,), ""),
        (
            "Did Walter Scott study in Edinburgh?",
            (),
            (SCOTT,),
            "it states what is to be found",
        ),
        (
            "Did Walter Scott study in Edinburgh?",
            (),
            (SCOTT, "He was born in Edinburgh."),
            "",
        ),
    ],
)
def test_a_search_asks_for_what_is_not_known_with_what_is(
    search: str, earlier: tuple[str, ...], known: tuple[str, ...], problem: str
) -> None:
    assert problem_of(search, QUESTION, earlier, (QUESTION.question, *known)) == problem


def test_an_answer_that_the_question_names_may_be_searched_for() -> None:
    question = Question("b", "Who is older, Ann Ulm or Bo Bath?", ("Bo Bath",))
    assert (
        problem_of("When was Bo Bath born?", question, (), (question.question,)) == ""
    )


def test_yes_and_no_are_no_answers_that_a_search_could_state() -> None:
    question = Question("c", "Is no man an island?", ("no",))
    assert (
        problem_of(
            "Who wrote that no man is an island?", question, (), (question.question,)
        )
        == ""
    )


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("When was Crux launched?", ()),
        (
            "When was CRUX's publisher, CrossGen, launched in Tampa?",
            ("CrossGen", "Tampa"),
        ),
        ("In which year was it launched?", ()),
    ],
)
def test_names_that_nothing_known_holds_are_listed(
    search: str, names: tuple[str, ...]
) -> None:
    assert unknown_names(search, ["Crux, a comic, and its publisher"]) == names
