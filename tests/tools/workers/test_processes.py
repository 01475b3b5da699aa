"""Processes that work for this one: no process outlives it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ras_agent.contracts.errors import ModelRefused, RunError
from ras_agent.contracts.records import Passage
from ras_agent.tools.workers.pool import WorkSpec, results_in_order
from ras_agent.tools.workers.processes import Processes
from tests.messages import says

READER = WorkSpec(
    "ras_agent.app.structuring:remote_passage_reader",
    {"settings": {}, "spec": "offline"},
)

ECHO = WorkSpec("tests.tools.workers.echo:echo")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def workers_find_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    # a spawned worker takes over the path of its parent
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])


SCRIPT = """
import os, signal
from ras_agent.tools.workers.pool import WorkSpec, results_in_order
from ras_agent.tools.workers.processes import Processes

if __name__ == "__main__":
    order = WorkSpec("tests.tools.workers.echo:echo")
    for _ in results_in_order(Processes(order, 2), range(9), concurrency=2):
        print("at work", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_worker_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # returns when everyone has closed the output that workers inherit
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=120, env=environment
    )
    assert (ended.stdout, ended.returncode) == ("at work\n", -9)


def test_workers_end_with_an_iteration_that_is_given_up() -> None:
    results = results_in_order(Processes(ECHO, 2), range(9), concurrency=2)
    assert next(results) == (0, 0)
    assert len(multiprocessing.active_children()) == 2
    results.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_says_how_it_ended_and_what_to_do() -> None:
    results = results_in_order(Processes(ECHO, 1), range(9), concurrency=1)
    next(results)
    for child in multiprocessing.active_children():
        child.kill()
    reason = r"a worker process ended \(exit code -9\); the same command resumes the work, with fewer --workers if memory"
    with pytest.raises(RunError, match=reason):
        list(results)


def test_a_worker_that_cannot_start_says_why() -> None:
    broken = WorkSpec(READER.factory, {"settings": {}, "spec": "nobody"})
    with pytest.raises(
        RunError,
        match=says(
            "worker process",
            "could not start",
            "UnknownName",
            "unknown extractor 'nobody'",
        ),
    ):
        list(
            results_in_order(
                Processes(broken, 2), [Passage("a", "text")], concurrency=2
            )
        )
    assert multiprocessing.active_children() == []


@pytest.mark.slow("processes")
def test_a_model_that_cannot_be_asked_is_raised_as_such() -> None:
    order = WorkSpec(
        "ras_agent.app.structuring:remote_passage_reader",
        {"settings": {}, "spec": "vllm:http://127.0.0.1:9/v1#m"},
    )
    with pytest.raises(
        ModelRefused,
        match=says("vllm:", "2 tries", "nothing listens", "http://127.0.0.1:9"),
    ):
        list(
            results_in_order(
                Processes(order, 1), [Passage("1", "Hull is a town.")], concurrency=1
            )
        )
