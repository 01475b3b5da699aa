"""IRCoT: retrieve with the last sentence of a chain of thought, write the next sentence, and read an answer at the end.

Interleaving Retrieval with Chain-of-Thought Reasoning (Trivedi et al., 2023), with any retriever.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore

from ras_agent.budget import Limits
from ras_agent.graphs import decide, nodes
from ras_agent.graphs import review as reviews
from ras_agent.graphs.assembly import (
    Agent,
    AgentGraph,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyReasoner,
    AnyRetriever,
    AnyRewriter,
)
from ras_agent.graphs.from_settings import roles_of
from ras_agent.graphs.registry import GraphSpec
from ras_agent.review import PLACES
from ras_agent.settings import Settings


def create_ircot_agent(
    *,
    index: AnyIndex = None,
    planner: AnyReasoner = None,
    answerer: AnyAnswerer = None,
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = None,
    rewriter: AnyRewriter = None,
    limits: Limits | None = None,
    preset: str | None = None,
    checkpointer: AnyCheckpointer = None,
    store: BaseStore | None = None,
    review: Sequence[str] | None = None,
    settings: Settings | None = None,
    task: str = "",
) -> Agent:
    """Make an IRCoT agent, a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    planner: a Reasoner, a chat model, or a string. answerer: the reader of the union of passages. extractor: facts are
    read, hop by hop, if one is given or the answerer is the offline one, which answers from facts; else the graph
    stays empty. `limits.max_hops` counts retrievals, that with the question included; a published step limit counts
    sentences and is one less. The published settings (2 steps for HotpotQA and 2Wiki, 4 for MuSiQue, 10 passages) are
    `Limits(max_hops=3, k=10)` and `Limits(max_hops=5, k=10)`.
    preset: none; a preset is RAS's. review: at facts only if facts are read; there is no plan for the first search,
    which is the question's.
    """
    roles = roles_of("ircot", settings, index, task, planner=planner, extractor=extractor, answerer=answerer,
                     retriever=retriever, rewriter=rewriter, limits=limits, preset=preset,
                     review=review, store=store)  # fmt: skip
    structured = roles.extractor is not None

    graph = AgentGraph(roles.limits)
    more = reviews.more_steps(roles)
    begin = nodes.begin(least_steps=nodes.LEAST_STEPS + more + bool(roles.memory), reviewed=bool(roles.review))
    graph.add_beginning(begin, roles.rewriter, "reason", roles.memory)
    graph.add_body("reason", decide.reason(roles.planner, structured=structured, more_steps=more))
    graph.add_body("retrieve", nodes.retrieve(roles.retriever))
    graph.add_body("merge", nodes.merge(thinking=True))
    graph.add_body("answer", nodes.answer(roles.answerer, roles.memory))
    if roles.extractor is not None:
        graph.add_body("structure", nodes.structure(roles.extractor))

    graph.add_edge("retrieve", "structure" if structured else "merge")
    graph.add_edge("merge", "reason")
    # reason -> retrieve or answer, structure -> merge, answer -> END
    reviews.add_edges(graph, roles, decides="reason")
    return graph.agent("ircot", checkpointer)


IRCOT = GraphSpec(create_ircot_agent, planner="reasoner", facts="if needed", style="reader", review=PLACES)
