"""Single-shot: retrieve with the question, structure, answer. The baseline that a loop has to beat."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore

from ras_agent.budget import Limits
from ras_agent.graphs import nodes
from ras_agent.graphs import review as reviews
from ras_agent.graphs.assembly import (
    Agent,
    AgentGraph,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyPlanner,
    AnyRetriever,
    AnyRewriter,
)
from ras_agent.graphs.from_settings import roles_of
from ras_agent.graphs.registry import GraphSpec
from ras_agent.settings import Settings


def create_single_shot_agent(
    *,
    index: AnyIndex = None,
    planner: AnyPlanner = None,
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
    """Make an agent of one hop, a compiled LangGraph graph; parameters, input and output as for `create_ras_agent`.

    planner: taken so that the three factories take the same arguments, and unused, for nothing is planned; the
    extractor follows the answerer. preset: none; a preset is RAS's. review: at facts and answer.
    """
    roles = roles_of("single-shot", settings, index, task, planner=planner, extractor=extractor, answerer=answerer,
                     retriever=retriever, rewriter=rewriter, limits=limits, preset=preset,
                     review=review, store=store)  # fmt: skip
    graph = AgentGraph(roles.limits)
    steps, waits = 5 + reviews.more_steps(roles) + bool(roles.memory), bool(roles.review)
    begin = nodes.begin(least_steps=steps, stop_reason="single_shot", reviewed=waits)
    graph.add_beginning(begin, roles.rewriter, "retrieve", roles.memory)
    graph.add_body("retrieve", nodes.retrieve(roles.retriever))
    graph.add_body("structure", nodes.structure(roles.extractor))
    graph.add_body("merge", nodes.merge())
    graph.add_body("answer", nodes.answer(roles.answerer, roles.memory))

    graph.add_edge("retrieve", "structure")
    graph.add_edge("merge", "answer")
    reviews.add_edges(graph, roles)  # structure -> merge, answer -> END
    return graph.agent("single-shot", checkpointer)


SINGLE_SHOT = GraphSpec(create_single_shot_agent, planner=None, review=("facts", "answer"))
