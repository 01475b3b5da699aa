"""Rows as tables, data frames and other programs have them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.formats import load_questions, read_question
from ras_agent.eval.formats.plain import plain_question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.run.task import rows_of
from tests.messages import says

NAN = float("nan")


def _plain(**row: Any) -> Any:
    return plain_question(
        QuestionRecord({"id": "1", "question": "Where?", **row}, "here")
    )


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        (np.array(["Edinburgh", "Leith"], dtype=object), ("Edinburgh", "Leith")),
        ('["Water of Leith", "Leith"]', ("Water of Leith", "Leith")),
        ("[1847, true]", ("1847", "yes")),
        ("[citation needed]", ("[citation needed]",)),
        ("('Til Tuesday)", ("('Til Tuesday)",)),
        ('("Heroes")', ('("Heroes")',)),
        ('["Heroes"] by Bowie', ('["Heroes"] by Bowie',)),
        ("(3, 4)", ("(3, 4)",)),
        ("{'a': 1}", ("{'a': 1}",)),
        (35.0, ("35",)),
        (np.float64(3.5), ("3.5",)),
        (True, ("yes",)),
        ([np.int64(1847), False], ("1847", "no")),
        (["Leith", " "], ("Leith",)),
        ({"Leith", "Hull"}, ("Hull", "Leith")),
        (date(1847, 3, 3), ("1847-03-03",)),
        (datetime(1847, 3, 3), ("1847-03-03",)),
        (Decimal("3.50"), ("3.50",)),
    ],
)
def test_answers_are_read_as_people_have_them(
    given: Any, answers: tuple[str, ...]
) -> None:
    assert _plain(answers=given).answers == answers


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (NAN, "no key 'answers'"),
        (None, "no key 'answers'"),
        ([NAN], "should be a list of texts"),
        ("['Edinburgh', 'Scotland']", "a list in Python's notation"),
        ("['Edinburgh' 'Scotland']", "a list in Python's notation"),
        ("[\"O'Hara\", 'Leith']", "a list in Python's notation"),
        ("('Edinburgh', 'Scotland')", "a list in Python's notation"),
        ("('Edinburgh',)", "a list in Python's notation"),
        ("{'Edinburgh'}", "a list in Python's notation"),
        ("array(['Edinburgh'], dtype=object)", "a list in Python's notation"),
        ('["Leith", null]', "should be a list of texts"),
        ("[1847 1848]", "a list in Python's notation"),
        ("[None]", "a list in Python's notation"),
        ("[['Leith', 0]]", "a list in Python's notation"),
        ("", "no key 'answers'"),
        ([" "], "no key 'answers'"),
        (Decimal("NaN"), "no key 'answers'"),
    ],
)
def test_answers_that_are_none_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(
        IngestError,
        match=says("here", problem) if problem.startswith("no key") else problem,
    ):
        _plain(answers=given)


def test_gaps_of_a_data_frame_are_no_values() -> None:
    question = _plain(
        answers=["x"],
        hops=2.0,
        type=NAN,
        supporting_titles=NAN,
        supporting_ids=np.array(["a"]),
    )
    assert (question.hops, question.type, question.supporting, question.by_title) == (
        2,
        "",
        ("a",),
        False,
    )
    assert _plain(answers=["x"], hops=NAN).hops is None


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "<NA>"])
def test_gaps_of_a_table_are_no_answers(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id,question,answers\n1,Where?,{cell}\n", "utf-8")
    with pytest.raises(IngestError, match=r"line 2: no key 'answers'"):
        load_questions(path)


def test_one_answer_may_stand_under_its_own_name() -> None:
    assert _plain(answer="Edinburgh").answers == ("Edinburgh",)
    # where there is a ground truth, the answer is a system's
    assert _plain(answer="Leith", ground_truth="Edinburgh").answers == ("Edinburgh",)


def test_facts_and_contexts_of_other_rows_are_gold_titles_and_passages() -> None:
    question = _plain(
        answer="x",
        supporting_facts=[["Leith", 0], ["Bell", 2]],
        contexts=["A port.", ["Bell", ["He was born. ", "In 1847."]]],
    )
    assert question.supporting == ("Leith", "Bell")
    assert [(one.title, one.text) for one in question.contexts] == [
        ("", "A port."),
        ("Bell", "He was born. In 1847."),
    ]


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Where?"}, "outputs": {"answer": "Leith"}},
        {"input": "Where?", "target": ["Leith"]},
        {"inputs": '{"question": "Where?"}', "outputs": '{"answer": "Leith"}'},
        {"inputs": {"text": "Where?"}, "outputs": {"expected": "Leith"}},
        {
            "input": [
                {"role": "user", "content": [{"type": "text", "text": "Where?"}]}
            ],
            "target": "Leith",
        },
        {
            "input": "Where?",
            "expected_output": "Leith",
            "context": ["Leith is a port."],
        },
        {
            "inputs": {
                "messages": [
                    {"role": "user", "content": "Where?"},
                    {"role": "assistant", "content": "Hm."},
                ]
            },
            "outputs": {
                "messages": [
                    {"type": "human", "content": "Where?"},
                    {"type": "ai", "content": "Leith"},
                ]
            },
        },
        {
            "input": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Where?"},
            ],
            "target": "Leith",
        },
    ],
)
def test_rows_of_other_programs_are_known_by_their_look(row: dict[str, Any]) -> None:
    question = read_question(QuestionRecord(row, "here", 7))
    assert question is not None
    assert (question.id, question.question, question.answers) == (
        "7",
        "Where?",
        ("Leith",),
    )
    assert (
        len(question.supporting)
        == len(question.contexts)
        == len(row.get("context", ()))
    )


GOLD = {"supporting_titles": ["Leith", "Bell"], "type": "bridge", "hops": 2.0}


@pytest.mark.parametrize(
    "row",
    [
        {
            "inputs": {"question": "Where?"},
            "outputs": {"answer": "x"},
            "metadata": GOLD,
        },
        {"input": "Where?", "target": "x", "metadata": json.dumps(GOLD)},
        {"input": "Where?", "expected_output": "x", "additional_metadata": GOLD},
        {"input": "Where?", "expectedOutput": "x", "additionalMetadata": GOLD},
        {
            "input": "Where?",
            "target": "x",
            "metadata": {**GOLD, "context": "a text of the user's own"},
        },
    ],
)
def test_metadata_of_other_programs_tell_gold_passages_type_and_hops(
    row: dict[str, Any],
) -> None:
    question = read_question(QuestionRecord(row, "here"))
    assert question is not None
    assert (question.answers, question.contexts) == (("x",), ())
    assert (question.supporting, question.by_title) == (("Leith", "Bell"), True)
    assert (question.type, question.hops) == ("bridge", 2)


@pytest.mark.parametrize("facts", [["Leith", 0], '["Leith", 0]', {"title": "Leith"}])
def test_one_supporting_fact_may_stand_by_itself(facts: Any) -> None:
    assert _plain(answer="x", supporting_facts=facts).supporting == ("Leith",)


@pytest.mark.parametrize(
    "cell", ["{'title': ['A'], 'sent_id': [0]}", "{'title': array(['A'])}"]
)
def test_supporting_facts_as_python_prints_them_are_refused(cell: str) -> None:
    with pytest.raises(IngestError, match="an object in Python's notation"):
        _plain(answer="x", supporting_facts=cell)


def test_an_id_may_be_a_uuid_and_stand_under_the_name_of_a_database() -> None:
    name = UUID(int=7)
    for key in ("id", "_id"):
        row = {key: name, "question": "Where?", "answer": "x"}
        question = plain_question(QuestionRecord(row, "here", 3))
        assert (question.id, dict(question.metadata)) == (str(name), {})


class Kind(Enum):
    BRIDGE = "bridge"


@dataclass
class Golden:
    input: str
    expected_output: str


class Example:
    """As a model of pydantic, which LangSmith's examples are."""

    def model_dump(self) -> dict[str, Any]:
        return {"id": UUID(int=7), "inputs": {"question": "Where?"}, "outputs": None}


