"""Questions of yes or no, made of questions and of sentences."""

import random

import pytest

from lab.weights.reader.examples import ReaderExample
from lab.weights.reader.statements import (
    other_value,
    polar,
    sentence_verdicts,
    verdicts,
)


@pytest.mark.parametrize(
    ("question", "answer", "asked"),
    [
        (
            "When was Rice University founded?",
            "1912",
            "Was Rice University founded in 1912?",
        ),
        (
            "When did the war end?",
            "11 November 1918",
            "Did the war end on 11 November 1918?",
        ),
        ("Where was Bell born?", "Edinburgh", "Was Bell born in Edinburgh?"),
        ("Where was Bell born?", "in Edinburgh", "Was Bell born in Edinburgh?"),
        ("In what year was it built?", "1890", "Was it built in 1890?"),
        ("Who was the first king?", "Edgar", "Was Edgar the first king?"),
        (
            "Who invented the telephone?",
            "Bell",
            "Is it true that Bell invented the telephone?",
        ),
        ("How many doors are there?", "three", ""),
        ("Why did it rain?", "clouds", ""),
    ],
)
def test_a_question_and_an_answer_become_a_question_of_yes_or_no(
    question: str, answer: str, asked: str
) -> None:
    assert polar(question, answer) == asked


FOUNDED = ReaderExample(
    "When was the club founded?",
    "The club was founded in 1912. It moved to Ulm in 1961.",
    ((24, 28),),
    "squad",
)
OTHER = "The town has a market. Nothing is told of a club."


def test_a_made_question_is_true_of_the_answer_false_of_another_value_and_not_told_elsewhere() -> (
    None
):
    rng = random.Random(1)
    made = {
        one.verdict: one
        for _ in range(40)
        for one in verdicts([FOUNDED], [FOUNDED.text, OTHER], rng)
    }
    assert made["true"].question == "Was the club founded in 1912?"
    assert made["false"].question == "Was the club founded in 1961?"
    assert made["not said"].text in OTHER


def test_another_value_is_of_the_same_sort_and_shares_no_word() -> None:
    text = "Ann Lee met Bo Berg in 1912, then 1961; Ann Bell had 3 cats."
    values = {
        other_value("1912", text, [text], random.Random(seed)) for seed in range(30)
    }
    assert values - {""} == {"1961"}
    names = {
        other_value("Ann Lee", text, [text], random.Random(seed)) for seed in range(30)
    }
    assert names - {""} == {"Bo Berg"}


def test_a_sentence_is_turned_round_or_stated_and_is_false_with_a_value_changed() -> (
    None
):
    text = "Marie Curie was born in Warsaw in 1867. She moved to Paris in 1891."
    made = [
        one
        for seed in range(60)
        for one in sentence_verdicts([text], random.Random(seed))
    ]
    assert (
        ReaderExample(
            "Was Marie Curie born in Warsaw in 1867?", text, (), "sentence", "true"
        )
        in made
    )
    assert {one.question for one in made if one.verdict == "false"} >= {
        "Was Marie Curie born in Warsaw in 1891?"
    }
    denied = {
        one.verdict
        for one in made
        if one.question == "Marie Curie was not born in Warsaw in 1867."
    }
    assert denied <= {"false"}
