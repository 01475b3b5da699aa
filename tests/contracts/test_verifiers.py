"""verifiers (v1) itself: tasks are loaded, tools are served by its MCP server, rewards are recorded on its traces."""

from __future__ import annotations

from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1")
from mcp.server.mcpserver import MCPServer  # noqa: E402

from examples.verifiers_graph_search import (  # noqa: E402
    GraphState,
    GraphTask,
    GraphTaskset,
    GraphTasksetConfig,
    GraphTools,
)


@pytest.fixture
def task() -> Any:
    return next(iter(GraphTaskset(GraphTasksetConfig(id="graph-search"))))


def test_questions_are_tasks(task: Any) -> None:
    assert task.data.prompt == "Question: In which city was the inventor of dynamite born?"
    assert task.data.system_prompt.startswith("You research one question with tools")
    assert GraphTaskset.task_type() is GraphTask
    assert task.key  # what a trace records


async def test_tools_are_served_and_the_task_is_rewarded(task: Any) -> None:
    (tools,) = task.toolsets(task.config)
    assert isinstance(tools, GraphTools)
    await tools.setup()
    await tools.setup_task(task.data)
    server = MCPServer("graph")
    tools.register(server)
    offered = {tool.name: tool for tool in await server.list_tools()}
    assert sorted(offered) == ["finish", "neighbours", "read", "search"]
    assert "Search the texts" in (offered["search"].description or "")
    # verifiers' host keeps the state between calls; here the server's own takes its place
    assert "[2] Alfred Nobel" in tools.search("Who invented dynamite?")
    tools.finish("known", "Stockholm [2]")
    state = tools.state
    assert isinstance(state, GraphState)
    assert state.parts == {"f1": 1.0, "gold": 1.0, "form": 1.0}
    agent = vf.AgentInfo(config=vf.AgentConfig(model="scripted"))
    trace = vf.Trace(task=vf.TraceTask(type="GraphTask", data=task.data), agent=agent, state=state)
    await task.score(trace)
    assert trace.reward == pytest.approx(2.1)
    assert trace.metrics == {"f1": 1.0, "gold": 1.0, "form": 1.0}
