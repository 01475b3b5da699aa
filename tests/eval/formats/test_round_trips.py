"""A file in a format that is also read comes back equal."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Passage
from ras_agent.eval.formats import Exported, format_to_write, formats, load_questions
from ras_agent.eval.formats.flashrag import contents_of, read_passages
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.task import questions_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = TEXTS.filter(bool)
ANSWERS = TEXTS.filter(str.strip)
RESULTS = st.lists(
    st.builds(
        Result,
        id=NAMES,
        question=TEXTS,
        answers=st.lists(ANSWERS, min_size=1, max_size=3).map(tuple),
        supporting=st.lists(NAMES, max_size=3, unique=True).map(tuple),
        answer=TEXTS,
        scores=st.just({"f1": 0.5}),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda result: result.id,
)


def _known(question: Question | Result) -> tuple[Any, ...]:
    return question.id, question.question, question.answers, question.supporting


def _read_back(name: str, results: Sequence[Result]) -> list[Question]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"out.{'parquet' if name == 'verl' else 'jsonl'}"
        format_to_write(name)(Exported({"name": "run"}, tuple(results)), file)
        return load_questions(file)


@pytest.mark.parametrize("name", ["jsonl", "flashrag", "ragas", "verl"])
@given(results=RESULTS)
def test_questions_come_back_equal(name: str, results: list[Result]) -> None:
    assert [_known(question) for question in _read_back(name, results)] == [
        _known(result) for result in results
    ]


def test_every_format_that_reads_questions_and_writes_results_is_tried_above() -> None:
    both = {form.name for form in formats() if form.question and form.write_results}
    assert both == {"jsonl", "flashrag", "ragas", "verl"}


@pytest.mark.parametrize("name", ["jsonl", "flashrag", "ragas", "verl"])
def test_gold_titles_come_back_as_titles(name: str) -> None:
    result = Result("q", "Where?", ("Edinburgh",), ("Alan Turing",), by_title=True)
    (question,) = _read_back(name, [result])
    assert (question.supporting, question.by_title) == (("Alan Turing",), True)


FULL = Question(
    "q2",
    "Which river?",
    ("Leith",),
    ("bell", "leith"),
    type="bridge",
    contexts=(Passage("bell", "Bell was born in Edinburgh.", "Bell"),),
    metadata={
        "hops": 3,
        "decomposition": [{"question": "Who?", "answer": "Bell"}],
        "relevance": {"bell": 2, "leith": 1},
        "level": "hard",
    },
)


@pytest.mark.parametrize("name", ["jsonl", "flashrag", "ragas", "verl"])
def test_all_that_is_known_of_a_question_comes_back_in_the_order_of_the_data(
    name: str, tmp_path: Path
) -> None:
    other = Question("q1", "Where?", ("Edinburgh",), ("bell",))
    results = (
        Result("q1", "Where?", ("Edinburgh",), ("bell",)),
        Result("q2", "Which river?", ("Leith",)),
    )
    exported = Exported({"name": "run"}, results, questions={"q2": FULL, "q1": other})
    file = tmp_path / ("out.parquet" if name == "verl" else "out.jsonl")
    format_to_write(name)(exported, file)
    found = {question.id: question for question in load_questions(file)}
    assert found["q2"] == FULL


def test_rows_are_in_the_order_of_the_data(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    rows = [
        {"id": name, "question": f"{name}?", "answers": ["x"], "level": "hard"}
        for name in ("a", "b", "c")
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = RunFolder.begin(
        tmp_path / "run", {"name": "run", "benchmark": "jsonl", "data": str(data)}
    )
    for name in ("c", "a", "b"):
        folder.append(Result(name, f"{name}?", ("x",)))
    run = Exported.read(folder.path, questions_of(folder))
    assert [result.id for result in run.results] == ["a", "b", "c"]
    assert run.question_of(run.results[0]).metadata == {"level": "hard"}


@pytest.mark.parametrize("name", ["jsonl", "flashrag", "ragas", "verl"])
def test_hops_and_grades_come_back_without_the_data_too(name: str) -> None:
    result = Result(
        "q", "?", ("x",), ("bell",), type="bridge", gold_hops=3, relevance={"bell": 2.0}
    )
    (question,) = _read_back(name, [result])
    assert (question.hops, question.relevance, question.type) == (
        3,
        {"bell": 2.0},
        "bridge",
    )


@given(
    id=NAMES, text=TEXTS, title=TEXTS.map(lambda title: " ".join(title.splitlines()))
)
def test_a_passage_in_the_form_of_flashrag_comes_back_equal(
    id: str, text: str, title: str
) -> None:
    passage = Passage(id, text or "x", title)
    assert read_passages(
        QuestionRecord({"id": id, "contents": contents_of(passage)}, "corpus line 1")
    ) == [passage]


@given(results=RESULTS)
def test_a_run_of_trec_has_the_ranking(results: list[Result]) -> None:
    ranked = {
        result.id: list(result.supporting) for result in results if result.supporting
    }
    results = [
        Result(
            one.id, one.question, retrieved=one.supporting, supporting=one.supporting
        )
        for one in results
    ]
    with TemporaryDirectory() as folder:
        run, judged = format_to_write("trec")(
            Exported({"name": "my run"}, tuple(results)), Path(folder) / "run.trec"
        )
        lines = [line.split() for line in run.read_text("utf-8").split("\n")[:-1]]
        judgements = [
            line.split() for line in judged.read_text("utf-8").split("\n")[:-1]
        ]
    assert {len(line) for line in lines} <= {6}
    again: dict[str, list[str]] = {}
    for query, _, passage, _, _, _ in sorted(lines, key=lambda line: -float(line[4])):
        again.setdefault(unquote(query), []).append(unquote(passage))
    assert again == ranked
    assert [
        [unquote(query), unquote(passage), grade]
        for query, _, passage, grade in judgements
    ] == [
        [query, passage, "1"]
        for query, passages in ranked.items()
        for passage in passages
    ]


@pytest.mark.parametrize("grade", [0.5, math.nan, math.inf])
def test_a_grade_that_is_no_whole_number_is_no_judgement_of_trec(
    grade: float, tmp_path: Path
) -> None:
    results = (
        Result(
            "q1", "?", supporting=("bell",), relevance={"telephone": 2.0, "bell": grade}
        ),
    )
    with pytest.raises(
        RunError,
        match=f"question 'q1': the grade of 'bell' is {grade}, but TREC's grades are whole numbers",
    ):
        format_to_write("trec")(Exported({}, results), tmp_path / "run.trec")
    assert list(tmp_path.iterdir()) == []


def test_grades_are_written_as_whole_numbers(tmp_path: Path) -> None:
    results = (
        Result(
            "q1", "?", supporting=("bell",), relevance={"telephone": 2.0, "bell": 1}
        ),
    )
    _, judged = format_to_write("trec")(Exported({}, results), tmp_path / "run.trec")
    assert judged.read_text("utf-8") == "q1 0 telephone 2\nq1 0 bell 1\n"


def test_a_run_of_trec_is_scored_by_others_as_by_us(tmp_path: Path) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    from ras_agent.eval.metrics import recall_at, reciprocal_rank
    from ras_agent.eval.metrics.ranking import ndcg_at

    results = [
        Result(
            "q 1",
            "?",
            supporting=("a b", "c%d"),
            retrieved=("x", "a b", "x", "y", "c%d"),
        ),
        Result("q2", "?", supporting=("z",), retrieved=("z", "a b")),
    ]
    exported = Exported({"name": "r"}, tuple(results))
    run, judged = format_to_write("trec")(exported, tmp_path / "run.trec")
    measures = [ir_measures.R @ 2, ir_measures.RR, ir_measures.nDCG @ 3]
    theirs = ir_measures.calc_aggregate(
        measures,
        list(ir_measures.read_trec_qrels(str(judged))),
        list(ir_measures.read_trec_run(str(run))),
    )
    for measure, score in zip(
        measures,
        (
            lambda one: recall_at(2, one.retrieved, one.supporting),
            lambda one: reciprocal_rank(one.retrieved, one.supporting),
            lambda one: ndcg_at(3, one.retrieved, dict.fromkeys(one.supporting, 1)),
        ),
        strict=True,
    ):
        assert theirs[measure] == pytest.approx(sum(map(score, results)) / 2)


def test_the_row_of_ragas_is_the_one_that_it_documents(tmp_path: Path) -> None:
    result = Result(
        "q",
        "Where?",
        ("Edinburgh", "Auld Reekie"),
        ("bell",),
        answer="Edinburgh",
        retrieved=("bell", "x"),
    )
    trace = {
        "passages": {
            "bell": {"id": "bell", "text": "Born in Edinburgh."},
            "x": {"id": "x", "text": "Other."},
        }
    }
    (path,) = format_to_write("ragas")(
        Exported({}, (_with(result, trace),)), tmp_path / "rows.jsonl"
    )
    assert json.loads(path.read_text()) == {
        "id": "q",
        "user_input": "Where?",
        "retrieved_contexts": ["Born in Edinburgh.", "Other."],
        "retrieved_context_ids": ["bell", "x"],
        "reference_context_ids": ["bell"],
        "response": "Edinburgh",
        "reference": "Edinburgh",
        "references": ["Edinburgh", "Auld Reekie"],
    }


def _with(result: Result, trace: dict[str, Any]) -> Result:
    return Result.from_dict({**result.to_dict(), "trace": trace})


@pytest.mark.parametrize("name", ["flashrag", "ragas"])
def test_what_an_abstention_suggests_is_not_given_for_its_answer(
    name: str, tmp_path: Path
) -> None:
    unsure = Result(
        "q",
        "Where?",
        ("Ulm",),
        answer="I am not sure.",
        abstained=True,
        suggestion="Ulm",
    )
    format_to_write(name)(Exported({"name": "run"}, (unsure,)), tmp_path / "out.jsonl")
    written = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert "I don't know." in written
    assert "sure" not in written
