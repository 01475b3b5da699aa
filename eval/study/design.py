"""What every study is made of: its runs, and the agents that its runs ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ras_agent.eval.question import Question
from ras_agent.eval.run.evaluation import Configuration
from ras_agent.eval.run.material import Material
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.runner import AskQuestion, agent_asker
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.resolve import assemble_agent, resolve_parts
from ras_agent.records import JSON
from ras_agent.settings import Settings


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Names a run that a study would have, and why it does not."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Holds a study's outcome: Markdown, the same figures as JSON, and SVG by file name.

    A picture is made when it is called for, so that its library need not be there for the tables.
    """

    markdown: str
    figures: JSON
    pictures: Mapping[str, Callable[[], str]] = field(default_factory=dict)


Show = Callable[[Mapping[str, Sequence[Result]]], Shown]
"""Makes what is shown of each run's results, given by the run's name."""


@dataclass(frozen=True, slots=True)
class Design:
    """Lists the runs in order, each over its material; a later run may start from an earlier one.

    left_out: runs that do not apply here. headline: the metric that decides. base: the run that others are held
    against, if there is one.
    """

    study: str
    runs: tuple[tuple[Material, Configuration], ...]
    show: Show
    headline: str
    base: str = ""
    left_out: tuple[LeftOut, ...] = ()


def extended(metrics: Sequence[str], *more: str) -> tuple[str, ...]:
    """Names of metrics, each once."""
    return tuple(dict.fromkeys((*metrics, *more)))


Asker = Callable[[Material, Settings], AskQuestion]


def parts(material: Material, settings: Settings) -> AgentParts:
    """Return the parts of the agent that a run without changes would ask."""
    task = material.asked.instructions.get("answer", "")
    return resolve_parts(settings.graph, settings=settings, index=material.index, task=task)


def replaced(change: Callable[[AgentParts], AgentParts]) -> Asker:
    """Asks one agent, with its parts changed."""
    return lambda material, settings: agent_asker(assemble_agent(change(parts(material, settings))))


def replaced_for_each(prepare: Callable[[Material], Callable[[AgentParts, Question], AgentParts]]) -> Asker:
    """Asks an agent made for each question. What the prepared change raises becomes that question's error."""

    def asker(material: Material, settings: Settings) -> AskQuestion:
        roles, change = parts(material, settings), prepare(material)

        async def ask(question: Question) -> Mapping[str, Any]:
            return await agent_asker(assemble_agent(change(roles, question)))(question)

        return ask

    return asker
