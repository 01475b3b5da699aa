"""Graphs by name: the properties that the command line, evaluation and studies need, and how each is assembled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import AgentParts, AnyCheckpointer
from ras_agent.records import AnswerStyle
from ras_agent.registry import check_call, find_a
from ras_agent.review import Place
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """A graph as a plug-in: how it is assembled, and which parts it takes.

    assemble: makes the agent of resolved parts and a checkpointer, or None.
    planner: who plays the planner: a role of the kind "planner" or "reasoner"; or what a function `resolve(spec, options)`
        returns for a user's spec; None for a loop without a planner.
    facts: whether the graph reads facts with an extractor: always, if the answerer needs them, or never.
    static: whether it takes `static_passages`; if not, an evaluation gives them as `seed_passages`.
    style: the form of answer that it asks for where a question wants a short one.
    presets: whether it takes a preset.
    tools: whether its planner calls tools, and a plan may name a retriever.
    review: the places where its runs can wait for a person.
    """

    assemble: Callable[[AgentParts, AnyCheckpointer], Agent]
    planner: (
        Literal["planner", "reasoner"] | Callable[[object, RoleOptions], object] | None
    ) = "planner"
    facts: Literal["always", "if needed", "never"] = "always"
    static: bool = False
    style: AnswerStyle = "short"
    presets: bool = False
    tools: bool = False
    review: tuple[Place, ...] = ()


def graph_spec(name: str) -> GraphSpec:
    """Return the graph of that name.

    Raises UnknownName, or TypeError for a plug-in that is no GraphSpec or has functions of other arguments.
    """
    spec = find_a(GraphSpec, "loop", name)
    check_call("loop", name, spec.assemble, parts=None, checkpointer=None)
    if callable(spec.planner):
        check_call(
            "planner of loop", name, spec.planner, spec="", options=DEFAULT_OPTIONS
        )
    return spec
