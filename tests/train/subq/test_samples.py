"""The file of samples: a written sample is read, and a fault in it is located."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.prompts import history_block
from ras_agent.train.data import split_of
from ras_agent.train.subq import SubqSample, SubqStep, read_samples
from ras_agent.train.subq.samples import write_samples
from tests.messages import says

STEP = SubqStep(
    "Crux publisher",
    (Passage("Crux#1", "", "Crux"),),
    (("Crux", "was published by", "CrossGen"),),
)
SAMPLE = SubqSample(
    id="musique/a/plan-1",
    source="musique",
    question_id="a",
    hops=2,
    split="train",
    kind="plan",
    label="subq",
    question="When was the publisher of Crux launched?",
    steps=(STEP,),
    target="[SUBQ] When was CrossGen launched?",
    answers=("1998",),
)
RECORD = SAMPLE.to_dict()


def _file(folder: Path, *records: object) -> Path:
    path = folder / "samples.jsonl"
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_samples(tmp_path / "samples.jsonl", [SAMPLE])
    assert read_samples(tmp_path / "samples.jsonl") == [SAMPLE]


def test_a_sample_is_one_of_algorithm_1_unless_it_says_that_it_was_added(
    tmp_path: Path,
) -> None:
    assert RECORD["added"] is False
    silent = {name: value for name, value in RECORD.items() if name != "added"}
    path = _file(tmp_path, silent, {**RECORD, "id": "b", "added": True})
    assert [sample.added for sample in read_samples(path)] == [False, True]


def test_one_split_is_read_alone(tmp_path: Path) -> None:
    path = _file(tmp_path, RECORD, {**RECORD, "id": "b", "split": "validation"})
    assert [sample.id for sample in read_samples(path, "validation")] == ["b"]


def test_a_sample_is_shown_to_a_role_as_a_run_would_be() -> None:
    again = SubqStep(
        "When was CrossGen launched?",
        (),
        (*STEP.triples, ("CrossGen", "was launched in", "1998")),
    )
    graph, steps = SubqSample.as_run(_with(steps=(STEP, again)))
    assert len(graph) == 2
    assert [
        (step.hop, step.subquery, len(step.triple_ids), len(step.new_triple_ids))
        for step in steps
    ] == [
        (1, "Crux publisher", 1, 1),
        (2, "When was CrossGen launched?", 2, 1),
    ]
    assert [(hit.passage.id, hit.score) for hit in steps[0].hits] == [("Crux#1", 1.0)]
    assert [(one.passage_id, one.hop) for one in graph.facts[0].sources] == [
        ("", 2),
        ("Crux#1", 1),
    ]
    assert history_block(graph, steps, repeated=True).splitlines() == [
        "[SUBQ] Crux publisher",
        "Retrieved Graph Information:",
        "<facts>",
        "(S> Crux | P> was published by | O> CrossGen)",
        "</facts>",
        "[SUBQ] When was CrossGen launched?",
        "Retrieved Graph Information:",
        "<facts>",
        "(S> Crux | P> was published by | O> CrossGen)",
        "(S> CrossGen | P> was launched in | O> 1998)",
        "</facts>",
    ]


def _with(**changes: Any) -> SubqSample:
    from dataclasses import replace

    return replace(SAMPLE, **changes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "both"}, "'kind' should be plan or answer, found 'both'"),
        (
            {"label": "stop"},
            "'label' should be subq, sufficient or no_retrieval, found 'stop'",
        ),
        ({"split": "test"}, "'split' should be train or validation, found 'test'"),
        ({"hops": -1}, "'hops' should be a whole number, 0 or more, found '-1'"),
        ({"question": " "}, "'question' should not be blank"),
        ({"target": "When?"}, "'label' is 'subq', but 'target' states none: 'When?'"),
        (
            {"target": "[SUFFICIENT]"},
            "'label' is 'subq', but 'target' states sufficient: '[SUFFICIENT]'",
        ),
        ({"label": "no_retrieval"}, "'label' is no_retrieval, yet there are steps"),
        (
            {"kind": "answer"},
            "an answer follows the label sufficient or no_retrieval, found 'subq'",
        ),
        (
            {"kind": "answer", "label": "sufficient", "target": "1999"},
            "'target' is none of 'answers': '1999'",
        ),
        ({"steps": "none"}, "'steps' should be a list, found 'none'"),
    ],
)
def test_a_sample_that_cannot_be_is_located(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = _file(tmp_path, RECORD, {**RECORD, "id": "b", **changes})
    with pytest.raises(IngestError) as raised:
        read_samples(path)
    assert str(raised.value) == f"{path} line 2: {problem}"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"subquery": ""}, "'subquery' should not be blank"),
        ({"passages": [{"title": "Crux"}]}, "passages 1: no key 'id'; found title"),
        (
            {"triples": [["Crux", "is"]]},
            "'triples' should hold [subject, predicate, object], found ['Crux', 'is']",
        ),
        (
            {"triples": [["Crux", "", "x"]]},
            "'triples' should have words in each field, found ['Crux', '', 'x']",
        ),
    ],
)
def test_a_step_that_cannot_be_is_located(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    path = _file(tmp_path, {**RECORD, "steps": [{**STEP.to_dict(), **changes}]})
    with pytest.raises(IngestError) as raised:
        read_samples(path)
    assert str(raised.value) in (
        f"{path} line 1, steps 1: {problem}",
        f"{path} line 1, steps 1, {problem}",
    )


def test_a_missing_key_is_located(tmp_path: Path) -> None:
    path = _file(
        tmp_path, {name: value for name, value in RECORD.items() if name != "answers"}
    )
    with pytest.raises(IngestError, match="line 1: no key 'answers'; found id, source"):
        read_samples(path)


def test_an_id_that_comes_twice_is_located(tmp_path: Path) -> None:
    path = _file(tmp_path, RECORD, RECORD)
    with pytest.raises(
        IngestError,
        match=says(
            f"{path} line 2", "'musique/a/plan-1'", f"{path} line 1", "its own id"
        ),
    ):
        read_samples(path)


def test_a_file_without_a_sample_of_the_split_says_what_makes_one(
    tmp_path: Path,
) -> None:
    path = _file(tmp_path, RECORD)
    told = says(
        str(path), "no validation sample", "`python -m ras_agent.train.subq.build`"
    )
    with pytest.raises(IngestError, match=told):
        read_samples(path, "validation")


def test_a_question_is_in_the_same_split_whatever_its_spaces_and_capitals() -> None:
    questions = [f"When was number {number} launched?" for number in range(200)]
    chosen = [split_of(question, 0.1) for question in questions]
    assert chosen == [split_of(f"  {question.upper()} ", 0.1) for question in questions]
    assert chosen.count("validation") == 17


def test_no_share_and_the_whole_share_are_possible() -> None:
    assert split_of("Who?", 0.0) == "train"
    assert split_of("Who?", 1.0) == "validation"
