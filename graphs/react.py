"""ReAct: a model that calls tools searches, explores the results, and says when it has enough.

ReAct: Synergizing Reasoning and Acting in Language Models (Yao et al., 2023), over the same retriever, extractor,
question graph and answerer as the other loops.
"""

from __future__ import annotations

from typing_extensions import Unpack

from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import AgentArguments, AgentParts, AnyCheckpointer
from ras_agent.graphs.ras import planning_loop
from ras_agent.graphs.registry import GraphSpec
from ras_agent.graphs.resolve import create_agent
from ras_agent.review import PLACES
from ras_agent.tools.plan.tool_planner import tool_planner


def create_react_agent(**arguments: Unpack[AgentArguments]) -> Agent:
    """Make an agent with a planner that calls tools, a compiled LangGraph graph.

    Arguments, input and output are as for `create_ras_agent`, except:

    Args:
        planner: a chat model that can call tools, or a string. The answerer writes the answer, with its citations.
        tools: by default `search`, `neighbours` (the facts of the question's graph about an entity), `read` (the
            whole text of a passage that was found) and `finish`. Over an index with vectors or a graph, `search`
            has the argument `retriever`, and over one with a graph `neighbours` and `paths` search it. Only a
            search is a hop, and only its facts join the graph; the other tools are answered at once.
        preset: not accepted; only RAS has presets.

    Raises:
        SettingsError: without a model, or for a model that cannot call tools.
    """
    return create_agent("react", **arguments)


def assemble_react(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Assemble the parts into the loop of RAS, with the first search already in the planner's words."""
    return planning_loop(parts, checkpointer, planner_writes_first_query=True)


REACT = GraphSpec(assemble_react, planner=tool_planner, review=PLACES, tools=True)
