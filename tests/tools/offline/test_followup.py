"""The rule that completes follow-up questions, over labelled conversations."""

import pytest

from ras_agent.contracts.records import Exchange
from ras_agent.tools.offline.followup import OfflineRewriter
from tests.tools.offline.followups import HELD_BACK, LABELLED


def rewritten(turns, question):
    return OfflineRewriter().rewrite(
        question, [Exchange(asked, answer) for asked, answer in turns]
    )


@pytest.mark.parametrize(
    ("turns", "question", "wanted"), LABELLED, ids=[f"{q[:30]}" for _, q, _ in LABELLED]
)
def test_a_follow_up_is_completed_or_left(turns, question, wanted):
    assert rewritten(turns, question) == wanted


def test_of_the_follow_ups_that_were_only_counted_none_becomes_another_question():
    got = [
        (rewritten(turns, question), question, wanted)
        for turns, question, wanted in HELD_BACK
    ]
    assert sum(text == wanted for text, _, wanted in got) >= 29
    assert [
        text for text, question, wanted in got if text not in (question, wanted)
    ] == []


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        (
            "What is the name of the city that he left?",
            "What is the name of the city that Alexander Graham Bell left?",
        ),
        ("Who married him?", "Who married Alexander Graham Bell?"),
        ("Tell me more about him.", "Tell me more about Alexander Graham Bell."),
        ("Was his wife deaf?", "Was Alexander Graham Bell's wife deaf?"),
        ("And who is Emile Berliner?", "Who is Emile Berliner?"),
        ("Wo kommt er her?", "Wo kommt er her?"),
        ("What about him?", "What about him?"),
        ("And him?", "And him?"),
        ("Why did it?", "Why did it?"),
        ("Why did he leave?", "Why did Alexander Graham Bell leave?"),
        ("it", "it"),
        ("?", "?"),
        ("", ""),
    ],
)
def test_after_a_question_about_a_person(question, wanted):
    assert (
        rewritten([("Who patented the telephone?", "Alexander Graham Bell")], question)
        == wanted
    )


def test_a_place_is_nobody():
    turns = [
        ("Who patented the telephone?", "Alexander Graham Bell"),
        ("Which river flows through Edinburgh?", ""),
    ]
    assert (
        rewritten(turns, "Where was he born?")
        == "Where was Alexander Graham Bell born?"
    )
    assert rewritten(turns[1:], "Where was he born?") == "Where was he born?"


def test_that_country_is_no_mountain():
    turns = [("What is the highest mountain in Tanzania?", "Mount Kilimanjaro")]
    assert (
        rewritten(turns, "What borders that country?") == "What borders that country?"
    )
    assert (
        rewritten(turns, "Who climbed that mountain?")
        == "Who climbed Mount Kilimanjaro?"
    )


def test_two_persons_are_not_one():
    turns = [
        (
            "Who are the parents of Mary Shelley?",
            "Mary Wollstonecraft and William Godwin",
        )
    ]
    assert (
        rewritten(turns, "When did they marry?")
        == "When did Mary Wollstonecraft and William Godwin marry?"
    )
    assert rewritten(turns, "When did he die?") == "When did he die?"


def test_a_question_without_earlier_turns_stays_as_it_is():
    assert rewritten([], "How long is it?") == "How long is it?"


@pytest.mark.parametrize(
    ("turn", "question", "wanted"),
    [
        (
            ("Who designed the Forth Bridge?", ""),
            "And how long?",
            "How long is the Forth Bridge?",
        ),
        (
            ("Who designed the Forth Bridge?", "John Fowler"),
            "And how long?",
            "How long is the Forth Bridge?",
        ),
        (
            ("When did Ann Lee work in Paris?", ""),
            "And in London?",
            "When did Ann Lee work in London?",
        ),
        (
            ("How many people does Siemens employ in Munich?", ""),
            "And in Berlin?",
            "How many people does Siemens employ in Berlin?",
        ),
        (
            ("Did Ann Lee travel to Paris?", ""),
            "What about to London?",
            "Did Ann Lee travel to London?",
        ),
        (
            ("What is the capital of Austria?", ""),
            "What about the river Danube?",
            "What about the river Danube?",
        ),
    ],
)
def test_what_a_question_leaves_out_is_taken_from_its_like_in_the_one_before(
    turn, question, wanted
):
    assert rewritten([turn], question) == wanted


@pytest.mark.parametrize(
    ("turn", "question", "wanted"),
    [
        (
            ("When is the Bell Museum closed?", "Monday"),
            "Where is it?",
            "Where is the Bell Museum?",
        ),
        (
            (
                "How many employees does Nokia have?",
                "Some 90,000 (Nokia Annual Report)",
            ),
            "Where is it?",
            "Where is Nokia?",
        ),
        (
            ("When did the Forth Bridge open?", "In May."),
            "How long is it?",
            "How long is the Forth Bridge?",
        ),
    ],
)
def test_it_is_no_date_and_no_number(turn, question, wanted):
    assert rewritten([turn], question) == wanted
