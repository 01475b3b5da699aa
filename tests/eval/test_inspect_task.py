"""A task of ours as one of Inspect: samples, solver and scorers, over a stand-in for its package."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent import Settings
from ras_agent.contracts.errors import MissingExtra
from ras_agent.eval.inspect_task import inspect_scorers, inspect_task
from ras_agent.eval.run import Task, load_task
from tests import inspect_stand_in
from tests.messages import says

SETTINGS = Settings(extractor="offline")
Load = Callable[[], Task]


@pytest.fixture
def bell(tmp_path: Path) -> Task:
    """Two questions about Bell; the second has gold passages, and no answer."""
    files = {
        "q.jsonl": [
            {
                "id": "q1",
                "question": "Where was Bell born?",
                "answers": ["Edinburgh"],
                "supporting_ids": ["bell"],
            },
            {
                "id": "q2",
                "question": "Who was Bell?",
                "answers": [],
                "supporting_ids": ["bell"],
            },
        ],
        "c.jsonl": [
            {"id": "bell", "title": "Bell", "text": "Bell was born in Edinburgh."}
        ],
    }
    for name, rows in files.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = ("em", "recall@5")
    return load_task(
        "jsonl",
        tmp_path / "q.jsonl",
        SETTINGS,
        corpus=tmp_path / "c.jsonl",
        metrics=metrics,
    )


@pytest.fixture
def inspect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in inspect_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("inspect")
def test_questions_are_samples_and_metrics_are_scorers(bell: Task) -> None:
    task = inspect_task(bell, SETTINGS, "offline")
    assert [(sample.id, sample.input, sample.target) for sample in task.dataset] == [
        ("q1", "Where was Bell born?", ["Edinburgh"]),
        ("q2", "Who was Bell?", []),
    ]
    assert [scorer.name for scorer in task.scorer] == ["em", "recall_at_5"]
    assert (task.name, task.dataset.name) == ("ras-agent_jsonl", "jsonl")


@pytest.mark.usefixtures("inspect")
def test_a_sample_is_answered_by_our_agent_and_scored_where_a_metric_applies(
    bell: Task,
) -> None:
    scores = inspect_stand_in.run(inspect_task(bell, SETTINGS, "offline"))
    assert scores == {"q1": {"em": 1.0, "recall_at_5": 1.0}, "q2": {"recall_at_5": 1.0}}


@pytest.mark.usefixtures("inspect")
def test_our_metrics_score_another_solver_by_its_completion(bell: Task) -> None:
    async def solver(state: Any, generate: Any) -> Any:
        state.output.completion = "Edinburgh"
        return state

    task = inspect_task(bell, SETTINGS, "offline")
    task.solver, task.scorer = solver, inspect_scorers(bell.questions, ["em"])
    assert inspect_stand_in.run(task) == {"q1": {"em": 1.0}, "q2": {}}


def test_a_task_of_inspect_needs_its_package(
    bell: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(
        MissingExtra, match=says("Inspect", "pip install 'ras-agent[inspect]'")
    ):
        inspect_task(bell, SETTINGS)
