"""What every builder needs besides its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from ras_agent.budget import Limits
from ras_agent.graphs.node import Body, Node
from ras_agent.graphs.presets import Preset
from ras_agent.graphs.rehydrate import Records
from ras_agent.graphs.state import Inputs, Outputs, State
from ras_agent.records import Passage
from ras_agent.registry import names
from ras_agent.tools.chat.models import is_chat_model
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.roles import role_name

__all__ = [
    "DEFAULT_LIMITS",
    "Agent",
    "Checkpointer",
    "Index",
    "compiled",
    "extractor_beside",
    "needs_facts",
    "new_graph",
    "node_maker",
]

Agent = CompiledStateGraph[State, Limits, Inputs, Outputs]
Graph = StateGraph[State, Limits, Inputs, Outputs]
Checkpointer = BaseCheckpointSaver[Any] | bool | None
Index = PassageIndex | str | Path | Sequence[Passage] | None

DEFAULT_LIMITS = Limits()
# The limits end a run; LangGraph's own must not end it first, however large max_hops is.
_RECURSION_LIMIT = 1_000_000


def new_graph() -> Graph:
    """A graph over the agent's state, without nodes."""
    return StateGraph(State, Limits, input_schema=Inputs, output_schema=Outputs)


def node_maker(limits: Limits, records: Records, preset: Preset) -> Callable[[Body], Node]:
    """How a graph's bodies become nodes: under one rule for limits, with one memory of records."""

    def bounds(given: Limits | None) -> Limits:
        return preset.limits(given or limits)

    return lambda body: Node(body, bounds, records)


def compiled(graph: Graph, name: str, checkpointer: Checkpointer) -> Agent:
    """The graph, ready to run."""
    return graph.compile(checkpointer, name=name).with_config(recursion_limit=_RECURSION_LIMIT)


def needs_facts(answerer: object) -> bool:
    """Whether the answerer goes by a name that extractors have too: it uses no chat model, and answers from facts."""
    return role_name(answerer).partition(":")[0] in names("extractor")


def extractor_beside(role: object) -> object:
    """The extractor that goes with a planner or answerer: the same model or registered name, else "offline"."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        # a name without a model that nobody knows is the role's own mistake, and its resolver says so
        if name in names("extractor") or (colon and name not in names("planner") + names("answerer")):
            return role
    return "offline"