def test_objects_of_other_programs_are_rows() -> None:
    golden, example = rows_of([Golden("Where?", "x"), Example()])
    assert golden == {"input": "Where?", "expected_output": "x"}
    assert set(example) == {"id", "inputs", "outputs"}
    assert _plain(answer="x", type=Kind.BRIDGE).type == "bridge"
    for row in ("Where?", None, 3):
        with pytest.raises(SettingsError, match="row 2 should be a mapping"):
            rows_of([{}, row])


def test_a_sample_of_inspect_with_choices_names_the_right_ones_letter() -> None:
    row = {"input": "Which is a river?", "choices": ["Paris", "Leith"], "target": "B"}
    question = read_question(QuestionRecord(row, "here"))
    assert question is not None
    assert (question.question, question.answers, question.label) == (
        "Which is a river?\nA. Paris\nB. Leith",
        ("Leith",),
        "B",
    )
    with pytest.raises(
        IngestError,
        match="the target 'Leith' should be the letter of one of the 2 choices",
    ):
        read_question(QuestionRecord({**row, "target": "Leith"}, "here"))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"input": [{"role": "system", "content": "Be brief."}], "target": "x"},
            "'input' has no message of the user",
        ),
        (
            {"inputs": {"text": "Where?", "by": "Ann"}, "outputs": {}},
            "no key 'question' or 'input'",
        ),
        (
            {"inputs": {"question": "Where?"}, "outputs": {"a": "x", "b": "y"}},
            "no key 'answers' or 'answer'",
        ),
    ],
)
def test_a_row_without_a_question_says_where_it_is_missing(
    row: dict[str, Any], problem: str
) -> None:
    with pytest.raises(IngestError, match=problem):
        read_question(QuestionRecord(row, "here"))


