"""IRCoT: retrieve with the last sentence of a chain of thought, write the next sentence, and read an answer at the end.

Interleaving Retrieval with Chain-of-Thought Reasoning (Trivedi et al., 2023), with any retriever.
"""

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
    needs_facts,
    new_graph,
    node_maker,
)
from ras_agent.graphs.presets import preset_named
from ras_agent.graphs.rehydrate import Records
from ras_agent.graphs.routes import retrieve_or_answer
from ras_agent.graphs.state import Beginning
from ras_agent.protocols import Answerer, Extractor, Reasoner, Retriever
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor, resolve_reasoner, role_name

__all__ = ["create_ircot_agent"]


def create_ircot_agent(
    *,
    planner: Reasoner | BaseChatModel | str = "offline",
    answerer: Answerer | BaseChatModel | str = "offline",
    extractor: Extractor | BaseChatModel | str | None = None,
    retriever: Retriever | BaseRetriever | str = "bm25",
    index: Index = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: Checkpointer = None,
) -> Agent:
    """An IRCoT agent as a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    planner: a Reasoner, a chat model, or a string. answerer: the reader of the union of passages. extractor: facts are
    read, hop by hop, if one is given or the answerer is the offline one, which answers from facts; else the graph
    stays empty. `limits.max_hops` is the step limit (published settings: 2 for HotpotQA and 2Wiki, 4 for MuSiQue).
    """
    records = Records()
    node = node_maker(limits, records, preset_named(None))
    if extractor is None and needs_facts(answerer):
        extractor = role_name(answerer)
    reasoner = resolve_reasoner(planner)

    graph = new_graph()
    graph.add_node("begin", node(nodes.begin(records)), input_schema=Beginning)
    graph.add_node("reason", node(deciders.reason(reasoner, records, structured=extractor is not None)))
    graph.add_node("retrieve", node(nodes.retrieve(resolve_retriever(retriever, index), records)))
    graph.add_node("merge", node(nodes.merge(records, thinking=True)))
    graph.add_node("answer", node(nodes.answer(resolve_answerer(answerer, style="reader"), records)))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "reason")
    graph.add_conditional_edges("reason", retrieve_or_answer)
    if extractor is None:
        graph.add_edge("retrieve", "merge")
    else:
        graph.add_node("structure", node(nodes.structure(resolve_extractor(extractor), records)))
        graph.add_edge("retrieve", "structure")
        graph.add_edge("structure", "merge")
    graph.add_edge("merge", "reason")
    graph.add_edge("answer", END)
    return compiled(graph, "ircot", checkpointer)
