"""Whatever a file of samples holds, the reader returns samples or says where it is wrong."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.marks import SUBQ
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.train.data import split_of
from ras_agent.train.subq import SubqStep, read_samples
from ras_agent.train.subq.label import (
    as_subquery,
    no_retrieval_samples,
    retrieval_samples,
)
from ras_agent.train.subq.samples import plan_of, write_samples
from ras_agent.train.subq.sources import SubqQuestion

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
FACT = st.tuples(TEXT, TEXT, TEXT)
SEARCH = st.text("abc xyzQ é-", min_size=1).filter(
    lambda text: any(map(str.isalpha, text))
)
STEP = st.builds(
    SubqStep,
    SEARCH.map(lambda text: as_subquery(f"Who is {text}?")),
    st.lists(
        st.builds(
            Passage,
            TEXT,
            st.just(""),
            st.text(st.characters(exclude_categories=["Cs"])),
        ),
        max_size=3,
    ).map(tuple),
    st.lists(FACT, max_size=3).map(lambda facts: tuple(dict.fromkeys(facts))),
)
RECORD: dict[str, Any] = {
    "id": "a",
    "source": "s",
    "question_id": "q",
    "hops": 1,
    "split": "train",
    "kind": "plan",
    "label": "sufficient",
    "added": False,
    "question": "Who?",
    "steps": [
        {
            "subquery": "Who?",
            "passages": [{"id": "p", "title": "P"}],
            "triples": [["a", "b", "c"]],
        }
    ],
    "target": "[SUFFICIENT]",
    "answers": ["Ann"],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["id", "subquery", "passages", "triples", "title"]), inner), max_leaves=6
)  # fmt: skip


@settings(max_examples=40)
@given(
    st.lists(st.tuples(TEXT, st.lists(STEP, max_size=3), TEXT), min_size=1, max_size=2)
)
def test_samples_are_read_as_they_were_written(
    made: list[tuple[str, list[SubqStep], str]],
) -> None:
    samples = []
    for number, (question, steps, answer) in enumerate(made):
        asked = SubqQuestion("test", Question(str(number), question, (answer,)), ())
        split = split_of(question, 0.5)
        if steps:
            samples += retrieval_samples(asked, steps, split, "subquery")
        else:
            samples += no_retrieval_samples(asked, 0, split)
    with TemporaryDirectory() as folder:
        write_samples(Path(folder) / "samples.jsonl", samples)
        read = read_samples(Path(folder) / "samples.jsonl")
    assert read == samples
    for sample in read:
        graph, steps_of_run = sample.as_run()
        assert {
            name for step in steps_of_run for name in step.triple_ids
        } == graph.by_id.keys()


@settings(max_examples=40)
@given(st.sampled_from(sorted(RECORD)), JSON)
def test_a_field_of_another_kind_is_located_or_read(key: str, value: Any) -> None:
    _read({**RECORD, key: value})


@settings(max_examples=40)
@given(st.sampled_from(sorted(RECORD["steps"][0])), JSON)
def test_a_field_of_a_step_of_another_kind_is_located_or_read(
    key: str, value: Any
) -> None:
    _read({**RECORD, "steps": [{**RECORD["steps"][0], key: value}]})


def _read(record: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "samples.jsonl"
        path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        try:
            samples = read_samples(path)
        except IngestError as error:
            samples, problem = [], str(error)
            assert problem.startswith(f"{path} line 1")
        if samples:
            write_samples(path, samples)
            assert read_samples(path) == samples


@settings(max_examples=40)
@given(st.text())
def test_a_subquery_is_a_plan_that_the_loop_reads_back(text: str) -> None:
    try:
        subquery = as_subquery(text)
    except ValueError:
        return
    plan = plan_of(f"{SUBQ} {subquery}")
    assert plan is not None
    assert (plan.action, plan.subquery) == ("subq", subquery)
    assert as_subquery(subquery) == subquery
