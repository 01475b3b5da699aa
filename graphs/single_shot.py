"""Implements the single-shot loop, which retrieves once with the question: the baseline for the other loops."""

from __future__ import annotations

from typing_extensions import Unpack

from ras_agent.graphs import nodes
from ras_agent.graphs import review as reviews
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.assembly import AgentGraph
from ras_agent.graphs.parts import AgentArguments, AgentParts, AnyCheckpointer
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.resolve import create_agent

# begin, retrieve, structure, merge, answer
_STEPS = 5


def create_single_shot_agent(**arguments: Unpack[AgentArguments]) -> Agent:
    """Make an agent that searches once, a compiled LangGraph graph.

    Arguments, input and output are as for `create_ras_agent`, except:

    Args:
        planner: ignored; it is accepted so that all factories take the same arguments. The extractor follows
            the answerer.
        preset: not accepted; only RAS has presets.
        review: at facts and answer.
    """
    return create_agent("single-shot", **arguments)


def assemble_single_shot(
    parts: AgentParts, checkpointer: AnyCheckpointer = None
) -> Agent:
    """Assemble the parts into a graph of one hop."""
    graph = AgentGraph(parts)
    graph.add_beginning(
        "retrieve",
        least_steps=_STEPS + reviews.more_steps(parts),
        stop_reason="single_shot",
    )
    graph.add_body("retrieve", nodes.retrieve(parts.retriever))
    graph.add_body(
        "structure", nodes.structure(parts.extractor, parts.fallbacks.get("extractor"))
    )
    graph.add_body("merge", nodes.merge())
    graph.add_answer()

    graph.add_edge("retrieve", "structure")
    graph.add_edge("merge", "answer")
    reviews.add_edges(graph, parts)  # structure -> merge, answer -> END
    return graph.agent(checkpointer)


SINGLE_SHOT = GraphSpec(assemble_single_shot, planner=None, review=("facts", "answer"))
