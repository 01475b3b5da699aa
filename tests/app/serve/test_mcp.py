"""Real clients of the Model Context Protocol call the agent's tools, over standard input and over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from ras_agent import Passage, PassageIndex, __version__, build_graph
from ras_agent.app.serve import service
from ras_agent.app.serve.service import Service
from ras_agent.config.settings import Settings
from tests.app.serve.conftest import serving

QUESTION = (
    "Which river flows through the city where the inventor of the telephone was born?"
)


@asynccontextmanager
async def over_http(url: str, token: str = "") -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with (
        create_mcp_http_client(headers=headers) as client,
        streamable_http_client(f"{url}/mcp", http_client=client) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def _call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    result = await session.call_tool(tool, arguments)
    # versions of the package have names of their own for the protocol's
    told = result.model_dump(by_alias=True)
    assert not told["isError"], told["content"]
    return told["structuredContent"]


async def _refused(session: ClientSession, tool: str, **arguments: Any) -> str:
    """Call a tool that refuses, and return its reason."""
    result = await session.call_tool(tool, arguments)
    told = result.model_dump(by_alias=True)
    assert told["isError"]
    reason: str = told["content"][0]["text"]
    return reason


@pytest.mark.slow("processes")
async def test_a_client_starts_the_command_and_gets_a_cited_answer() -> None:
    code = "from ras_agent.app.cli import main; main()"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    command = StdioServerParameters(
        command=sys.executable, args=["-c", code, "mcp", "--sample"], env=environment
    )
    async with (
        stdio_client(command) as (read, write),
        ClientSession(read, write) as session,
    ):
        server = (await session.initialize()).model_dump(by_alias=True)["serverInfo"]
        assert (server["name"], server["version"]) == ("ras-agent", __version__)
        tools = {
            tool.name: tool.model_dump(by_alias=True)
            for tool in (await session.list_tools()).tools
        }
        assert set(tools) == {"ask", "retrieve"}  # the sample has no knowledge graph
        schema = tools["ask"]["inputSchema"]
        assert schema["required"] == ["question"]
        assert list(schema["properties"]) == ["question", "filter", "thread", "as_of"]
        hints = {
            tuple(
                tool["annotations"][f"{hint}Hint"] for hint in ("readOnly", "openWorld")
            )
            for tool in tools.values()
        }
        assert hints == {(True, False)}
        told = await _call(session, "ask", question=QUESTION)
    assert told["answer"] == "Water of Leith"
    assert (told["abstained"], told["grounded"]) == (False, True)
    assert told["sources"][-1]["title"] == "Water of Leith"


async def test_over_http_progress_names_the_searches() -> None:
    seen: list[str | None] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    with serving(Settings(), sample=True) as url:
        async with over_http(url) as session:
            await session.call_tool(
                "ask", {"question": QUESTION}, progress_callback=progress
            )
    assert seen[0] == QUESTION


async def test_retrieve_returns_passages_with_their_sources() -> None:
    with serving(Settings(), sample=True) as url:
        async with over_http(url) as session:
            (first, second) = (
                await _call(session, "retrieve", query="main river of Edinburgh", k=2)
            )["result"]
            blank = await _refused(session, "retrieve", query=" ")
    assert (first["title"], first["score"] >= second["score"]) == (
        "Water of Leith",
        True,
    )
    assert "the query is blank" in blank


async def test_every_face_answers_for_a_date(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "my.index")
    index.add([Passage("a", "Bell was born in Edinburgh.", metadata={"date": "2016"})])
    question = "Where was Bell born?"
    none = "No answer: no passage was found for the question."
    with serving(Settings(index=tmp_path / "my.index")) as url:
        async with over_http(url) as session:
            answers = []
            for date in ("2016-12-31", "2015"):
                told = await _call(session, "ask", question=question, as_of=date)
                answers.append(told["answer"])
        async with httpx.AsyncClient(base_url=url) as client:
            body = {"question": question, "as_of": "2015"}
            asked = await client.post("/api/ask", json=body)
            refused = await client.post("/api/ask", json={**body, "as_of": "soon"})
            message = {"role": "user", "content": question}
            chat = {"model": "ras-agent", "messages": [message], "as_of": "2015"}
            said = await client.post("/v1/chat/completions", json=chat)
    assert answers == ["Edinburgh", none]
    assert asked.json()["answer"] == none
    assert (refused.status_code, "as_of must be a date" in refused.text) == (422, True)
    assert none in said.json()["choices"][0]["message"]["content"]


async def test_a_filter_narrows_a_question_and_a_search(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "my.index")
    index.add(
        [Passage("a", "Bell was born in Edinburgh.", "Bell", metadata={"team": "x"})]
    )
    with serving(Settings(index=tmp_path / "my.index")) as url:
        async with over_http(url) as session:
            asked = {"question": "Where was Bell born?"}
            told = [
                await _call(session, "ask", **asked, filter={"team": team})
                for team in ("x", "y")
            ]
            hits = [
                await _call(session, "retrieve", query="Bell", filter={"team": team})
                for team in ("x", "y")
            ]
    assert [(one["answer"], one["abstained"]) for one in told] == [
        ("Edinburgh", False),
        ("No answer: no passage was found for the question.", True),
    ]
    assert [len(found["result"]) for found in hits] == [1, 0]


async def test_a_question_may_refer_to_its_thread(tmp_path: Path) -> None:
    with serving(Settings(), sample=True) as url:
        async with over_http(url) as session:
            await _call(
                session, "ask", question="Who invented the telephone?", thread="1"
            )
            told = await _call(
                session, "ask", question="Where was he born?", thread="1"
            )
            refused = await _refused(
                session, "ask", question="Where?", thread="no/name"
            )
    assert told["answer"] == "Edinburgh"
    assert "should match pattern" in refused


async def test_a_model_that_cannot_be_asked_is_a_tool_s_error(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    with serving(Settings(llm=scripted_llm.spec, retries=0), sample=True) as url:
        async with over_http(url) as session:
            refused = await _refused(session, "ask", question="Where was Bell born?")
    assert refused.endswith("no answer: a model cannot be asked")


def test_nobody_waits_for_messages_that_never_come() -> None:
    with serving(Settings(), sample=True) as url:
        for method in ("GET", "DELETE"):
            accept = {"Accept": "text/event-stream"}
            assert (
                httpx.request(
                    method, f"{url}/mcp", headers=accept, trust_env=False
                ).status_code
                == 405
            )


async def test_below_a_path_of_another_application_the_tools_work_as_well() -> None:
    with serving(Settings(), sample=True, below="/research") as url:
        for _ in range(2):
            async with over_http(url) as session:
                told = await _call(session, "ask", question=QUESTION)
    assert told["answer"] == "Water of Leith"


async def test_arguments_are_no_longer_than_those_of_rest() -> None:
    too_long = (
        ("ask", "question", 100_001),
        ("retrieve", "query", 10_001),
        ("get_graph", "entity", 1_001),
    )
    with serving(Settings(), sample=True) as url:
        async with over_http(url) as session:
            for tool, argument, length in too_long:
                refused = await _refused(session, tool, **{argument: "t" * length})
                assert f"at most {length - 1} characters" in refused
                assert len(refused) < 1000
            await _call(session, "retrieve", query="t" * 10_000)


async def test_get_graph_shows_facts_around_an_entity_or_says_how_to_make_a_graph(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "my.index")
    index.add(
        [
            Passage(
                "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
            )
        ]
    )
    with serving(Settings(index=tmp_path / "my.index")) as url:
        async with over_http(url) as session:
            assert "get_graph" not in [
                tool.name for tool in (await session.list_tools()).tools
            ]
            assert "ras-agent kg build" in await _refused(
                session, "get_graph", entity="Edinburgh"
            )
            build_graph(tmp_path / "my.index")
            assert "get_graph" in [
                tool.name for tool in (await session.list_tools()).tools
            ]
            around = await _call(session, "get_graph", entity="edinburgh")
            unknown = await _refused(session, "get_graph", entity="Edinborough")
            near = await _call(
                session, "retrieve", query="Edinburgh", retriever="neighbours"
            )
            other = await _refused(
                session, "retrieve", query="Edinburgh", retriever="dense"
            )
    assert ["Water of Leith", "flows through", "Edinburgh"] in around["facts"]
    assert around["passage_ids"][0] == ["leith"]
    assert "names that begin like it: Edinburgh" in unknown
    assert near["result"][0]["passage_id"] == "leith"
    assert "no retriever 'dense'; it has: bm25, ppr" in other


async def test_a_token_is_wanted_and_its_filter_bounds_the_tools(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "my.index")
    index.add([Passage("a", "Bell was born in Edinburgh.", "Bell", metadata={"team": "x"}),
               Passage("b", "Bell moved to Canada.", "Bell", metadata={"team": "y"})])  # fmt: skip
    tokens = {"token-of-team-x-0000": {"team": "x"}}
    with serving(Settings(index=tmp_path / "my.index"), tokens=tokens) as url:
        with pytest.raises(BaseExceptionGroup):
            async with over_http(url) as session:
                await session.list_tools()
        async with over_http(url, "token-of-team-x-0000") as session:
            found = (await _call(session, "retrieve", query="Bell"))["result"]
    assert [hit["passage_id"] for hit in found] == ["a"]


async def test_an_unforeseen_error_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise TypeError("the text of a passage")

    for part in ("ask_once", "retrieve", "graph"):
        monkeypatch.setattr(Service, part, broken)
    with serving(Settings(), sample=True) as url:
        async with over_http(url) as session:
            told = [
                await _refused(session, "ask", question="Where was Bell born?"),
                await _refused(session, "retrieve", query="Bell"),
                await _refused(session, "get_graph", entity="Bell"),
            ]
    assert all(one.endswith("the server failed; its log says why") for one in told)
    assert caplog.text.count("TypeError: the text of a passage") == 3


async def test_a_message_that_cannot_be_read_leaves_its_question_out_of_the_log(
    sample_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    called = {"name": 7, "arguments": {"query": "Who is ill?"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
        await client.post(f"{sample_server}/mcp", json=body)
    assert "could not be read" in caplog.text
    assert "ill" not in caplog.text


async def test_a_graph_is_looked_through_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "my.index")
    index.add(
        [
            Passage(
                "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
            )
        ]
    )
    build_graph(tmp_path / "my.index")
    on_the_loop = []

    def noted(work: Any, *given: Any) -> Any:
        with suppress(RuntimeError):
            on_the_loop.append(asyncio.get_running_loop())
        return work(*given)

    graph = Service.graph
    monkeypatch.setattr(Service, "graph", lambda *given: noted(graph, *given))
    monkeypatch.setattr(
        service, "names_beginning", partial(noted, service.names_beginning)
    )
    monkeypatch.setattr(service, "neighbourhood", partial(noted, service.neighbourhood))
    with serving(Settings(index=tmp_path / "my.index")) as url:
        async with over_http(url) as session:
            around = await _call(session, "get_graph", entity="edinburgh")
            await session.call_tool("get_graph", {"entity": "Edinborough"})
    assert around["facts"] == [["Water of Leith", "flows through", "Edinburgh"]]
    assert on_the_loop == []


def test_a_program_that_has_not_set_up_logging_may_still_do_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    with serving(Settings(), sample=True):
        assert root.handlers == []
