"""RAS: plan, retrieve, structure, merge, and plan again, until the question's graph holds the answer."""

from __future__ import annotations

from langgraph.graph import END, START

from ras_agent.budget import Limits
from ras_agent.graphs import decide, nodes
from ras_agent.graphs.assembly import (
    DEFAULT_LIMITS,
    Agent,
    AgentGraph,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyPlanner,
    AnyRetriever,
    matching_extractor,
    preset_named,
)
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.state import Beginning
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor, resolve_planner


def create_ras_agent(
    *,
    planner: AnyPlanner = "offline",
    answerer: AnyAnswerer = "offline",
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = "bm25",
    index: AnyIndex = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: AnyCheckpointer = None,
    preset: str | None = None,
) -> Agent:
    """Make the agent of the RAS paper, a compiled LangGraph graph.

    planner, answerer, extractor: an object that fits the protocol, a chat model, or a string (see
    ras_agent.tools.roles). The extractor follows the planner if it is None and the planner names a model or a
    registered extractor, else it is the offline one. retriever: an object, or a registered name over `index` as it is
    when the agent is made.
    limits: of every run, unless `invoke(..., context=Limits(...))` gives others. preset "paper": the loop that was
    published; a planner or answerer given as an object decides itself what it shows its model and whether it abstains.

    The input's keys are in ras_agent.graphs.state.Inputs, the output's in Outputs. A tool that fails in a run is listed
    in the output's `failures`; mistakes in code and set-up are raised (ras_agent.graphs.node.RAISED has which).
    Raises RasError children for specs that cannot be resolved.
    """
    chosen = preset_named(preset)
    extract = resolve_extractor(matching_extractor(planner) if extractor is None else extractor)
    answer = resolve_answerer(answerer, **chosen.answering)

    graph = AgentGraph(limits, chosen)
    graph.add_body("begin", nodes.begin(static=True), reads=Beginning)
    graph.add_body("plan", decide.plan(resolve_planner(planner, **chosen.planning)))
    graph.add_body("retrieve", nodes.retrieve(resolve_retriever(retriever, index)))
    graph.add_body("structure", nodes.structure(extract))
    graph.add_body("merge", nodes.merge())
    graph.add_body("answer", nodes.answer(answer))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "plan")
    graph.add_conditional_edges("plan", decide.retrieve_or_answer)
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "plan")
    graph.add_edge("answer", END)
    return graph.agent("ras", checkpointer)


RAS = GraphSpec(create_ras_agent, static=True, presets=True)
