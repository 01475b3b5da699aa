"""Runs over rows, files with other line ends, more questions later, and tables of results."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import MissingExtra, RunError, SettingsError
from ras_agent.eval.formats import format_to_write, load_questions
from ras_agent.eval.formats.exported import Exported
from ras_agent.eval.run import EvalAgent, begin_run, load_task, search_agent
from ras_agent.eval.run.begin import remote_questions
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.eval.run.task import questions_of

ROWS = [
    {
        "id": f"q{number}",
        "question": f"Where is {town}?",
        "answers": [land],
        "supporting_ids": [town],
    }
    for number, (town, land) in enumerate(
        (("Hull", "England"), ("Perth", "Scotland"), ("Bern", "Switzerland"))
    )
]
CORPUS = [{"id": town, "title": town, "text": f"{town} is in {land}."} for town, land in
          (("Hull", "England"), ("Perth", "Scotland"), ("Bern", "Switzerland"))]  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    place = tmp_path / "set"
    place.mkdir()
    (place / "corpus.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in CORPUS)
    )
    return place


class Frame:
    """The methods that are called of a pandas DataFrame."""

    columns = ("id", "question")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [*ROWS[:2], {**ROWS[2], "type": float("nan")}]


def _run(
    data: object, corpus: Path, out: Path, limit: int | None = None
) -> dict[str, Any]:
    settings = Settings(retriever="bm25")
    task = load_task("jsonl", data, settings, corpus=corpus, limit=limit).for_search()
    return begin_run(task, search_agent("bm25", settings), out, concurrency=1).finish()


def test_rows_and_a_data_frame_are_asked_over_a_folder_of_beir(
    corpus: Path, tmp_path: Path
) -> None:
    assert _run(ROWS, corpus, tmp_path / "rows")["scores"]["recall"]["mean"] == 1.0
    assert _run(Frame(), corpus, tmp_path / "frame")["questions"] == 3
    with pytest.raises(SettingsError, match="a file, a DataFrame or a list of rows"):
        load_task("jsonl", 7, Settings(), corpus=corpus)


def test_a_folder_of_questions_may_have_its_corpus_in_it(corpus: Path) -> None:
    settings = Settings(retriever="bm25")
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (corpus / "questions.jsonl").write_text(lines)
    task = load_task("jsonl", corpus, settings)
    assert task.corpus == corpus / "corpus.jsonl"
    assert (len(task.index.passages), task.without_evidence) == (3, 0)
    own = {**ROWS[0], "contexts": ["Hull is a port."]}
    (corpus / "questions.jsonl").write_text(json.dumps(own))
    assert load_task("jsonl", corpus, settings).corpus is None


def test_rows_are_plain_values_that_other_processes_read(
    corpus: Path, tmp_path: Path
) -> None:
    class Columns:
        def to_dicts(self) -> list[dict[str, Any]]:  # as polars has them
            return [{**row, "answers": np.array(row["answers"])} for row in ROWS]

    settings = Settings(retriever="bm25")
    task = load_task("jsonl", Columns(), settings, corpus=corpus).for_search()
    rows = json.loads(json.dumps(task.rows))
    agent = {
        "make": "search",
        "settings": settings.model_dump(mode="json"),
        "metrics": ["recall"],
    }
    work = remote_questions(
        task={"name": "jsonl", "data": rows, "corpus": str(corpus)},
        agent={**agent, "graph": "none", "roles": {}, "traces": False},
    )
    result = asyncio.run(work(task.questions[0]))
    assert (result.id, result.scores) == ("q0", {"recall": 1.0})


def test_a_file_is_the_same_with_other_line_ends(tmp_path: Path) -> None:
    texts = ("a\nb\n", "a\r\nb\r\n", "a\nb\n\n")
    digests = set()
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_bytes(text.encode())
        digests.add(file_sha256(tmp_path / str(number)))
    assert len(digests) == 1
    (tmp_path / "other").write_bytes(b"a\n\nb\n")
    assert file_sha256(tmp_path / "other") not in digests


def test_more_questions_are_asked_in_the_same_run(corpus: Path, tmp_path: Path) -> None:
    _run(ROWS, corpus, tmp_path / "run", limit=2)
    begun = (tmp_path / "run" / "results.jsonl").read_text()
    assert _run(ROWS, corpus, tmp_path / "run")["questions"] == 3
    assert (tmp_path / "run" / "results.jsonl").read_text().startswith(begun)
    assert RunFolder(tmp_path / "run").manifest()["questions"] == 3
    with pytest.raises(RunError, match="begun with another configuration: questions"):
        _run(ROWS, corpus, tmp_path / "run", limit=1)


def test_results_are_a_table_with_a_column_for_each_score(
    corpus: Path, tmp_path: Path
) -> None:
    _run(ROWS, corpus, tmp_path / "run")
    rows = RunFolder(tmp_path / "run").rows()
    assert next((row["id"], row["recall"], row["retrieved"]) for row in rows) == (
        "q0",
        1.0,
        '["Hull"]',
    )
    format_to_write("csv")(Exported.read(tmp_path / "run"), tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        assert [row["recall"] for row in csv.DictReader(file)] == ["1.0", "1.0", "1.0"]


def test_parquet_has_the_same_columns_and_reads_back(
    corpus: Path, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    _run(ROWS, corpus, tmp_path / "run")
    run = Exported.read(tmp_path / "run")
    format_to_write("parquet")(run, tmp_path / "run.parquet")
    rows = RunFolder(tmp_path / "run").rows()
    assert parquet.read_table(tmp_path / "run.parquet").to_pylist() == rows
    assert {"recall", "mrr", "error", "confidence"} <= rows[0].keys()


def test_a_run_is_a_data_frame_in_the_order_of_its_questions(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(retriever="bm25")
    task = load_task("jsonl", ROWS, settings, corpus=corpus).for_search()
    run = begin_run(
        task, search_agent("bm25", settings), tmp_path / "run", concurrency=1
    )
    run.finish()
    lines = run.folder.results_path.read_text().splitlines(keepends=True)
    run.folder.results_path.write_text("".join(reversed(lines)))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert [(row["id"], row["recall"]) for row in run.to_pandas()] == [
        ("q0", 1.0),
        ("q1", 1.0),
        ("q2", 1.0),
    ]
    assert [row["id"] for row in run.folder.to_pandas()] == ["q2", "q1", "q0"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[datasets\]"):
        run.to_pandas()


def test_an_index_with_a_name_and_gaps_of_pandas_are_read(corpus: Path) -> None:
    class Indexed(Frame):
        index = SimpleNamespace(name="id")

        def reset_index(self) -> Any:
            return Frame()

        def to_dict(self, orient: str) -> list[dict[str, Any]]:
            raise AssertionError("the ids would be lost")

    na = type("NAType", (), {})()
    for data in (Indexed(), [{**ROWS[0], "hops": na}, *ROWS[1:]]):
        task = load_task("jsonl", data, Settings(), corpus=corpus)
        assert [question.id for question in task.questions] == ["q0", "q1", "q2"]
        assert task.questions[0].metadata.get("hops") is None


def test_a_run_that_only_searches_is_exported_with_its_passages(
    corpus: Path, tmp_path: Path
) -> None:
    _run(ROWS, corpus, tmp_path / "run")
    format_to_write("ragas")(Exported.read(tmp_path / "run"), tmp_path / "rows.jsonl")
    first = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0])
    assert first["retrieved_contexts"] == ["Hull is in England."]


def test_a_run_over_rows_keeps_its_questions_in_their_order(
    corpus: Path, tmp_path: Path
) -> None:
    rows = [{**row, "level": row["id"] * 2} for row in reversed(ROWS)]
    _run(rows, corpus, tmp_path / "run", limit=2)
    _run(rows, corpus, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert [question.id for question in questions_of(folder)] == ["q2", "q1", "q0"]
    export = Exported.read(folder.path, questions_of(folder))
    format_to_write("ragas")(export, tmp_path / "rows.jsonl")
    again = load_questions(tmp_path / "rows.jsonl")
    assert [question.metadata for question in again] == [
        {"level": "q2q2"},
        {"level": "q1q1"},
        {"level": "q0q0"},
    ]


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("seconds", None, "'seconds' is null"),
        ("answers", None, "'answers' is null"),
        ("usage", {"by_role": None}, "'usage.by_role.+' is null"),
        ("failures", [{"role": "planner"}], "'failures.0.message': Field required"),
        ("failures", [3], "'failures.0': Input should be a valid dictionary"),
        ("scores", {"em": "high"}, "'scores.em': Input should be a valid number"),
        ("trace", [], "'trace': Input should be a valid dictionary"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_line(
    corpus: Path, tmp_path: Path, field: str, value: object, told: str
) -> None:
    _run(ROWS, corpus, tmp_path / "run")
    place = tmp_path / "run" / "results.jsonl"
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    lines[1][field] = value
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(RunError, match=f"line 2: not a result .*{told}"):
        list(RunFolder(tmp_path / "run").results())


def test_an_agent_of_ones_own_is_asked_over_rows(corpus: Path, tmp_path: Path) -> None:
    async def answer(question: Any) -> dict[str, Any]:
        return {"answer": "England", "passages": {}, "steps": [], "stop_reason": "own"}

    task = load_task("jsonl", ROWS, Settings(), corpus=corpus)
    agent = EvalAgent.of("own", answer, roles={"answerer": "my rules"})
    summary = begin_run(task, agent, tmp_path / "own").finish()
    assert summary["scores"]["em_text"]["mean"] == pytest.approx(1 / 3)
    manifest = json.loads((tmp_path / "own" / "manifest.json").read_text("utf-8"))
    assert manifest["roles"] == {"answerer": "my rules"}
