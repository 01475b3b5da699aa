"""The layers of a model call between a node and the socket: each layer is a place where an error may have been."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage

HTTP = [
    "ras_agent.tools.chat.client",
    "ras_agent.tools.chat.counting",
    "ras_agent.tools.chat.retry",
    "ras_agent.tools.chat.limits",
    "ras_agent.tools.chat.accepted",
    "ras_agent.tools.chat.asking",
    "ras_agent.tools.chat.openai_chat",
    "ras_agent.tools.chat.http",
]
BELL = [
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    )
]


def modules_above() -> Iterator[str]:
    """Yield the package's modules on the stack of the caller, the innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        if (name := frame.f_globals.get("__name__", "")).startswith("ras_agent."):
            yield name
        frame = frame.f_back  # type: ignore[assignment]


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The modules on the stack at each request, the outermost first."""
    stacks: list[list[str]] = []
    send = aiohttp.ClientSession.request

    def request(*args: Any, **options: Any) -> Any:
        stacks.append(list(dict.fromkeys(reversed(list(modules_above())))))
        return send(*args, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "request", request)
    return stacks


async def test_an_asynchronous_call_goes_through_few_layers_from_the_node_to_the_socket(
    scripted_llm: Any, stacks: list[list[str]]
) -> None:
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    agent = create_ras_agent(
        planner=scripted_llm.spec, extractor="offline", answerer="offline", index=BELL
    )
    await agent.ainvoke({"question": "Where was Alexander Graham Bell born?"})
    assert stacks[-1] == [
        "ras_agent.graphs.node",
        "ras_agent.tools.plan.chat_planner",
        "ras_agent.tools.chat.dialogue",
        "ras_agent.running.calling",
        *HTTP,
    ]


def test_a_synchronous_call_has_the_same_layers_below_its_thread(
    scripted_llm: Any, stacks: list[list[str]]
) -> None:
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    agent = create_ras_agent(
        planner=scripted_llm.spec, extractor="offline", answerer="offline", index=BELL
    )
    agent.invoke({"question": "Where was Alexander Graham Bell born?"})
    assert stacks[-1] == HTTP