def test_what_was_not_expected_is_no_answer() -> None:
    for row in (
        {"input": "Where?", "expected_output": None},
        {"inputs": {"question": "Where?"}, "outputs": None},
        {"input": "Where?", "target": ""},
        {"user_input": "Where?", "reference": None},
    ):
        question = read_question(QuestionRecord(row, "here"))
        assert question is not None
        assert question.answers == ()


@pytest.mark.parametrize(
    "facts",
    [
        [["A", 0], ["B", 1], ["A", 2]],
        {"title": ["A", "B"], "sent_id": [0, 1]},
        [{"title": "A", "sent_id": 0}, {"title": "B", "sent_id": 1}],
        {"A": [0], "B": [1]},
        ["A", "B"],
        '[["A", 0], ["B", 1]]',
        {"titles": ["A", "B"], "sent_ids": [0, 1]},
        [{"A": [0]}, {"B": [1]}],
        [{"wikipage": "A", "sentence": 0}, {"wikipage": "B", "sentence": 1}],
    ],
)
def test_flashrags_supporting_facts_are_read_in_every_form(facts: Any) -> None:
    row = {
        "question": "?",
        "golden_answers": ["x"],
        "metadata": {"supporting_facts": facts},
    }
    question = read_question(QuestionRecord(row, "here"))
    assert question is not None
    assert (question.supporting, question.by_title) == (("A", "B"), True)
    # a row of Search-R1 keeps these metadata
    searched = {
        "data_source": "s",
        "prompt": "?",
        "reward_model": {"ground_truth": "x"},
    }
    question = read_question(
        QuestionRecord({**searched, "metadata": row["metadata"]}, "here")
    )
    assert question is not None
    assert question.supporting == ("A", "B")


@pytest.mark.parametrize("fact", [3, {"page": "A"}])
def test_supporting_facts_without_titles_are_refused(fact: Any) -> None:
    row: dict[str, Any] = {"question": "?", "golden_answers": ["x"]}
    row["metadata"] = {"supporting_facts": [fact]}
    with pytest.raises(IngestError, match="should be a title"):
        read_question(QuestionRecord(row, "here"))


@pytest.mark.parametrize(
    ("content", "question"),
    [
        (
            "Answer it. Question: What is 'Question: 7 Across'?",
            "What is 'Question: 7 Across'?",
        ),
        ("Question: Who?\nAnswer: Bell\nQuestion: Where?", "Where?"),
        ("Where?", "Where?"),
        ("Answer it. Question: Where?\nAnswer:", "Where?"),
        ("Question: Who? Answer: Bell\nQuestion: Where?\nAnswer:", "Where?"),
        (
            "Which film is called Question: Mark?",
            "Which film is called Question: Mark?",
        ),
    ],
)
def test_a_question_of_verl_may_hold_the_mark(content: str, question: str) -> None:
    row = {
        "data_source": "s",
        "prompt": [
            {"role": "user", "content": content},
            {"role": "assistant", "content": "<think>"},
        ],
        "reward_model": {"ground_truth": "x"},
    }
    found = read_question(QuestionRecord(row, "here"))
    assert found is not None
    assert found.question == question


def test_a_blank_question_is_an_error_of_its_line(tmp_path: Path) -> None:
    table = tmp_path / "q.jsonl"
    table.write_text('{"question": " ", "answer": "Leith"}\n')
    with pytest.raises(IngestError, match="line 1: the question is blank"):
        benchmark("jsonl").load(table)


def test_a_cell_of_a_table_may_hold_a_list(tmp_path: Path) -> None:
    table = tmp_path / "q.csv"
    table.write_text('id,question,answers\n1,Where?,"[""Leith"", ""Edinburgh""]"\n')
    assert load_questions(table)[0].answers == ("Leith", "Edinburgh")


def test_a_table_as_pandas_writes_it_has_gaps_and_floats(tmp_path: Path) -> None:
    lines = [
        "question,answers,hops,type,decomposition",
        'Where?,Leith,2.0,,"[{""question"": ""Who?"", ""answer"": ""Bell""}]"',
        '"Where, and\nwhen?",Hull,,bridge,',
    ]
    tables = []
    for number, end in enumerate(("\n", "\r\n")):
        table = tmp_path / f"{number}.csv"
        table.write_bytes("\n".join(lines).replace("\n", end).encode())
        tables.append(load_questions(table))
    first, second = tables[0]
    assert tables[0] == tables[1]  # the same data with other line ends
    assert (first.id, first.hops, first.type, len(first.decomposition)) == (
        "2",
        2,
        "",
        1,
    )
    assert (second.question, second.hops, second.type) == (
        "Where, and\nwhen?",
        None,
        "bridge",
    )


def test_columns_by_name_are_rows_too(tmp_path: Path) -> None:
    columns = {
        "id": {"0": 1, "1": 2},
        "question": {"0": "Where?", "1": "Who?"},
        "answer": {"0": "Leith", "1": "Bell"},
    }
    (tmp_path / "frame.json").write_text(json.dumps(columns))
    assert [
        (one.id, one.answers) for one in load_questions(tmp_path / "frame.json")
    ] == [
        ("1", ("Leith",)),
        ("2", ("Bell",)),
    ]
