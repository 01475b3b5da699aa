"""Questions spread over processes: the same results as in one, and an end that is reported when a worker ends."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError
from ras_agent.eval.question import Question
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.runner import evaluate
from ras_agent.tools.workers.pool import Here, WorkSpec
from ras_agent.tools.workers.processes import Processes
from tests.messages import says

pytestmark = pytest.mark.slow("processes and Ray")

QUESTIONS = [
    Question("q1", "Where was Alexander Graham Bell born?", ("Edinburgh",), ("bell",)),
    Question("q2", "Which river is in Edinburgh?", ("Water of Leith",), ("leith",)),
    Question("q3", "Who patented the telephone?", ("Alexander Graham Bell",), ("tel",)),
]
PASSAGES = (
    '{"id": "tel", "title": "Telephone", "text": "The telephone was patented by Alexander Graham Bell in 1876."}\n'
    '{"id": "bell", "title": "Alexander Graham Bell", "text": "Alexander Graham Bell was born in Edinburgh."}\n'
    '{"id": "leith", "title": "Water of Leith", "text": "The Water of Leith is a river in Edinburgh."}\n'
)


@pytest.fixture
def spec(tmp_path: Path) -> WorkSpec:
    """Offline roles over three passages."""
    (tmp_path / "passages.jsonl").write_text(PASSAGES)
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q", "question": "?", "answers": ["x"]}\n'
    )
    task = {
        "name": "jsonl",
        "data": str(tmp_path / "questions.jsonl"),
        "corpus": str(tmp_path / "passages.jsonl"),
    }
    agent = {
        "make": "settings",
        "settings": Settings().model_dump(mode="json"),
        "metrics": ["em", "recall@2"],
    }
    agent |= {"graph": "ras", "roles": {}, "traces": False}
    return WorkSpec(
        "ras_agent.eval.run.begin:remote_questions", {"task": task, "agent": agent}
    )


def _untimed(result: Result) -> tuple[Any, ...]:
    return (
        result.id,
        result.answer,
        result.scores,
        result.retrieved,
        result.stop_reason,
        result.hops,
    )


def test_processes_give_the_results_of_one_process(
    tmp_path: Path, spec: WorkSpec
) -> None:
    alone = evaluate(
        Here(spec.build()), QUESTIONS, RunFolder.begin(tmp_path / "alone", {})
    )
    shared = evaluate(
        Processes(spec, 2), QUESTIONS, RunFolder.begin(tmp_path / "shared", {})
    )
    assert list(map(_untimed, shared)) == list(map(_untimed, alone))
    assert shared[0].answer == "Edinburgh"
    assert multiprocessing.active_children() == []


def test_a_worker_that_cannot_start_says_why(tmp_path: Path, spec: WorkSpec) -> None:
    task = {**spec.arguments["task"], "data": str(tmp_path / "nowhere.jsonl")}
    broken = WorkSpec(spec.factory, {**spec.arguments, "task": task})
    with pytest.raises(
        RunError,
        match=says(
            "worker process",
            "could not start",
            "IngestError",
            "nowhere.jsonl: no such file",
        ),
    ):
        evaluate(Processes(broken, 2), QUESTIONS, RunFolder.begin(tmp_path / "run", {}))


def test_a_worker_that_dies_ends_a_run_that_can_be_resumed(
    tmp_path: Path, spec: WorkSpec
) -> None:
    folder = RunFolder.begin(tmp_path / "run", {})

    def kill_the_worker(result: Result) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(
        RunError, match=says("worker process", "exit code -9", "same command resumes")
    ):
        evaluate(
            Processes(spec, 1), QUESTIONS, folder, concurrency=1, on_end=kill_the_worker
        )
    assert [result.id for result in folder.results()] == ["q1"]
    assert [
        result.id for result in evaluate(Processes(spec, 1), QUESTIONS, folder)
    ] == ["q1", "q2", "q3"]


def test_less_than_one_process_is_refused(spec: WorkSpec) -> None:
    with pytest.raises(ValueError, match="count must be positive, got 0"):
        Processes(spec, 0)
