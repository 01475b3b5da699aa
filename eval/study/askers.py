"""Agents of which a part is replaced, once or for each question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ras_agent.eval.question import Question
from ras_agent.eval.run.evaluation import Material
from ras_agent.eval.run.runner import Ask, agent_asker
from ras_agent.graphs.from_settings import Roles, agent_of, roles_from_settings
from ras_agent.settings import Settings

__all__ = ["Asker", "parts", "replaced", "replaced_for_each"]

Asker = Callable[[Material, Settings], Ask]


def parts(material: Material, settings: Settings) -> Roles:
    """The parts of the agent that a run without changes would ask."""
    return roles_from_settings(settings, material.index, task=material.asked.instructions.get("answer", ""))


def replaced(change: Callable[[Roles], Roles]) -> Asker:
    """Asks one agent, with its parts changed."""
    return lambda material, settings: agent_asker(agent_of(change(parts(material, settings))))


def replaced_for_each(prepare: Callable[[Material], Callable[[Roles, Question], Roles]]) -> Asker:
    """Asks an agent made for each question. What the prepared change raises becomes that question's error."""

    def asker(material: Material, settings: Settings) -> Ask:
        roles, change = parts(material, settings), prepare(material)

        async def ask(question: Question) -> Mapping[str, Any]:
            return await agent_asker(agent_of(change(roles, question)))(question)

        return ask

    return asker
