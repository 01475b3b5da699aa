"""Implements ReAct: a model calls tools to search, explores the results, and says when it has enough.

ReAct: Synergizing Reasoning and Acting in Language Models (Yao et al., 2023), over the same retriever,
extractor, question graph and answerer as the other loops.
"""

from __future__ import annotations

from typing_extensions import Unpack

from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import AgentArguments, AgentParts, AnyCheckpointer
from ras_agent.graphs.ras import planning_loop
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.review import PLACES
from ras_agent.tools.plan.tool_planner import tool_planner


def create_react_agent(**arguments: Unpack[AgentArguments]) -> Agent:
    """Make an agent whose planner calls tools, a compiled LangGraph graph.

    Arguments, input and output are as for `create_ras_agent`, except:

    Args:
        planner: a chat model that can call tools, or a string. It does not write the answer; the answerer does.
        tools: by default `search`, `neighbours` (the facts of the question's graph about an entity), `read`
            (the whole text of a passage that was found) and `finish`. Over an index with vectors or a graph,
            `search` has the argument `retriever`, and over one with a graph `neighbours` and `paths` search it.
            Only a search counts as a hop, and only its facts join the graph; other tools reply at once.
        preset: not accepted; only RAS has presets.

    Raises:
        SettingsError: without a model, or for a model that cannot call tools.
    """
    return create_agent("react", **arguments)


def assemble_react(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Assemble the parts into the RAS loop, in which already the first search is in the planner's words."""
    return planning_loop(parts, checkpointer, planner_writes_first_query=True)


REACT = GraphSpec(assemble_react, planner=tool_planner, review=PLACES, tools=True)
