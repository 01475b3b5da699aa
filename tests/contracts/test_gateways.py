"""Rollouts behind the real gateways that trainers put before a model.

agent-lightning 1.0's server (of its repository; it asks for Python 3.12, and runs on 3.11 too), ART's LangGraph
wrapper (openpipe-art), and the interception of verifiers 0.4. A package that is not installed is left out:

    pip install --ignore-requires-python git+https://github.com/microsoft/agent-lightning@c632d8d
    pip install openpipe-art langchain-openai verifiers
    python -m pytest tests/contracts/test_gateways.py
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

KEY = "a-key-of-the-gateway"
MODEL = "policy"
QUESTION = "In which city was the inventor of dynamite born?"
SPOKEN: dict[str, list[str]] = {
    "search-r1": [
        "<think> Who? </think>\n<search> Who invented dynamite?</search>",
        "<search> Where was Alfred Nobel born?</search>",
        "<answer> Stockholm</answer>",
    ],
    "ras": [
        "[SUBQ] Who invented dynamite?",
        "[SUBQ] Where was Alfred Nobel born?",
        "[SUFFICIENT]",
    ],
}
CALLED = [
    ("search", {"query": "Who invented dynamite?"}),
    ("search", {"query": "Where was Alfred Nobel born?"}),
    ("finish", {"reason": "known"}),
]


class Engine(BaseHTTPRequestHandler):
    """A model server with a chat template and a token for each byte, which says its replies in order.

    As vLLM does, it leaves the stop string out of the text unless it is asked not to, and keeps its tokens.
    """

    replies: ClassVar[list[Any]] = []
    requests: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        place = len(self.requests)
        self.requests.append(body)
        message = self.message(self.replies[place % len(self.replies)], place)
        prompt = "".join(map(rendered, body["messages"])) + "<assistant>"
        spoken = rendered(message).removeprefix("<assistant>")
        for stop in (
            () if body.get("include_stop_str_in_output") else body.get("stop", ())
        ):
            message["content"] = message["content"].split(stop)[0]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "stop",
            "token_ids": list(spoken.encode()),
        }
        usage = {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(spoken),
            "total_tokens": len(prompt + spoken),
        }
        reply = {
            "id": f"c{place}",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [choice],
        }
        data = json.dumps(
            {**reply, "usage": usage, "prompt_token_ids": list(prompt.encode())}
        ).encode()
        if body.get("stream"):  # the whole reply in one piece
            calls = [
                {"index": place, **call}
                for place, call in enumerate(message.get("tool_calls", ()))
            ]
            delta = {**message, **({"tool_calls": calls} if calls else {})}
            piece = {
                **reply,
                "object": "chat.completion.chunk",
                "choices": [{**choice, "delta": delta}],
                "usage": usage,
            }
            data = f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header(
            "Content-Type",
            "text/event-stream" if body.get("stream") else "application/json",
        )
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def message(self, reply: Any, place: int) -> dict[str, Any]:
        if isinstance(reply, str):
            return {"role": "assistant", "content": reply}
        name, arguments = reply
        call: dict[str, Any] = {"id": f"chatcmpl-tool-{place}", "type": "function"}
        call["function"] = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "content": f"I call {name}.", "tool_calls": [call]}

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def rendered(message: dict[str, Any]) -> str:
    """Return a message as a chat template renders it."""
    calls = "".join(
        f"[{call['id']} {call['function']['name']} {json.dumps(json.loads(call['function']['arguments']))}]"
        for call in message.get("tool_calls", ())
    )
    return f"<{message['role']}>{message.get('content') or ''}{calls}{message.get('tool_call_id', '')}<end>"


@pytest.fixture
def engine() -> Iterator[str]:
    """The address of a model server."""
    Engine.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def _asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(
        urllib.request.Request(url, data=data, headers=headers), timeout=10
    ) as response:
        return json.load(response)


@pytest.fixture
def gateway(engine: str) -> Iterator[str]:
    """The address of agent-lightning's own server before the model server, with a rollout "r1"."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    proxy = {
        "model_name": MODEL,
        "include_log_probs": False,
        "train": {"temperature": 1},
        "val": {"temperature": 0},
    }
    config = {"host": "127.0.0.1", "port": port, "key": KEY, "default_proxy": proxy}
    program = (
        "import uvicorn; from agentlightning.server.app import create_app; "
        f"uvicorn.run(create_app({config!r}), host='127.0.0.1', port={port}, log_level='warning')"
    )
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-c", program])
    try:
        for _ in range(300):
            try:
                _asked(f"{url}/healthz")
                break
            except OSError:
                time.sleep(0.1)
        _asked(f"{url}/api/models", [{"model": MODEL, "endpoint": engine}])
        _asked(
            f"{url}/api/rollouts",
            [{"input": {"question": QUESTION}, "rollout_id": "r1"}],
        )
        yield url
    finally:
        server.terminate()
        server.wait()


