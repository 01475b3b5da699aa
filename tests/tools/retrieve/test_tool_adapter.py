"""A tool that takes a query is a retriever: its results become passages, whatever form it has."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.tools import tool

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import FilterError, SettingsError
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.retrieve.tool_adapter import ToolRetriever
from tests.messages import says

LEITH = "The Water of Leith is the main river of Edinburgh."


def _texts(answer: Any, k: int = 5) -> list[str]:
    @tool
    def search(query: str) -> Any:
        """Search."""
        return answer

    return [hit.passage.text for hit in ToolRetriever(search).retrieve("rivers", k)]


@pytest.mark.parametrize(
    "answer",
    [
        LEITH,
        [LEITH],
        {"text": LEITH},
        [{"title": "Leith", "snippet": LEITH, "link": "https://example.org/leith"}],
        {"query": "rivers", "results": [{"content": LEITH, "score": 0.9}]},
        json.dumps({"results": [{"content": LEITH}]}),
        json.dumps([{"page_content": LEITH}]),
        [{"type": "text", "text": json.dumps({"text": LEITH, "passage_id": "leith"})}],
        Document(LEITH),
        [Document(LEITH, id="leith", metadata={"title": "Leith"})],
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_of_any_usual_form_holds_its_text(answer: Any) -> None:
    assert _texts(answer) == [LEITH]


@pytest.mark.parametrize(
    "answer", ["", "  ", [], {}, {"results": []}, [None, 7], {"error": 404}, "[]"]
)
def test_an_answer_without_text_holds_no_passage(answer: Any) -> None:
    assert _texts(answer) == []


def test_text_that_only_looks_like_json_is_text() -> None:
    assert _texts("[1] Leith is a river.") == ["[1] Leith is a river."]
    assert _texts("{" * 100_000) == ["{" * 100_000]


def test_order_gives_the_scores_and_k_and_repetitions_are_cut() -> None:
    @tool
    def search(query: str) -> list[str]:
        """Search."""
        return ["first", "second", "first", "third"]

    hits = ToolRetriever(search).retrieve("x", 2)
    assert [(hit.passage.text, hit.score) for hit in hits] == [
        ("first", 1.0),
        ("second", 0.5),
    ]


def test_title_source_and_other_fields_are_kept() -> None:
    @tool
    def search(query: str) -> list[dict[str, Any]]:
        """Search."""
        return [
            {
                "title": "Leith",
                "snippet": LEITH,
                "link": "https://example.org/leith",
                "year": 1998,
                "raw": {},
            }
        ]

    passage = ToolRetriever(search).retrieve("x")[0].passage
    assert (passage.title, passage.document_id) == (
        "Leith",
        "https://example.org/leith",
    )
    assert passage.metadata["url"] == "https://example.org/leith"
    assert passage.metadata["year"] == 1998
    assert "raw" not in passage.metadata


def test_the_pieces_of_one_document_are_passages_of_their_own() -> None:
    pieces = [
        {"document_id": "guide.pdf", "content": LEITH},
        {"document_id": "guide.pdf", "content": "It is short."},
    ]
    assert _texts(pieces) == [LEITH, "It is short."]


def test_ids_that_are_counted_anew_in_each_search_name_different_passages() -> None:
    @tool
    def search(query: str) -> list[dict[str, Any]]:
        """Search."""
        return [{"id": 1, "content": f"{query} is a river."}]

    retriever = ToolRetriever(search)
    first, again, other = (
        retriever.retrieve(query)[0].passage for query in ("Leith", "Leith", "Almond")
    )
    assert (first.id, other.id) == ("1/7a3a77ee01831047", "1/f1a004a822c19345")
    assert again == first


async def test_a_tool_with_a_coroutine_alone_is_asked_from_code_that_does_not_wait_though_a_loop_runs() -> (
    None
):
    @tool
    async def search(query: str) -> str:
        """Search."""
        return LEITH

    assert ToolRetriever(search).retrieve("rivers")[0].passage.text == LEITH


def test_the_argument_of_the_query_is_found_or_named() -> None:
    @tool
    def by_name(limit: int, question: str) -> str:
        """Search."""
        return question

    @tool
    def only_one(words: str, limit: int = 3) -> str:
        """Search."""
        return words

    @tool
    def unclear(left: str, right: str) -> str:
        """Search."""
        return left + right

    assert ToolRetriever(only_one).retrieve("rivers")[0].passage.text == "rivers"
    with pytest.raises(
        SettingsError, match=says("arguments left, right", "which one takes the query")
    ):
        ToolRetriever(unclear)
    assert ToolRetriever(by_name)._argument == "question"


def test_an_agent_takes_a_tool_and_a_failing_one_is_a_failure() -> None:
    @tool
    def rivers(query: str) -> list[dict[str, str]]:
        """Search rivers."""
        if "fail" in query:
            raise ConnectionError("nobody is there")
        return [{"title": "Water of Leith", "text": LEITH}]

    agent = create_ras_agent(retriever=rivers)
    assert (
        agent.invoke({"question": "What is the main river of Edinburgh?"})["answer"]
        == "Water of Leith"
    )
    assert (
        agent.invoke({"question": "Does it fail?"})["failures"][0]["message"]
        == "ConnectionError: nobody is there"
    )
    with pytest.raises(FilterError, match="cannot apply a filter"):
        agent.invoke(
            {
                "question": "What is the main river of Edinburgh?",
                "filter": {"team": "x"},
            }
        )


@pytest.mark.slow("processes")
async def test_a_tool_of_an_mcp_server_is_a_retriever() -> None:
    adapters = pytest.importorskip(
        "langchain_mcp_adapters.client", reason="needs langchain-mcp-adapters"
    )
    pytest.importorskip("mcp", reason="needs the extra mcp")
    code = "from ras_agent.app.cli import main; main()"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    command = {
        "command": sys.executable,
        "args": ["-c", code, "mcp", "--sample"],
        "env": environment,
    }
    client = adapters.MultiServerMCPClient(
        {"sample": {"transport": "stdio", **command}}
    )
    async with client.session(
        "sample"
    ) as session:  # without one, every call starts a server
        tools = {one.name: one for one in await adapters.load_mcp_tools(session)}
        retriever: Any = resolve_retriever(tools["retrieve"])
        hits = await retriever.aretrieve("main river of Edinburgh", 2)
    assert hits[0].passage.title == "Water of Leith"
    assert hits[0].passage.id
