"""Questions as rows: a row of a trainer's data set is the input of `reset`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ras_agent import Passage
from ras_agent.eval.question import Question
from ras_agent.gym import GraphSearch, row_of, rows

BY_TITLE = Question(
    "q1", "Where?", ("Leith",), ("Bell", "Edinburgh"), by_title=True, type="bridge"
)
BY_ID = Question("q2", "When?", ("1876",), ("p1",), metadata={"hops": 3})


def test_a_row_resets_an_environment_to_its_question() -> None:
    environment = GraphSearch(index=[Passage("p", "A text.")])
    for question in (BY_TITLE, BY_ID):
        environment.reset(**json.loads(json.dumps(row_of(question))))
        assert environment.question.supporting == question.supporting
        assert environment.question.by_title == question.by_title
        assert (environment.question.id, environment.question.answers) == (
            question.id,
            question.answers,
        )
        assert environment.question.hops == question.hops


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"answer": "Leith"}, ("Leith",)),
        ({"answers": None, "answer": "Leith"}, ("Leith",)),
        ({"answers": float("nan")}, ()),
        ({}, ()),
    ],
)
def test_what_a_row_says_of_its_answer_is_read(
    row: dict[str, Any], answers: tuple[str, ...]
) -> None:
    environment = GraphSearch(index=[Passage("p", "A text.")])
    environment.reset(question="Where?", **row)
    assert environment.question.answers == answers


def test_all_rows_have_the_same_columns() -> None:
    one, other = rows([BY_TITLE, BY_ID])
    assert list(one) == list(other)


def test_the_prompt_is_that_of_a_planner_with_tools_and_an_empty_turn() -> None:
    system, user = row_of(BY_TITLE)["prompt"]
    assert system["content"].startswith(
        "You research one question with tools, one call at a time."
    )
    assert user == {"role": "user", "content": ""}
