"""Rows as tables, data frames and other programs have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.errors import IngestError
from ras_agent.eval.formats import load_questions, read_question
from ras_agent.eval.formats.plain import plain_question
from ras_agent.eval.question_file import QuestionRecord
from tests.messages import says

NAN = float("nan")


def _plain(**row: Any) -> Any:
    return plain_question(QuestionRecord({"id": "1", "question": "Where?", **row}, "here"))


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (np.array(["Edinburgh", "Leith"], dtype=object), ("Edinburgh", "Leith")),
        ('["Water of Leith", "Leith"]', ("Water of Leith", "Leith")),
        ("[citation needed]", ("[citation needed]",)),
        (35.0, ("35",)),
        (np.float64(3.5), ("3.5",)),
        (True, ("yes",)),
        ([np.int64(1847), False], ("1847", "no")),
    ],
)
def test_answers_are_read_as_people_have_them(given: Any, answers: tuple[str, ...]) -> None:
    assert _plain(answers=given).answers == answers


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (NAN, "no key 'answers'"),
        (None, "no key 'answers'"),
        ([NAN], "should be a list of texts"),
        ("['Edinburgh', 'Scotland']", "a list as Python prints it"),
        ("['Edinburgh' 'Scotland']", "a list as Python prints it"),
    ],
)
def test_answers_that_are_none_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(IngestError, match=says("here", problem) if problem.startswith("no key") else problem):
        _plain(answers=given)


def test_gaps_of_a_data_frame_are_no_values() -> None:
    question = _plain(answers=["x"], hops=2.0, type=NAN, supporting_titles=NAN, supporting_ids=np.array(["a"]))
    assert (question.hops, question.type, question.supporting, question.by_title) == (2, "", ("a",), False)
    assert _plain(answers=["x"], hops=NAN).hops is None


def test_one_answer_may_stand_under_its_own_name() -> None:
    assert _plain(answer="Edinburgh").answers == ("Edinburgh",)


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Where?"}, "outputs": {"answer": "Leith"}},
        {"input": "Where?", "target": ["Leith"]},
        {"input": "Where?", "expected_output": "Leith", "context": ["Leith is a port."]},
    ],
)
def test_rows_of_other_programs_are_known_by_their_look(row: dict[str, Any]) -> None:
    question = read_question(QuestionRecord(row, "here", 7))
    assert question is not None
    assert (question.id, question.question, question.answers) == ("7", "Where?", ("Leith",))
    assert len(question.supporting) == len(question.contexts) == len(row.get("context", ()))


def test_flashrags_supporting_facts_may_be_pairs() -> None:
    row = {"question": "?", "golden_answers": ["x"], "metadata": {"supporting_facts": [["A", 0], ["B", 1], ["A", 2]]}}
    question = read_question(QuestionRecord(row, "here"))
    assert question is not None
    assert (question.supporting, question.by_title) == (("A", "B"), True)


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("Answer it. Question: What is 'Question: 7 Across'?", "What is 'Question: 7 Across'?"),
        ("Question: Who?\nAnswer: Bell\nQuestion: Where?", "Where?"),
        ("Where?", "Where?"),
    ],
)
def test_a_question_of_verl_may_hold_the_mark(content: str, question: str) -> None:
    row = {"data_source": "s", "prompt": [{"role": "user", "content": content}], "reward_model": {"ground_truth": "x"}}
    found = read_question(QuestionRecord(row, "here"))
    assert found is not None
    assert found.question == question


def test_a_cell_of_a_table_may_hold_a_list(tmp_path: Path) -> None:
    table = tmp_path / "q.csv"
    table.write_text('id,question,answers\n1,Where?,"[""Leith"", ""Edinburgh""]"\n')
    assert load_questions(table)[0].answers == ("Leith", "Edinburgh")
