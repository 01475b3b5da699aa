"""The graphs that `langgraph dev` serves (see langgraph.json), with its Studio, threads and `/mcp`.

    pip install 'langgraph-cli[inmem]'
    langgraph dev

RAS_AGENT_INDEX names the index, RAS_AGENT_LLM the model, and so on for every setting (docs/settings.md); without an
index the bundled sample is searched, without a model the offline mode answers. The agents are brief: `/mcp` shows each
as a tool that takes one question and returns its answer with citations. A thread's state holds everything all the same.
"""

from ras_agent import create_ras_agent, create_react_agent
from ras_agent.app.sample import sample_passages
from ras_agent.config.settings import find_config, load_settings
from ras_agent.graphs.agent import Agent

SETTINGS = load_settings(find_config())
INDEX = None if SETTINGS.index else sample_passages()

ras = create_ras_agent(index=INDEX, settings=SETTINGS, brief=True)


def react() -> Agent:
    """Make the graph of a model that calls tools, which only a model can run."""
    return create_react_agent(index=INDEX, settings=SETTINGS, brief=True)


if __name__ == "__main__":
    print(ras.get_graph().draw_mermaid())