def _roll_out(gateway: str, *options: str) -> dict[str, Any]:
    """Run the command as the gateway's controller starts it, and return its output."""
    attempt = "rollout/r1/attempt/0"
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OPENAI", "RAS_AGENT"))
        },
        **{
            "QUESTION": QUESTION,
            "GOLDEN_ANSWERS": '["Stockholm"]',
            "NO_PROXY": "127.0.0.1",
            "AGL_KEY": KEY,
        },
        "AGL_OPENAI_BASE_URL": f"{gateway}/proxy/{attempt}/mode/train/openai/v1",
        "AGL_EVENT_URL": f"{gateway}/api/rollouts/r1/attempt/0/events",
    }
    program = str(Path(sys.executable).with_name("ras-agent"))
    done = subprocess.run(
        [program, "rollout", "--sample", *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.parametrize("name", ["search-r1", "ras", "react"])
def test_agent_lightning_records_one_continuous_dialogue_and_the_reward(
    gateway: str, name: str
) -> None:
    Engine.replies = SPOKEN.get(name, CALLED)
    printed = _roll_out(
        gateway, *(["--loop", "react"] if name == "react" else ["--dialect", name])
    )
    assert (printed["calls"], printed["reward"]) == (3, 1.0)
    events = _asked(f"{gateway}/api/rollouts/r1/events?format=triplet")
    calls = [
        event["data"] for event in events if event["event_type"] == "model_request"
    ]
    rewards = [event["data"] for event in events if event["event_type"] == "reward"]
    assert rewards == [{"value": 1.0, "source": "agent", "reason": "sufficient"}]
    assert len(calls) == 3
    # by this its trainer merges the calls of a rollout to one sample (agentlightning/verl/rollout_adapter.py)
    for first, second in pairwise(calls):
        history = first["prompt_token_ids"] + first["response_token_ids"]
        assert second["prompt_token_ids"][: len(history)] == history


def test_art_records_the_planner_that_its_model_plays(
    engine: str, tmp_path: Path, monkeypatch: Any
) -> None:
    art, wrapper = import_module("art"), import_module("art.langgraph")
    from ras_agent import Settings
    from ras_agent.app.sample import sample_passages
    from ras_agent.eval.question import Question
    from ras_agent.gym import Rewards, aroll_out, rollout_agent

    monkeypatch.chdir(tmp_path)
    Engine.replies = SPOKEN["ras"]

    async def play() -> Any:
        agent = rollout_agent(
            wrapper.init_chat_model(), Settings(dialect="ras"), sample_passages()
        )
        rollout = await aroll_out(
            agent, Question("q", QUESTION, ("Stockholm",)), Rewards(gold=0.0, form=0.0)
        )
        return art.Trajectory(messages_and_choices=[], reward=rollout.reward)

    class Model:
        inference_base_url, inference_api_key, inference_model_name = engine, KEY, MODEL

    trajectory = asyncio.run(wrapper.wrap_rollout(Model(), play)())
    assert trajectory.reward == 1.0
    # it joins calls only where the model's messages come back as the same objects, ids and all: here each is a history
    histories = [
        trajectory.messages_and_choices,
        *(other.messages_and_choices for other in trajectory.additional_histories),
    ]
    assert [len(history) for history in histories] == [3, 5, 7]
    prompts = [request["messages"] for request in Engine.requests]
    assert len(prompts) == 3
    assert all(second[: len(first)] == first for first, second in pairwise(prompts))


@pytest.mark.parametrize("name", ["search-r1", "ras", "react"])
def test_verifiers_intercepts_one_branch(
    engine: str, name: str, monkeypatch: Any
) -> None:
    clients, trace_module = (
        import_module("verifiers.v1.clients"),
        import_module("verifiers.v1.trace"),
    )
    session_module, server_module = (
        import_module("verifiers.v1.session"),
        import_module("verifiers.v1.interception.server"),
    )
    configs, task = (
        import_module("verifiers.v1.configs.client"),
        import_module("verifiers.v1.task"),
    )
    from ras_agent import Settings
    from ras_agent.app.sample import sample_passages
    from ras_agent.eval.question import Question
    from ras_agent.gym import Policy, Rewards, aroll_out, rollout_agent

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ENGINE_KEY", KEY)
    Engine.replies = SPOKEN.get(name, CALLED)
    settings = Settings(loop="react") if name == "react" else Settings(dialect=name)
    question = Question("q", QUESTION, ("Stockholm",))

    async def play() -> Any:
        client = configs.EvalClientConfig(base_url=engine, api_key_var="ENGINE_KEY")
        row = trace_module.TraceTask(type="Task", data=task.TaskData(prompt=QUESTION))
        trace = trace_module.Trace(task=row, agent=trace_module.AgentInfo(config={}))
        session = session_module.RolloutSession(
            clients.ModelContext(model=MODEL, client=client), trace
        )
        async with (
            server_module.InterceptionServer() as server,
            server.acquire(session) as (url, secret, _),
        ):
            # the variables that its harnesses set for the programs that they start
            variables = {
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_API_KEY": secret,
                "OPENAI_MODEL": MODEL,
            }
            agent = rollout_agent(
                Policy.of_environment(variables), settings, sample_passages()
            )
            rollout = await aroll_out(agent, question, Rewards(gold=0.0, form=0.0))
        return rollout, trace

    rollout, trace = asyncio.run(play())
    assert rollout.reward == 1.0
    assert trace.num_turns == 3
    # a message that came back otherwise would have begun another
    assert len(trace.branches) == 1


if find_spec("agentlightning") is None:
    del test_agent_lightning_records_one_continuous_dialogue_and_the_reward
if find_spec("art") is None:
    del test_art_records_the_planner_that_its_model_plays
if find_spec("verifiers") is None:
    del test_verifiers_intercepts_one_branch
