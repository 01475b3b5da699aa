"""verifiers (v1) itself: tasks are loaded, tools are served by its MCP server, rewards are recorded on its traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1")
from mcp.server.mcpserver import MCPServer

from examples.verifiers_graph_search import (
    GraphState,
    GraphTask,
    GraphTaskset,
    GraphTasksetConfig,
    GraphTools,
)
from tests.contracts.test_gateways import CALLED, KEY, MODEL, SPOKEN, Engine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def task() -> Any:
    return next(iter(GraphTaskset(GraphTasksetConfig(id="graph-search"))))


def test_questions_are_tasks(task: Any) -> None:
    assert (
        task.data.prompt == "Question: In which city was the inventor of dynamite born?"
    )
    assert task.data.system_prompt.startswith("You research one question with tools")
    assert GraphTaskset.task_type() is GraphTask
    assert task.key  # the records of a trace


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
    trace = vf.Trace(
        task=vf.TraceTask(type="GraphTask", data=task.data), agent=agent, state=state
    )
    await task.score(trace)
    assert trace.reward == pytest.approx(2.1)
    assert trace.metrics == {"f1": 1.0, "gold": 1.0, "form": 1.0}


def _evaluate(
    taskset: str, engine: str, folder: Path, *options: str
) -> list[dict[str, Any]]:
    """Run verifiers' own evaluation of a taskset on its first question, and return the traces that it writes."""
    paths = os.pathsep.join(map(str, (ROOT / "examples", Path(__file__).parent, ROOT)))
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "NO_PROXY": "127.0.0.1",
        "ENGINE_KEY": KEY,
    }
    program = str(Path(sys.executable).with_name("vf-eval"))
    command = [
        program,
        taskset,
        "-m",
        MODEL,
        "--client.base-url",
        engine,
        "--client.api-key-var",
        "ENGINE_KEY",
    ]
    here = ["--env.agent.runtime.type", "subprocess"]
    more = ["-n", "1", "--no-rich", "--no-push", "-o", str(folder), "--run.name", "run"]
    done = subprocess.run(
        [*command, *here, *more, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (file,) = folder.rglob("traces.jsonl")
    return [
        trace
        for line in file.read_text().splitlines()
        for trace in json.loads(line)["traces"]
    ]


def test_its_evaluation_runs_the_loop_as_a_harness(engine: str, tmp_path: Path) -> None:
    Engine.replies = SPOKEN["ras"]
    for trace in _evaluate("verifiers_rollout", engine, tmp_path):
        assert (trace["errors"], trace["metrics"]) == ([], {"f1": 1.0, "form": 1.0})
        assert trace["rewards"] == {
            "graph_search": {"score": pytest.approx(1.1), "weight": 1.0}
        }


def test_its_evaluation_serves_the_tools_to_its_own_chat_harness(
    engine: str, tmp_path: Path
) -> None:
    Engine.replies = [*CALLED, "Stockholm"]
    harness = ("--env.agent.harness.id", "plain_null")
    (trace,) = _evaluate("verifiers_graph_search", engine, tmp_path, *harness)
    assert (trace["errors"], trace["metrics"]) == (
        [],
        {"f1": 1.0, "gold": 1.0, "form": 1.0},
    )
    assert trace["rewards"]["graph_search"]["score"] == pytest.approx(2.1)
