"""Runs evaluations: it asks an agent the questions of a task and writes each result to disk, so that a killed
run can resume.

    settings = Settings(llm="openai:gpt-4o-mini")
    task = load_task("hotpotqa", Path("hotpot_dev.json"), settings, limit=100)
    summary = begin_run(task, EvalAgent("mine", settings), Path("runs/mine")).finish()

A task has questions, a corpus or graphs to search, and metrics. An agent is any async function from a question
to an output. A scorer is a function from a question and an output to metrics. docs/evaluation.md shows how to
write each of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ras_agent.eval.run.agent import (
        EvalAgent,
        baseline_agent,
        graph_answerer,
        search_agent,
    )
    from ras_agent.eval.run.begin import Run, begin_run
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.eval.run.prices import Prices, load_prices
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.run.runner import metric_scorer
    from ras_agent.eval.run.summarise import summarise
    from ras_agent.eval.run.task import Task, load_task
    from ras_agent.eval.run.workers import WorkerPlan

__all__ = [
    "EvalAgent",
    "Prices",
    "Result",
    "Run",
    "RunFolder",
    "Task",
    "WorkerPlan",
    "baseline_agent",
    "begin_run",
    "graph_answerer",
    "load_prices",
    "load_task",
    "metric_scorer",
    "search_agent",
    "summarise",
]

_MODULES = {
    **dict.fromkeys(
        ("EvalAgent", "baseline_agent", "graph_answerer", "search_agent"), "agent"
    ),
    **dict.fromkeys(("Run", "begin_run"), "begin"),
    **dict.fromkeys(("Prices", "load_prices"), "prices"),
    **dict.fromkeys(("Task", "load_task"), "task"),
    "Result": "result",
    "RunFolder": "folder",
    "WorkerPlan": "workers",
    "metric_scorer": "runner",
    "summarise": "summarise",
}


def __getattr__(name: str) -> Any:
    # lazy: the command line reads prices without numpy and LangGraph
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
