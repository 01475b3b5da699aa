"""The features that the package needs of an engine, and its work with one: over a real server, whichever ENGINE names."""

from __future__ import annotations

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra 'openai'")
pytest.importorskip("fastapi", reason="needs the extra 'serve'")

from ras_agent import Settings, create_ras_agent
from ras_agent.app.sample import sample_passages
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from tests.engines.lessons import CALLED, SEARCHES, Teacher, agents, asked
from tests.engines.servers import Server

pytestmark = [pytest.mark.slow("engines"), pytest.mark.timeout(1200)]


def _chat(server: Server, **settings: Any) -> Chat:
    return as_chat(
        server.spec, ChatSettings(temperature=0.0, timeout=300.0, **settings)
    )


def _request(lesson: dict[str, Any], on_text: Any = None) -> Request:
    turns = tuple(
        Turn(message["role"], message["content"]) for message in lesson["messages"]
    )
    return Request(turns, on_text, max_tokens=200)


def _in_short(out: dict[str, Any]) -> dict[str, Any]:
    """Return the searches, passages and answer of a run."""
    return {
        "searches": [step["subquery"] for step in out["steps"]],
        "facts": sorted(
            (fact["subject"], fact["predicate"], fact["object"])
            for fact in out["graph"]["facts"]
        ),
        **{key: out[key] for key in ("answer", "citations", "stop_reason", "failures")},
    }


@pytest.fixture(scope="module")
def by_heart() -> dict[tuple[str, str], dict[str, Any]]:
    """The result of each question with the replies that the model has learnt."""
    taught = agents(Teacher())
    return {
        (graph, question): _in_short(taught[graph].invoke({"question": question}))
        for graph, question in asked()
    }


@pytest.mark.parametrize("question", SEARCHES)
def test_a_question_is_searched_read_and_answered_as_it_was_learnt(
    question: str, server: Server, by_heart: dict[tuple[str, str], dict[str, Any]]
) -> None:
    out = agents(server.spec)["ras"].invoke({"question": question})
    assert _in_short(out) == by_heart["ras", question]
    assert all(
        call["input_tokens"] > 100 and not call["estimated"]
        for call in out["usage"]["calls"]
    )


@pytest.mark.needs("tools")
def test_a_planner_calls_tools_as_it_was_learnt(
    server: Server, by_heart: dict[tuple[str, str], dict[str, Any]]
) -> None:
    out = agents(server.spec)["react"].invoke({"question": CALLED})
    assert _in_short(out) == by_heart["react", CALLED]


@pytest.mark.parametrize("at_once", [32, 64])
def test_requests_that_overlap_each_get_their_own_reply(
    at_once: int, server: Server, taught: list[dict[str, Any]]
) -> None:
    chat, lessons = (
        _chat(server),
        [taught[number % len(taught)] for number in range(at_once)],
    )

    async def together() -> list[str]:
        replies = await asyncio.gather(
            *(chat.acomplete(_request(lesson)) for lesson in lessons)
        )
        return [reply.text for reply in replies]

    with ThreadPoolExecutor(at_once) as pool:
        in_threads = [
            reply.text for reply in pool.map(chat.complete, map(_request, lessons))
        ]
    expected = [lesson["reply"] for lesson in lessons]
    assert in_threads == expected
    assert asyncio.run(together()) == expected


def test_a_stream_brings_the_reply_in_pieces_and_what_it_cost(
    server: Server, taught: list[dict[str, Any]]
) -> None:
    chat, lesson = _chat(server), max(taught, key=lambda one: len(one["reply"]))
    pieces: list[str] = []
    streamed, whole = (
        chat.complete(_request(lesson, pieces.append)),
        chat.complete(_request(lesson)),
    )
    assert streamed.text == whole.text == lesson["reply"]
    assert len(pieces) > 3
    assert (streamed.input_tokens, streamed.output_tokens) == (
        whole.input_tokens,
        whole.output_tokens,
    )
    assert whole.input_tokens > 100


def test_a_reply_that_its_limit_cut_says_so(
    server: Server, taught: list[dict[str, Any]]
) -> None:
    lesson = max(taught, key=lambda one: len(one["reply"]))
    request = Request(_request(lesson).turns, max_tokens=5)
    reply = _chat(server).complete(request)
    assert (reply.truncated, reply.output_tokens) == (True, 5)
    assert lesson["reply"].startswith(reply.text)


def test_runs_that_are_cancelled_leave_the_engine_to_others(
    server: Server, taught: list[dict[str, Any]]
) -> None:
    """Streams of 16 runs are given up at their first words; nobody asks on, and the engine works for nobody."""
    spec = server.spec
    settings = Settings(k=2, temperature=1.9, timeout=300.0)
    agent = create_ras_agent(
        index=sample_passages(),
        settings=settings,
        planner=spec,
        extractor=spec,
        answerer=spec,
    )

    async def cancel_all() -> list[Any]:
        begun = asyncio.Event()

        async def run() -> None:
            async for _ in agent.astream(
                {"question": "Who?"}, stream_mode=["custom", "updates"]
            ):
                begun.set()

        runs = [asyncio.create_task(run()) for _ in range(16)]
        await begun.wait()
        for task in runs:
            task.cancel()
        return list(await asyncio.gather(*runs, return_exceptions=True))

    assert [type(end) for end in asyncio.run(cancel_all())] == [
        asyncio.CancelledError
    ] * 16
    chat = _chat(server)
    assert [chat.complete(_request(lesson)).text for lesson in taught[:4]] == [
        one["reply"] for one in taught[:4]
    ]
    if pattern := server.engine.running:
        assert {
            float(number) for number in re.findall(pattern, server.text("/metrics"))
        } == {0.0}


def test_an_engine_that_is_killed_and_comes_back_is_waited_for(
    server: Server, by_heart: dict[tuple[str, str], dict[str, Any]]
) -> None:
    """All questions are asked four times at once of an engine that is killed under them and started again."""
    questions = [question for question in SEARCHES for _ in range(4)]
    # on a busy machine vLLM takes longer than the usual 120 s
    agent = agents(server.spec, patience=600.0)["ras"]
    agent.invoke({"question": questions[0]})  # it has answered before
    moves, killed = threading.Semaphore(0), threading.Event()

    def run(question: str) -> dict[str, Any]:
        for _ in agent.stream({"question": question}, stream_mode="updates"):
            moves.release()
            killed.wait()
        return _in_short(agent.invoke({"question": question}))

    with ThreadPoolExecutor(len(questions)) as pool:
        ends = [pool.submit(run, question) for question in questions]
        moves.acquire()
        server.kill()
        server.restart()
        killed.set()
        outs = [end.result() for end in ends]
    assert outs == [by_heart["ras", question] for question in questions]
