"""Defines the arguments for making an agent, the parts that they are resolved to, and presets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import EvidenceLayout, OnConflict, without_none
from ras_agent.graphs.toolset import AnyTool
from ras_agent.question_graph.disputes import Functional, not_known
from ras_agent.running.budget import Limits
from ras_agent.running.confidence import ANY_SURENESS, Sureness
from ras_agent.running.protocols import (
    Answerer,
    Extractor,
    Judge,
    Planner,
    Reasoner,
    Reranker,
    Retriever,
    Rewriter,
)
from ras_agent.running.review import Place
from ras_agent.tools.graph_tokens.fact_orders import FactPruner
from ras_agent.tools.index.given import Text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.plan.graph_tools import Tool

# the forms in which a user may give each part of an agent
AnyModel = Runnable[Any, Any] | str  # a chat model, a runnable around one, or its name
AnyPlanner = Planner | Reasoner | AnyModel | None
AnyExtractor = Extractor | AnyModel | None
AnyAnswerer = Answerer | AnyModel | None
AnyRewriter = Rewriter | AnyModel | None
AnyReranker = Reranker | AnyModel | None
AnyRetriever = Retriever | BaseRetriever | VectorStore | BaseTool | str | None
AnyIndex = (
    PassageIndex
    | str
    | Path
    | Address
    | Iterable[Text]
    | BaseRetriever
    | VectorStore
    | None
)
AnyCheckpointer = BaseCheckpointSaver[Any] | bool | None

DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Preset:
    """Sets how a loop behaves in points where papers and this package differ. `PRESETS` holds the presets by
    name.
    """

    early_stops: bool = True
    """Whether a repeated sub-query or a hop without new facts ends the loop."""
    bounded: bool = True
    """Whether the number of facts in the graph is bounded."""
    may_abstain: bool = True
    """Whether the answerer may abstain."""
    layout: EvidenceLayout | None = None
    """How planner and answerer are shown the evidence; None if each role decides."""
    follows_any: bool = False
    """Whether a planner's reply that states no action, even when asked again, is used as the next sub-query."""
    from_memory: bool = False
    """Whether a plan of [NO_RETRIEVAL] leads to an answer from the model's memory."""
    asks_anyway: bool = False
    """Whether the answerer is asked, for its model's knowledge, even if searches found nothing. Comparisons of agents
    need this, so that all agents are asked."""
    falls_back: bool = True
    """Whether an offline role may take over a step after an unreadable reply, unless a setting decides."""
    on_conflict: OnConflict = "both"
    """How an answer states claims on which documents disagree."""

    def limits(self, limits: Limits) -> Limits:
        """Return `limits` with the fields that the preset fixes."""
        if not self.early_stops:
            limits = replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)
        if self.bounded:
            return limits
        return replace(limits, max_facts=sys.maxsize)


DEFAULT_PRESET = Preset()
PRESETS = {
    "default": DEFAULT_PRESET,
    # RAS as published: only the planner or the fifth hop ends the loop, the graph is not bounded, planner and answerer
    # read each sub-query with all its facts and no passages, the answerer never abstains, [NO_RETRIEVAL] is obeyed
    "paper": Preset(
        early_stops=False,
        bounded=False,
        may_abstain=False,
        layout="chain",
        follows_any=True,
        from_memory=True,
        falls_back=False,
        on_conflict="ignore",
    ),
}


def preset_named(name: str | Preset | None, **changes: Any) -> Preset:
    """Return the preset with this name, or the default one, with the fields in `changes` that are not None
    replaced.

    Raises:
        UnknownName: if there is no preset of this name.
    """
    preset: Preset | None
    if isinstance(name, Preset):
        preset = name
    else:
        preset = PRESETS.get(name or "default")
    if preset is None:
        raise UnknownName("preset", str(name), tuple(PRESETS))
    return replace(preset, **without_none(changes))


