"""Designs of studies: their runs, and the agents that the runs ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

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
from ras_agent.records import JSON
from ras_agent.settings import Settings


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that a study leaves out, and the reason."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Outcome of a study: Markdown, the same figures as JSON, and SVG by file name.

    A picture is made when it is called for, so that its library need not be there for the tables.
    """

    markdown: str
    figures: JSON
    pictures: Mapping[str, Callable[[], str]] = field(default_factory=dict)


Show = Callable[[Mapping[str, Sequence[Result]]], Shown]
"""Makes the tables and pictures of each run's results, given by the run's name."""


@dataclass(frozen=True, slots=True)
class Design:
    """The runs of a study in order, each an agent and its task; a later run may start from an earlier one.

    left_out: runs that do not apply here. headline: the metric that decides. base: the run that others are held
    against, if there is one.
    """

    study: str
    runs: tuple[tuple[Task, EvalAgent], ...]
    show: Show
    headline: str
    base: str = ""
    left_out: tuple[LeftOut, ...] = ()


def extended(metrics: Sequence[str], *more: str) -> tuple[str, ...]:
    """Return names of metrics, each once."""
    return tuple(dict.fromkeys((*metrics, *more)))


def parts(task: Task, settings: Settings, *, asks_anyway: bool = False) -> AgentParts:
    """Return the parts of the agent that a run without changes asks.

    asks_anyway: whether its answerer is asked to answer from its model's knowledge where a search found nothing to
        show it. A study that holds agents with evidence against one without any needs it: else these would differ in
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
    """Return the parts as they are."""
    return roles


def asked_anyway(
    change: Callable[[AgentParts], AgentParts] = unchanged, *, seeded: bool = True
) -> MakeAnswerer:
    """Return a `MakeAnswerer` for the settings' agent with its parts changed by `change`, which is asked in any case.

    seeded: whether it gets the passages that a benchmark gives with its questions, as the agent without changes does.
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
    """Return a `MakeAnswerer` that changes the agent's parts separately for each question.

    prepare: takes the task and returns the change. An exception of the change becomes that question's error.
    """

    def make(task: Task, settings: Settings) -> AnswerQuestion:
        unchanged = parts(task, settings)
        change = prepare(task)

        async def answer(question: Question) -> Mapping[str, Any]:
            return await graph_answerer(assemble_agent(change(unchanged, question)))(
                question
            )

        return answer

    return make
