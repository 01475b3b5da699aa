"""Single-shot: retrieve with the question, structure, answer. The baseline that a loop has to beat."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START

from ras_agent.budget import Limits
from ras_agent.graphs import nodes
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
from ras_agent.graphs.state import Beginning
from ras_agent.protocols import Answerer, Extractor, Retriever
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor

__all__ = ["create_single_shot_agent"]


def create_single_shot_agent(
    *,
    answerer: Answerer | BaseChatModel | str = "offline",
    extractor: Extractor | BaseChatModel | str | None = None,
    retriever: Retriever | BaseRetriever | str = "bm25",
    index: Index = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: Checkpointer = None,
) -> Agent:
    """One hop as a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    The extractor follows the answerer, as there is no planner.
    """
    records = Records()
    node = node_maker(limits, records, preset_named(None))
    extract = resolve_extractor(extractor_beside(answerer) if extractor is None else extractor)

    graph = new_graph()
    begin = nodes.begin(records, least_steps=5, stop_reason="single_shot")
    graph.add_node("begin", node(begin), input_schema=Beginning)
    graph.add_node("retrieve", node(nodes.retrieve(resolve_retriever(retriever, index), records)))
    graph.add_node("structure", node(nodes.structure(extract, records)))
    graph.add_node("merge", node(nodes.merge(records)))
    graph.add_node("answer", node(nodes.answer(resolve_answerer(answerer), records)))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "retrieve")
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "answer")
    graph.add_edge("answer", END)
    return compiled(graph, "single_shot", checkpointer)
