"""Implements IRCoT: it searches with the last sentence of a chain of thought, writes the next sentence, and so
on until a sentence answers.

Interleaving Retrieval with Chain-of-Thought Reasoning (Trivedi et al., 2023), with any retriever.
"""

from __future__ import annotations

from typing_extensions import Unpack

from ras_agent.graphs import decide, nodes
from ras_agent.graphs import review as reviews
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.assembly import AgentGraph
from ras_agent.graphs.parts import AgentArguments, AgentParts, AnyCheckpointer
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.review import PLACES


def create_ircot_agent(**arguments: Unpack[AgentArguments]) -> Agent:
    """Make an IRCoT agent, a compiled LangGraph graph.

    Arguments, input and output are as for `create_ras_agent`, except:

    Args:
        planner: a Reasoner, a chat model, or a string.
        answerer: reads the union of the passages.
        extractor: facts are read, hop by hop, only if an extractor is given or if the answerer is the offline one,
            which answers from facts; otherwise the question graph stays empty.
        limits: `max_hops` counts retrievals including the one with the question; a published step limit counts
            sentences and is one less. The published settings (2 steps for HotpotQA and 2Wiki, 4 for MuSiQue, 10
            passages) are `Limits(max_hops=3, k=10)` and `Limits(max_hops=5, k=10)`.
        preset: not accepted; only RAS has presets.
        review: at facts only if facts are read. The first search has no plan to review, because it is for the
            question.
    """
    return create_agent("ircot", **arguments)


def assemble_ircot(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Assemble the parts into the IRCoT loop. Without an extractor it reads no facts."""
    graph = AgentGraph(parts)
    more_steps = reviews.more_steps(parts)
    structured = parts.extractor is not None
    graph.add_beginning("reason", least_steps=nodes.LEAST_STEPS + more_steps)
    reason = decide.reason(
        parts.planner,
        structured=structured,
        more_steps=more_steps,
        fallback=parts.fallbacks.get("planner"),
    )
    graph.add_body("reason", reason)
    graph.add_body("retrieve", nodes.retrieve(parts.retriever))
    graph.add_body("merge", nodes.merge(thinking=True))
    graph.add_answer()
    if structured:
        graph.add_body(
            "structure",
            nodes.structure(parts.extractor, parts.fallbacks.get("extractor")),
        )

    graph.add_edge("retrieve", "structure" if structured else "merge")
    graph.add_edge("merge", "reason")
    # reason -> retrieve or answer, structure -> merge, answer -> END
    reviews.add_edges(graph, parts, decides="reason")
    return graph.agent(checkpointer)


IRCOT = GraphSpec(
    assemble_ircot, planner="reasoner", facts="if needed", style="reader", review=PLACES
)
