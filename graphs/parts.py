"""The makings of an agent: the arguments that a caller may give, the parts that they become, and presets."""

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

from ras_agent.address import Address
from ras_agent.budget import Limits
from ras_agent.errors import UnknownName
from ras_agent.graphs.toolset import AnyTool
from ras_agent.protocols import (
    Answerer,
    Extractor,
    Judge,
    Planner,
    Reasoner,
    Reranker,
    Retriever,
    Rewriter,
)
from ras_agent.records import EvidenceLayout, OnConflict
from ras_agent.review import Place
from ras_agent.settings import Settings
from ras_agent.tools.graph_tokens.fact_orders import FactPruner
from ras_agent.tools.index.given import Text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.plan.graph_tools import Tool

# the forms in which a user may write each part of an agent
AnyModel = Runnable[Any, Any] | str  # a chat model, or a runnable around one
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
    """Properties of the loop that a preset fixes, whatever the limits are.

    early_stops: whether a repeated sub-query or a hop without new facts ends the loop. bounded: whether the graph is.
    may_abstain: whether the answerer may. layout: the evidence that planner and answerer are shown; None for their own.
    follows_any: whether a reply that states no plan is the next search. from_memory: whether a plan of [NO_RETRIEVAL]
    leads to an answer from the model's memory. asks_anyway: whether the answerer is asked, for its model's knowledge,
    where a search found nothing that it can be shown; comparisons of agents need it, so that all of them are asked.
    falls_back: whether an offline role may play a step after an unreadable model, unless a setting says.
    on_conflict: what an answer says on which documents disagree.
    """

    early_stops: bool = True
    bounded: bool = True
    may_abstain: bool = True
    layout: EvidenceLayout | None = None
    follows_any: bool = False
    from_memory: bool = False
    asks_anyway: bool = False
    falls_back: bool = True
    on_conflict: OnConflict = "both"

    def limits(self, limits: Limits) -> Limits:
        """Return `limits` with the preset's properties set."""
        if not self.early_stops:
            limits = replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)
        if self.bounded:
            return limits
        return replace(limits, max_facts=sys.maxsize)


DEFAULT_PRESET = Preset()
PRESETS = {
    "default": DEFAULT_PRESET,
    # RAS as published: only the planner or the fifth hop ends the loop, the graph has no bound, planner and answerer
    # read each sub-query with all its facts and no passages, an answer is given, [NO_RETRIEVAL] is obeyed
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
    """Return the preset `name` with `changes` that are not None; without a name the default. Raises UnknownName."""
    preset: Preset | None
    if isinstance(name, Preset):
        preset = name
    else:
        preset = PRESETS.get(name or "default")
    if preset is None:
        raise UnknownName("preset", str(name), tuple(PRESETS))
    return replace(
        preset,
        **{field: value for field, value in changes.items() if value is not None},
    )


class AgentArguments(TypedDict, total=False):
    """The keyword arguments of `create_ras_agent` and its siblings, all of which may be left out.

    One that is given wins over its field of `settings`; the rest is the default of `Settings`: offline roles
    over BM25.
    """

    index: AnyIndex
    """where to search: an open index, the path or address of one, or a list of texts, which are indexed in memory (each
    a text, a Passage, a dictionary or a LangChain document); or a LangChain vector store or retriever, which is
    searched as it is"""
    llm: AnyModel | None
    """the model of every role that is not given itself: a chat model, a runnable around one, or a string"""
    planner: AnyPlanner
    """an object that fits the protocol, a chat model or a runnable around one, or a string (ras_agent.tools.roles);
    in IRCoT it is a Reasoner"""
    answerer: AnyAnswerer
    """as `planner`"""
    extractor: AnyExtractor
    """as `planner`; one that nobody names follows the planner if that is a model or a registered extractor, else it is
    the offline one"""
    retriever: AnyRetriever
    """an object, or a registered name over `index`, which each run sees as of its last commit"""
    reranker: AnyReranker
    """ranks the hits of the retriever again; a string is as `--reranker` has it"""
    rewriter: AnyRewriter
    """completes a conversation's next question from its turns; a first question costs nothing; like the extractor it
    follows the planner, and else completes it by rule"""
    tools: Sequence[AnyTool] | None
    """what a planner that calls tools may do: names of tools (search, neighbours, paths, read, finish), names of
    retrievers, each of which is then a tool of its own, and LangChain tools that take a query; by default all that the
    index can serve. Only ReAct has tools"""
    limits: Limits | None
    """of every run, unless `invoke(..., context=Limits(...))` gives others"""
    preset: str | Preset | None
    """"paper" is the loop that was published; a planner or answerer given as an object decides itself what it shows its
    model and whether it abstains. A Preset of your own is taken too. Only RAS has presets"""
    checkpointer: AnyCheckpointer
    """a LangGraph checkpointer, which remembers the conversation of each thread"""
    store: BaseStore | None
    """a LangGraph Store in which each user's thread keeps the facts that it has found, for its next question there;
    whose they are is said by `configurable` of the run: user_id, thread_id"""
    review: Sequence[str] | str | None
    """where a run waits for a person: any of "plan", "facts" and "answer" (ras_agent.review has what is shown and
    decided there). A checkpointer is then needed"""
    settings: Settings | None
    """everything that the command line can set (docs/settings.md)"""
    task: str
    """a task's own instruction, which the roles on chat models show"""
    name: str
    """the agent's own name, by which a supervisor, Studio or a trace tells it from others; if not given, the graph's"""
    brief: bool
    """whether one question is all of its input, and answer, citations and abstention all of its output, for servers
    that make a tool of an agent's schemas, as LangGraph Server's /mcp does; its state and its events are the same"""


@dataclass(frozen=True, slots=True)
class AgentParts:
    """An agent's parts, ready to be put together, once or with some of them replaced.

    graph: a registered name.
    planner: of the graph's own kind, such as IRCoT's Reasoner; None in a graph that plans nothing.
    extractor: None in a graph that reads no facts.
    tools: those that a planner is offered; () in a graph whose planner calls none.
    retrievers: those that a plan may name, in place of `retriever`.
    review: where a run waits for a person.
    rewriter: None where a conversation's follow-up questions stay as they are.
    store: of the facts that each thread has found.
    pruner: chooses the facts that planner and answerer are shown; None where they are shown all.
    judge: tells whether a cited sentence bears a yes or a no; None where that is left open.
    role_names: who plays which role, for traces.
    fallbacks: who plays a step of planner, extractor or answerer where no reply of its model could be read.
    name, brief: as in AgentArguments.
    """

    graph: str
    planner: Any
    extractor: Any
    answerer: Answerer
    retriever: Retriever
    tools: tuple[Tool, ...] = ()
    retrievers: Mapping[str, Retriever] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    preset: Preset = DEFAULT_PRESET
    review: tuple[Place, ...] = ()
    rewriter: Rewriter | None = None
    store: BaseStore | None = None
    pruner: FactPruner | None = None
    judge: Judge | None = None
    role_names: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    brief: bool = False
