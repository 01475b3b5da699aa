"""The rules of every benchmark, and the work of `Benchmark` with files, folders, counts and plain records."""

import hashlib
import json
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ras_agent.config import registry
from ras_agent.contracts.errors import IngestError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import Benchmark, benchmark, benchmark_names
from ras_agent.eval.metrics.registry import Outcome, find_metric
from ras_agent.eval.question import Question
from tests.messages import says

PLAIN = {
    "id": "q1",
    "question": "Who owned Fell Mill?",
    "answers": ["Tam Orr"],
    "supporting_titles": ["Fell Mill"],
}


def _plain(path: Path, *extra: dict[str, object]) -> Path:
    path.write_text(
        "".join(json.dumps({**PLAIN, **more}) + "\n" for more in (extra or ({},))),
        "utf-8",
    )
    return path


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_reads_the_plain_form_and_scores_it(
    name: str, tmp_path: Path
) -> None:
    found = benchmark(name)
    (question,) = found.load(_plain(tmp_path / "q.jsonl"))
    assert (question.id, question.answers, question.by_title) == (
        "q1",
        ("Tam Orr",),
        True,
    )
    scores = found.score(
        question,
        Outcome("Tam Orr", passages=(Passage("p", "Tam Orr owned it.", "Fell Mill"),)),
    )
    assert set(scores) <= set(found.metrics)
    assert all(0 <= value <= 1 for value in scores.values())


@pytest.mark.parametrize("name", benchmark_names())
def test_every_benchmark_is_described_completely(name: str) -> None:
    found = benchmark(name)
    assert found.name == name
    assert found.title
    assert found.source
    assert [find_metric(each) for each in found.metrics]
    assert found.style in ("short", "choice", "boolean", "long")
    assert set(found.counts) | set(found.sha256) <= set(found.files.values())


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownName, match="unknown benchmark 'hotpot'; known: 2wikimultihopqa"
    ):
        benchmark("hotpot")


def test_a_package_adds_a_benchmark_by_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint(
        "mine", "ras_agent.eval.benchmarks.registry:PLAIN", "ras_agent.benchmark"
    )
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda group, name="mine": (
            [entry] if (group, name) == ("ras_agent.benchmark", "mine") else []
        ),
    )
    assert benchmark("mine").name == "jsonl"
    assert "mine" in benchmark_names()


def test_an_entry_point_to_something_else_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint("mine", "json:dumps", "ras_agent.benchmark")
    monkeypatch.setattr(registry, "entry_points", lambda group, name="mine": [entry])
    with pytest.raises(
        TypeError,
        match=r"benchmark .mine. must be a ras_agent.+registry.Benchmark, got <function",
    ):
        benchmark("mine")


def test_a_limit_reads_no_further(tmp_path: Path) -> None:
    file = _plain(tmp_path / "q.jsonl", {"id": "a"}, {"id": "b"})
    file.write_text(file.read_text("utf-8") + "broken", "utf-8")
    assert [question.id for question in benchmark("jsonl").load(file, limit=2)] == [
        "a",
        "b",
    ]
    with pytest.raises(IngestError, match="line 3: not JSON"):
        benchmark("jsonl").load(file)


def test_an_id_that_comes_twice_is_an_error(tmp_path: Path) -> None:
    file = _plain(tmp_path / "q.jsonl", {"id": "a"}, {"id": "a"})
    with pytest.raises(
        IngestError, match=r"line 2: the id 'a' is already used by .*line 1"
    ):
        benchmark("jsonl").load(file)


def test_a_folder_is_searched_for_the_split(tmp_path: Path) -> None:
    _plain(tmp_path / "dev.jsonl")
    _plain(tmp_path / "train.jsonl", {"id": "a"}, {"id": "b"})
    mine = replace(
        benchmark("jsonl"),
        files={"validation": "dev.jsonl", "train": "train.jsonl", "test": "test.jsonl"},
    )
    assert len(mine.load(tmp_path)) == 1
    assert len(mine.load(tmp_path, "train")) == 2
    with pytest.raises(
        IngestError, match=says("has no file", "test.jsonl", "one JSON object a line")
    ):
        mine.load(tmp_path, "test")
    with pytest.raises(
        UnknownName,
        match=says("jsonl", "unknown split", "'dev'", "test, train, validation"),
    ):
        mine.load(tmp_path, "dev")


def test_a_missing_file_names_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError,
        match=says(
            "no such file", "hotpot_dev_distractor_v1.json", "hotpotqa.github.io"
        ),
    ):
        benchmark("hotpotqa").load(tmp_path / "hotpot_dev_distractor_v1.json")


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("\n")
    with pytest.raises(IngestError, match="no questions in it"):
        benchmark("jsonl").load(tmp_path / "q.jsonl")


def test_an_official_name_is_held_to_its_count(tmp_path: Path) -> None:
    file = _plain(tmp_path / "hotpot_dev_distractor_v1.json")
    with pytest.raises(IngestError, match=says("1 questions", "7405", "get it again")):
        benchmark("hotpotqa").load(file)
    assert len(benchmark("hotpotqa").load(file, limit=5)) == 1


def test_an_official_name_is_held_to_its_checksum(tmp_path: Path) -> None:
    file = _plain(tmp_path / "dev.jsonl")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    mine: Benchmark = replace(
        benchmark("jsonl"), files={"": "dev.jsonl"}, sha256={"dev.jsonl": digest}
    )
    assert len(mine.load(file)) == 1
    with pytest.raises(IngestError, match=says("sha256", digest, "official file", "0")):
        replace(mine, sha256={"dev.jsonl": "0"}).load(file)


def test_the_plain_form_takes_contexts_and_what_a_study_needs(tmp_path: Path) -> None:
    more = {
        "supporting_ids": ["p1"],
        "contexts": [
            {"id": "p1", "title": "Fell Mill", "text": "Orr owned it."},
            {"title": "Far", "text": "Far."},
        ],
        "decomposition": [{"question": "Who owned Fell Mill?", "answer": "Tam Orr"}],
        "metadata": {"level": "easy"},
        "context_titles": ["Fell Mill"],
    }
    (question,) = benchmark("jsonl").load(_plain(tmp_path / "q.jsonl", more))
    assert (question.supporting, question.by_title, question.hops) == (
        ("p1",),
        False,
        1,
    )
    assert [passage.title for passage in question.contexts] == ["Fell Mill", "Far"]
    assert question.metadata["level"] == "easy"
    assert question.metadata["context_titles"] == ["Fell Mill"]


def test_hops_are_told_or_counted() -> None:
    hops = [{"question": "?", "answer": "a"}] * 3
    assert (
        Question("q", "?", ("a",), metadata={"hops": 2, "decomposition": hops}).hops
        == 2
    )
    assert (
        Question("q", "?", ("a",), ("x", "y"), metadata={"decomposition": hops}).hops
        == 3
    )
    assert Question("q", "?", ("a",), ("x", "y", "x")).hops == 2
    assert Question("q", "?", ("a",)).hops is None
