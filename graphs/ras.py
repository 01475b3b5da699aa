"""RAS: plan, retrieve, structure, merge, and plan again, until the question's graph holds the answer."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START

from ras_agent.budget import Limits
from ras_agent.graphs import deciders, nodes
from ras_agent.graphs.assembly import (
    DEFAULT_LIMITS,
    Agent,
    Checkpointer,
    Index,
    compiled,
    extractor_beside,
    new_graph,
    node_maker,
)
from ras_agent.graphs.presets import preset_named
from ras_agent.graphs.rehydrate import Records
from ras_agent.graphs.routes import retrieve_or_answer
from ras_agent.graphs.state import Beginning
from ras_agent.protocols import Answerer, Extractor, Planner, Retriever
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor, resolve_planner

__all__ = ["create_ras_agent"]


def create_ras_agent(
    *,
    planner: Planner | BaseChatModel | str = "offline",
    answerer: Answerer | BaseChatModel | str = "offline",
    extractor: Extractor | BaseChatModel | str | None = None,
    retriever: Retriever | BaseRetriever | str = "bm25",
    index: Index = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: Checkpointer = None,
    preset: str | None = None,
) -> Agent:
    """The agent of the RAS paper as a compiled LangGraph graph.

    planner, answerer, extractor: an object that fits the protocol, a chat model, or a string (see
    ras_agent.tools.roles). The extractor follows the planner if it is None and the planner names a model or a
    registered extractor, else it is the offline one. retriever: an object, or a registered name over `index` as it is
    when the agent is made.
    limits: of every run, unless `invoke(..., context=Limits(...))` gives others. preset "paper": exactly the loop that
    was published; an answerer given as an object decides itself whether it abstains.

    The input's keys are in ras_agent.graphs.state.Inputs, the output's in Outputs. A tool that fails in a run is told
    in the output's `failures`; mistakes in wiring and set-up are raised (ras_agent.graphs.node.RAISED has which).
    Raises RasError children for specs that cannot be resolved.
    """
    chosen, records = preset_named(preset), Records()
    node = node_maker(limits, records, chosen)
    extract = resolve_extractor(extractor_beside(planner) if extractor is None else extractor)
    answer = resolve_answerer(answerer, may_abstain=chosen.may_abstain)

    graph = new_graph()
    graph.add_node("begin", node(nodes.begin(records, static=True)), input_schema=Beginning)
    graph.add_node("plan", node(deciders.plan(resolve_planner(planner), records)))
    graph.add_node("retrieve", node(nodes.retrieve(resolve_retriever(retriever, index), records)))
    graph.add_node("structure", node(nodes.structure(extract, records)))
    graph.add_node("merge", node(nodes.merge(records)))
    graph.add_node("answer", node(nodes.answer(answer, records)))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "plan")
    graph.add_conditional_edges("plan", retrieve_or_answer)
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "plan")
    graph.add_edge("answer", END)
    return compiled(graph, "ras", checkpointer)
