"""Two-hop questions made of single ones, and their descriptions."""

import random

import pytest

from lab.weights.reader.compose import (
    composed_pairs,
    compositions,
    compositions_inside,
    described_span,
    description,
)
from lab.weights.reader.examples import ReaderExample


@pytest.mark.parametrize(
    ("question", "described"),
    [
        ("Who invented the telephone?", "the person who invented the telephone"),
        ("Who was the first president of Ghana?", "the first president of Ghana"),
        ("In which city was Bell born?", "the city in which Bell was born"),
        ("What company did Ray Kroc own?", "the company that Ray Kroc owned"),
        (
            "Which river borders the town of Ulm?",
            "the river that borders the town of Ulm",
        ),
        ("What is Steve Crowther chairman of?", "what Steve Crowther is chairman of"),
        ("Where was Bell born?", "the place where Bell was born"),
        ("How many people live in Ulm?", ""),
        ("Why did it rain?", ""),
    ],
)
def test_a_question_becomes_a_noun_phrase_where_a_rule_knows_its_form(
    question: str, described: str
) -> None:
    assert description(question) == described


BELL = ReaderExample(
    "In which city was Bell born?", "Bell was born in Edinburgh.", ((17, 26),), "squad"
)
RIVER = ReaderExample(
    "Which river flows through Edinburgh?",
    "The Leith is long. It crosses Edinburgh.",
    ((4, 9),),
    "squad",
)


def test_a_description_takes_the_place_of_the_name_that_it_describes() -> None:
    (made,) = compositions([BELL, RIVER], random.Random(0))
    assert made.question == "Which river flows through the city in which Bell was born?"
    assert made.question[slice(*made.span)] == "the city in which Bell was born"
    assert (made.first, made.second) == (BELL, RIVER)


def test_questions_of_one_text_are_not_joined() -> None:
    same = ReaderExample(RIVER.question, BELL.text, ((0, 4),), "squad")
    assert list(compositions([BELL, same], random.Random(0))) == []


def test_a_composed_pair_has_its_answer_behind_what_names_the_bridge() -> None:
    (pair,) = composed_pairs([BELL, RIVER], random.Random(0))
    assert (
        pair.text
        == "Bell was born in Edinburgh. The Leith is long. It crosses Edinburgh."
    )
    assert pair.answer == "Leith"


def test_a_description_may_hold_another_one() -> None:
    painter = ReaderExample(
        "Who first painted Leith?", "Leith was painted by Ann.", ((21, 24),), "squad"
    )
    found = list(compositions_inside([BELL, RIVER, painter], random.Random(0)))
    outer, inner = (one.question[slice(*one.spans[0])] for one in found[:2])
    assert outer == "the river that flows through the city in which Bell was born"
    assert inner == "the city in which Bell was born"


@pytest.mark.parametrize(
    ("question", "step", "name", "described"),
    [
        (
            "When was the club that Ann led founded?",
            "When was Ulm FC founded?",
            "Ulm FC",
            "the club that Ann led",
        ),
        ("Where was Ann's father born?", "Where was Bo born?", "Bo", "Ann's father"),
        ("When did it begin?", "When was Ulm FC founded?", "Ulm FC", ""),
    ],
)
def test_a_description_stands_where_the_last_step_has_its_name(
    question: str, step: str, name: str, described: str
) -> None:
    span = described_span(question, step, name)
    assert (question[slice(*span)] if span else "") == described
