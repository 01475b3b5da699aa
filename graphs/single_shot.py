"""Single-shot: retrieve with the question, structure, answer. The baseline that a loop has to beat."""

from __future__ import annotations

from langgraph.graph import END, START

from ras_agent.budget import Limits
from ras_agent.graphs import nodes
from ras_agent.graphs.assembly import (
    DEFAULT_LIMITS,
    Agent,
    AgentGraph,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyRetriever,
    matching_extractor,
)
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.state import Beginning
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor


def create_single_shot_agent(
    *,
    answerer: AnyAnswerer = "offline",
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = "bm25",
    index: AnyIndex = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: AnyCheckpointer = None,
) -> Agent:
    """Make an agent of one hop, a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    The extractor follows the answerer, as there is no planner.
    """
    extract = resolve_extractor(matching_extractor(answerer) if extractor is None else extractor)

    graph = AgentGraph(limits)
    graph.add_body("begin", nodes.begin(least_steps=5, stop_reason="single_shot"), reads=Beginning)
    graph.add_body("retrieve", nodes.retrieve(resolve_retriever(retriever, index)))
    graph.add_body("structure", nodes.structure(extract))
    graph.add_body("merge", nodes.merge())
    graph.add_body("answer", nodes.answer(resolve_answerer(answerer)))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "retrieve")
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "answer")
    graph.add_edge("answer", END)
    return graph.agent("single-shot", checkpointer)


SINGLE_SHOT = GraphSpec(create_single_shot_agent, planner=None)
