"""IRCoT: retrieve with the last sentence of a chain of thought, write the next sentence, and read an answer at the end.

Interleaving Retrieval with Chain-of-Thought Reasoning (Trivedi et al., 2023), with any retriever.
"""

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
    AnyReasoner,
    AnyRetriever,
    needs_facts,
)
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.state import Beginning
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor, resolve_reasoner, role_name


def create_ircot_agent(
    *,
    planner: AnyReasoner = "offline",
    answerer: AnyAnswerer = "offline",
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = "bm25",
    index: AnyIndex = None,
    limits: Limits = DEFAULT_LIMITS,
    checkpointer: AnyCheckpointer = None,
) -> Agent:
    """Make an IRCoT agent, a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    planner: a Reasoner, a chat model, or a string. answerer: the reader of the union of passages. extractor: facts are
    read, hop by hop, if one is given or the answerer is the offline one, which answers from facts; else the graph
    stays empty. `limits.max_hops` counts retrievals, that with the question included; a published step limit counts
    sentences and is one less. The published settings (2 steps for HotpotQA and 2Wiki, 4 for MuSiQue, 10 passages) are
    `Limits(max_hops=3, k=10)` and `Limits(max_hops=5, k=10)`.
    """
    if extractor is None and needs_facts(answerer):
        extractor = role_name(answerer)
    structured = extractor is not None

    graph = AgentGraph(limits)
    graph.add_body("begin", nodes.begin(), reads=Beginning)
    graph.add_body("reason", decide.reason(resolve_reasoner(planner), structured=structured))
    graph.add_body("retrieve", nodes.retrieve(resolve_retriever(retriever, index)))
    graph.add_body("merge", nodes.merge(thinking=True))
    graph.add_body("answer", nodes.answer(resolve_answerer(answerer, style="reader")))
    if structured:
        graph.add_body("structure", nodes.structure(resolve_extractor(extractor)))

    graph.add_edge(START, "begin")
    graph.add_edge("begin", "reason")
    graph.add_conditional_edges("reason", decide.retrieve_or_answer)
    if structured:
        graph.add_edge("retrieve", "structure")
        graph.add_edge("structure", "merge")
    else:
        graph.add_edge("retrieve", "merge")
    graph.add_edge("merge", "reason")
    graph.add_edge("answer", END)
    return graph.agent("ircot", checkpointer)


IRCOT = GraphSpec(create_ircot_agent, planner="reasoner", facts="if needed", style="reader")
