"""What every builder of a graph needs besides its edges: types of its parameters, nodes under limits, presets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph

from ras_agent.address import Address
from ras_agent.budget import Limits
from ras_agent.errors import UnknownName
from ras_agent.graphs.agent import Agent as Agent
from ras_agent.graphs.memory import ThreadMemory, recall
from ras_agent.graphs.node import Body, Node
from ras_agent.graphs.nodes import rewrite
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import Beginning, Inputs, Outputs, State
from ras_agent.protocols import Answerer, Extractor, Planner, Reasoner, Retriever, Rewriter
from ras_agent.records import EvidenceLayout, Passage
from ras_agent.registry import names
from ras_agent.tools.chat.runnables import is_chat_model
from ras_agent.tools.index.postgres import PostgresIndex
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.roles import role_name

# what a user may write for each part of an agent
AnyModel = Runnable[Any, Any] | str  # a chat model, or a runnable around one
AnyPlanner = Planner | AnyModel | None
AnyReasoner = Reasoner | AnyModel | None
AnyExtractor = Extractor | AnyModel | None
AnyAnswerer = Answerer | AnyModel | None
AnyRewriter = Rewriter | AnyModel | None
AnyRetriever = Retriever | BaseRetriever | BaseTool | str | None
AnyIndex = PassageIndex | PostgresIndex | str | Path | Address | Sequence[Passage] | None
AnyCheckpointer = BaseCheckpointSaver[Any] | bool | None

DEFAULT_LIMITS = Limits()
# The limits end a run; LangGraph's own must not end it first, however large max_hops is.
_RECURSION_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset fixes, whatever limits are given.

    early_stops: whether a repeated sub-query or a hop without new facts ends the loop. bounded: whether the graph is.
    may_abstain: whether the answerer may. layout: what planner and answerer are shown; None for their own.
    follows_any: whether a reply that states no plan is the next search. from_memory: whether a plan of [NO_RETRIEVAL]
    leads to an answer from the model's memory.
    """

    early_stops: bool = True
    bounded: bool = True
    may_abstain: bool = True
    layout: EvidenceLayout | None = None
    follows_any: bool = False
    from_memory: bool = False

    @property
    def planning(self) -> dict[str, Any]:
        """Return the options of a planner on a chat model."""
        return {"follows_any": self.follows_any, **self._shown}

    @property
    def answering(self) -> dict[str, Any]:
        """Return the options of an answerer."""
        return {"may_abstain": self.may_abstain, **self._shown}

    @property
    def _shown(self) -> dict[str, Any]:
        return {} if self.layout is None else {"layout": self.layout}

    def limits(self, limits: Limits) -> Limits:
        """Return `limits` with what the preset fixes."""
        if not self.early_stops:
            limits = replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)
        return limits if self.bounded else replace(limits, max_facts=sys.maxsize)


PRESETS = {
    "default": Preset(),
    # RAS as published: only the planner or the fifth hop ends the loop, the graph has no bound, planner and answerer
    # read each sub-query with all its facts and no passages, an answer is given, [NO_RETRIEVAL] is obeyed
    "paper": Preset(
        early_stops=False,
        bounded=False,
        may_abstain=False,
        layout="chain",
        follows_any=True,
        from_memory=True,
    ),
}


def preset_named(name: str | Preset | None, **changes: Any) -> Preset:
    """Return the preset `name` with `changes` that are not None; without a name the default. Raises UnknownName."""
    found = name if isinstance(name, Preset) else PRESETS.get(name or "default")
    if found is None:
        raise UnknownName("preset", str(name), tuple(PRESETS))
    return replace(found, **{field: value for field, value in changes.items() if value is not None})


class AgentGraph(StateGraph[State, Limits, Inputs, Outputs]):
    """A graph over the agent's state. Its nodes share limits and one memory of records.

    limits: of every run that gives none. preset: fixes some of them. state: a TypedDict that adds keys to State.
    """

    def __init__(
        self, limits: Limits = DEFAULT_LIMITS, preset: Preset = PRESETS["default"], state: Any = State
    ) -> None:
        super().__init__(state, Limits, input_schema=Inputs, output_schema=Outputs)
        self._limits, self._preset, self._records = limits, preset, Records()

    def add_body(self, name: str, body: Body, reads: Any = None) -> None:
        """Add a node that runs `body`. reads: the TypedDict of its state, where that is not the graph's own."""
        self.add_node(name, Node(name, body, self._bounds, self._records), input_schema=reads)

    def add_beginning(
        self, begin: Body, rewriter: Rewriter | None, following: str, memory: ThreadMemory | None = None
    ) -> None:
        """Add the nodes that come before `following`: `begin`, for a follow-up question `rewrite`, and `recall`."""
        self.add_body("begin", begin, reads=Beginning)
        if memory is not None:
            self.add_body("recall", recall(memory))
            self.add_edge("recall", following)
            following = "recall"
        self.add_edge(START, "begin")
        if rewriter is None:
            self.add_edge("begin", following)
            return
        self.add_body("rewrite", rewrite(rewriter))
        self.add_conditional_edges(
            "begin", lambda state: "rewrite" if state["turns"] else following, ["rewrite", following]
        )
        self.add_edge("rewrite", following)

    def agent(self, name: str, checkpointer: AnyCheckpointer = None) -> Agent:
        """Return the graph, ready to run."""
        return Agent.of(self.compile(checkpointer, name=name)).with_config(recursion_limit=_RECURSION_LIMIT)

    def _bounds(self, given: Limits | None) -> Limits:
        return self._preset.limits(given or self._limits)


def needs_facts(answerer: object) -> bool:
    """Tell whether the answerer has a name that extractors have too: it uses no chat model, and answers from facts."""
    return role_name(answerer).partition(":")[0] in names("extractor")


def matching_extractor(role: object) -> object:
    """Return the extractor that goes with a planner or answerer: the same model or registered name, else "offline"."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        # a name without a model that nobody knows is the role's own mistake, and its resolver says so
        if name in names("extractor") or (colon and name not in names("planner") + names("answerer")):
            return role
    return "offline"
