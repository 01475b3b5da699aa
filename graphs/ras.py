"""Implements the RAS loop: it plans, retrieves, structures and merges, until the question's graph holds the
answer.
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


def create_ras_agent(**arguments: Unpack[AgentArguments]) -> Agent:
    """Make the agent of the RAS paper, a compiled LangGraph graph.

    ras_agent.graphs.parts.AgentArguments describes the arguments, ras_agent.graphs.state.Inputs and Outputs the
    input and the output. If a tool fails during a run, the output's `failures` list it. Mistakes in code and
    set-up are raised instead (see ras_agent.graphs.node.RAISED).

    Raises:
        RasError: a subclass of it, for an argument that cannot be resolved.
    """
    return create_agent("ras", **arguments)


def planning_loop(
    parts: AgentParts,
    checkpointer: AnyCheckpointer = None,
    *,
    static: bool = False,
    planner_writes_first_query: bool = False,
) -> Agent:
    """Return the agent of a loop in which a planner chooses each search.

    Args:
        static: whether the loop accepts `static_passages`.
        planner_writes_first_query: whether the first search is in the planner's own words.
    """
    graph = AgentGraph(parts)
    more_steps = reviews.more_steps(parts)
    graph.add_beginning(
        "plan", least_steps=nodes.LEAST_STEPS + more_steps, static=static
    )
    plan = decide.plan(
        parts.planner,
        parts.pruner,
        from_memory=parts.preset.from_memory,
        planner_writes_first_query=planner_writes_first_query,
        more_steps=more_steps,
        fallback=parts.fallbacks.get("planner"),
    )
    graph.add_body("plan", plan)
    graph.add_body("retrieve", nodes.retrieve(parts.retriever, parts.retrievers))
    graph.add_body(
        "structure", nodes.structure(parts.extractor, parts.fallbacks.get("extractor"))
    )
    graph.add_body("merge", nodes.merge())
    graph.add_answer()

    graph.add_edge("retrieve", "structure")
    graph.add_edge("merge", "plan")
    # plan -> retrieve or answer, structure -> merge, answer -> END
    reviews.add_edges(graph, parts, decides="plan")
    return graph.agent(checkpointer)


def assemble_ras(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Assemble the parts into the RAS loop."""
    return planning_loop(parts, checkpointer, static=True)


RAS = GraphSpec(assemble_ras, static=True, presets=True, review=PLACES)