class AgentArguments(TypedDict, total=False):
    """Lists the keyword arguments of `create_ras_agent` and its siblings. All of them may be left out.

    An argument overrides the field of `settings` with the same name. Without either, `Settings` has the default:
    offline roles over BM25.
    """

    index: AnyIndex
    """The texts to search: an open index, the path or address of one, or a list of texts, which are indexed in memory
    (each a text, a Passage, a dictionary or a LangChain document). Or a LangChain vector store or retriever, which is
    searched directly."""
    llm: AnyModel | None
    """The model of every role for which no argument is given: a chat model, a runnable around one, or a string."""
    planner: AnyPlanner
    """An object that fits the protocol, a chat model or a runnable around one, or a string (see ras_agent.tools.roles);
    in IRCoT a Reasoner."""
    answerer: AnyAnswerer
    """An object, a chat model or a string, as for `planner`."""
    extractor: AnyExtractor
    """As `planner`. By default it follows the planner if that is a model or a registered extractor; otherwise it is the
    offline extractor."""
    retriever: AnyRetriever
    """An object, or the name of a registered retriever over `index`; each run sees the index as of its last commit."""
    reranker: AnyReranker
    """Ranks the hits of the retriever again; a string has the form of `--reranker`."""
    rewriter: AnyRewriter
    """Rewrites a follow-up question so that it can be understood without its conversation; a first question costs
    nothing. By default it follows the planner if that is a model; otherwise it rewrites by rules."""
    tools: Sequence[AnyTool] | None
    """The tools that a planner may call: names of tools (search, neighbours, paths, read, finish), names of retrievers,
    each of which becomes a separate tool, and LangChain tools that take a query. By default all tools that the index
    can serve. Only ReAct has tools."""
    limits: Limits | None
    """The limits of every run, unless `invoke(..., context=Limits(...))` gives others."""
    preset: str | Preset | None
    """"paper" is the published loop. A planner or answerer that is given as an object decides itself what it shows its
    model and whether it abstains. A custom Preset is accepted too. Only RAS has presets."""
    checkpointer: AnyCheckpointer
    """A LangGraph checkpointer, which remembers the conversation of each thread."""
    store: BaseStore | None
    """A LangGraph Store, which keeps the facts found on each user's thread for the next question there. `configurable`
    of the run names user and thread: user_id, thread_id."""
    review: Sequence[str] | str | None
    """Where a run waits for a person: any of "plan", "facts" and "answer" (ras_agent.running.review describes what is shown
    and decided there). This requires a checkpointer."""
    settings: Settings | None
    """Everything that the command line can set (docs/settings.md)."""
    task: str
    """A task's own instruction, which roles on chat models add to their prompts."""
    name: str
    """The name by which a supervisor, Studio or a trace distinguishes the agent from others; by default that of the
    graph."""
    brief: bool
    """Whether the agent's input is only a question, and its output only answer, citations and abstention. This is for
    servers that make a tool from an agent's schemas, as LangGraph Server's /mcp does. State and events are the same."""


@dataclass(frozen=True, slots=True)
class AgentParts:
    """Holds an agent's parts, ready to be assembled, once or several times with some parts replaced."""

    graph: str
    """The registered name of the graph."""
    planner: Any
    """The planner, of the kind that the graph needs, such as IRCoT's Reasoner; None in a graph without planning."""
    extractor: Any
    """None in a graph that reads no facts."""
    answerer: Answerer
    retriever: Retriever
    tools: tuple[Tool, ...] = ()
    """The tools that the planner is offered; () in a graph without tool calls."""
    retrievers: Mapping[str, Retriever] = field(default_factory=dict)
    """The retrievers that a plan may choose instead of `retriever`, by name."""
    limits: Limits = DEFAULT_LIMITS
    preset: Preset = DEFAULT_PRESET
    review: tuple[Place, ...] = ()
    """The places where a run waits for a person."""
    rewriter: Rewriter | None = None
    """None if follow-up questions are asked unchanged."""
    store: BaseStore | None = None
    """Holds the facts that each thread has found."""
    pruner: FactPruner | None = None
    """Chooses the facts that planner and answerer are shown; None if they are shown all facts."""
    judge: Judge | None = None
    """Tells whether a cited sentence supports a yes or a no; None if that is left open."""
    functional: Functional = not_known
    """Tells which relations have one object for a subject, so that documents disagree if they give two."""
    sureness: Sureness = ANY_SURENESS
    """How an answer's confidence is computed, and how high it has to be."""
    role_names: Mapping[str, str] = field(default_factory=dict)
    """The name of the component in each role, for traces."""
    fallbacks: Mapping[str, Any] = field(default_factory=dict)
    """The component that takes over a step of planner, extractor or answerer after an unreadable reply of its model."""
    name: str = ""
    """As in AgentArguments."""
    brief: bool = False
    """As in AgentArguments."""
