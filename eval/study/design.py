"""Defines the design of a study: its runs, each a task and the agent that is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.records import JSON
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import (
    AnswerQuestion,
    EvalAgent,
    MakeAnswerer,
    agent_inputs,
    graph_answerer,
)
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.task import Task
from ras_agent.graphs.parts import AgentParts, Preset, preset_named
from ras_agent.graphs.resolve import assemble_agent, resolve_parts


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Names a run that a study leaves out, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Holds the tables and pictures of a study.

    A picture is drawn only when its function is called, so that tables can be made without the plotting
    library.
    """

    markdown: str
    """The tables."""
    figures: JSON
    """The same figures as JSON."""
    pictures: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Functions that draw an SVG, by file name."""


Show = Callable[[Mapping[str, Sequence[Result]]], Shown]
"""A function that makes tables and pictures from the results of the runs, by run name."""


@dataclass(frozen=True, slots=True)
class Design:
    """Lists the runs of a study in order, each a task with its agent. A later run may read the results of an
    earlier one.
    """

    study: str
    runs: tuple[tuple[Task, EvalAgent], ...]
    show: Show
    headline: str
    """The metric that decides."""
    base: str = ""
    """The run with which the other runs are compared; "" if no run is."""
    left_out: tuple[LeftOut, ...] = ()
    """Runs that are impossible with this task or these settings."""


def on_task(
    task: Task, agents: Iterable[EvalAgent]
) -> tuple[tuple[Task, EvalAgent], ...]:
    """Return the runs of a design in which each agent is asked the same task."""
    return tuple((task, agent) for agent in agents)


def extended(metrics: Sequence[str], *more: str) -> tuple[str, ...]:
    """Return the names of metrics with `more` added, each once."""
    return tuple(dict.fromkeys((*metrics, *more)))


def parts(task: Task, settings: Settings, *, asks_anyway: bool = False) -> AgentParts:
    """Return the parts of the agent that the settings describe, unchanged.

    Args:
        task: The task.
        settings: The settings of the agent.
        asks_anyway: Whether the answerer answers from its model's knowledge if a search found nothing to show.
            A study that compares agents with and without evidence needs this: otherwise they would differ in
            whether they answer at all.
    """
    preset: Preset | str | None = settings.preset
    if asks_anyway:
        preset = replace(preset_named(settings.preset), asks_anyway=True)
    return resolve_parts(
        settings.loop,
        settings=settings,
        index=task.index,
        task=task.instruction_text,
        preset=preset,
    )


def unchanged(roles: AgentParts) -> AgentParts:
    """Return the parts unchanged."""
    return roles


def asked_anyway(
    change: Callable[[AgentParts], AgentParts] = unchanged, *, seeded: bool = True
) -> MakeAnswerer:
    """Return the `make` of an EvalAgent for the settings' agent with parts that `change` has changed.

    Its answerer is asked even if no search found evidence.

    Args:
        change: Returns the changed parts.
        seeded: Whether the agent gets the passages that a benchmark gives with its questions, as the unchanged
            agent does.
    """

    def make(task: Task, settings: Settings) -> AnswerQuestion:
        changed = change(parts(task, settings, asks_anyway=True))
        inputs = None
        if seeded:
            inputs = partial(agent_inputs, task, changed.graph)
        return graph_answerer(assemble_agent(changed), inputs)

    return make


def replaced_for_each(
    prepare: Callable[[Task], Callable[[AgentParts, Question], AgentParts]],
) -> MakeAnswerer:
    """Return the `make` of an EvalAgent that changes the settings' agent for each question.

    `prepare` takes the task, and returns the function that returns the changed parts for a question. An
    exception in that function becomes the error of the question's result.
    """

    def make(task: Task, settings: Settings) -> AnswerQuestion:
        unchanged = parts(task, settings)
        change = prepare(task)

        async def answer(question: Question) -> Mapping[str, Any]:
            changed = change(unchanged, question)
            ask = graph_answerer(assemble_agent(changed))
            return await ask(question)

        return answer

    return make
