"""Finds loops by name. GraphSpec says how a loop is assembled and what it supports, for the command line and
evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ras_agent.config.registry import check_call, find_a
from ras_agent.contracts.records import AnswerStyle
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import AgentParts, AnyCheckpointer
from ras_agent.running.review import Place
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """Describes a loop as a plug-in: how it is assembled, and which parts it takes."""

    assemble: Callable[[AgentParts, AnyCheckpointer], Agent]
    """Makes the agent from resolved parts and a checkpointer or None."""
    planner: (
        Literal["planner", "reasoner"] | Callable[[object, RoleOptions], object] | None
    ) = "planner"
    """The kind of the planner: a role "planner" or "reasoner"; a function `resolve(spec, options)` that makes the
    planner from a user's spec; or None for a loop without a planner."""
    facts: Literal["always", "if needed", "never"] = "always"
    """Whether the graph reads facts with an extractor: always, only if the answerer needs them, or never."""
    static: bool = False
    """Whether it accepts `static_passages`; if not, an evaluation gives them as `seed_passages`."""
    style: AnswerStyle = "short"
    """The form of answer that it asks for if a question wants a short one."""
    presets: bool = False
    """Whether it accepts a preset."""
    tools: bool = False
    """Whether its planner calls tools, so that a plan may name a retriever."""
    review: tuple[Place, ...] = ()
    """The places where its runs can wait for a person."""


def graph_spec(name: str) -> GraphSpec:
    """Return the loop with this name.

    Raises UnknownName, and TypeError for a plug-in that is not a GraphSpec or has functions with other arguments.
    """
    spec = find_a(GraphSpec, "loop", name)
    check_call("loop", name, spec.assemble, parts=None, checkpointer=None)
    if callable(spec.planner):
        check_call(
            "planner of loop", name, spec.planner, spec="", options=DEFAULT_OPTIONS
        )
    return spec
