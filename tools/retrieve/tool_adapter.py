"""Makes a retriever of any LangChain or MCP tool that takes a query: a web search, an in-house search, an agent."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.calling import run_apart
from ras_agent.tools.retrieve.ranking import check_query

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

_QUERIES = ("query", "q", "question", "search", "input", "text")
_TEXTS = (
    "text",
    "content",
    "page_content",
    "snippet",
    "description",
    "body",
    "summary",
    "raw_content",
)
_TITLES = ("title", "name", "headline")
_SOURCES = ("url", "link", "href", "source", "file")
_IDS = ("id", "passage_id")  # not document_id, which several passages share
_LISTS = (
    "results",
    "result",
    "hits",
    "documents",
    "items",
    "passages",
    "organic",
    "organic_results",
    "data",
)
_DEEPEST = 4
"""The depth to which an answer is searched for its list of results."""


def is_langchain_tool(thing: object) -> bool:
    """Return whether `thing` is a LangChain BaseTool. LangChain is not imported: as long as it is not loaded, return
    False.
    """
    module = sys.modules.get("langchain_core.tools")
    return module is not None and isinstance(thing, module.BaseTool)


class ToolRetriever:
    """Calls a tool with the query, and returns the tool's results as passages, in their order.

    The tool's result is a text, a Document, a mapping with a text under a usual name (content, snippet, text ...),
    or a list of these, perhaps under `results`; JSON inside a text is parsed. A result's URL becomes the passage's
    source and is never fetched. A passage's id combines the result's own id, if it has one, with a hash of text and
    URL. Scores are 1 / rank, since a tool promises no more than an order.
    """

    def __init__(self, tool: BaseTool, argument: str = "") -> None:
        """Prepare the retriever. Raises SettingsError if it is unclear which of the tool's arguments takes the query.

        Args:
            tool: a LangChain tool, as made by `@tool`, or by langchain-mcp-adapters from an MCP server's tool.
            argument: the name of the argument that takes the query; by default one named query, q, question or the
                like, else the only required one. Other arguments keep their defaults.
        """
        self.name = tool.name
        self._tool = tool
        self._argument = argument or _argument_of(tool)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits. Raises ValueError for a blank query or k < 1, and the tool's own errors."""
        check_query(query, k)
        arguments = {self._argument: query}
        try:
            answer = self._tool.invoke(arguments)
        except NotImplementedError:  # a tool of an MCP server has only coroutines
            answer = run_apart(self._tool.ainvoke(arguments))
        return hits_in(answer, k)

    async def aretrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return the same as `retrieve`, without blocking the event loop."""
        check_query(query, k)
        answer = await self._tool.ainvoke({self._argument: query})
        return hits_in(answer, k)


def _argument_of(tool: BaseTool) -> str:
    arguments = tool.args
    for name in _QUERIES:
        if name in arguments:
            return name
    needed = [name for name, about in arguments.items() if "default" not in about]
    if len(needed) == 1:
        return needed[0]
    raise SettingsError(
        f"tool {tool.name!r} has the arguments {', '.join(arguments) or '(no argument)'}, and it is unclear which one "
        "takes the query: name it, ToolRetriever(tool, argument=...) from ras_agent.tools.retrieve.tool_adapter"
    )


def hits_in(answer: Any, k: int) -> list[Hit]:
    """Return a hit for each of the first `k` different passages in a tool's result, with a score of 1 / rank."""
    hits: dict[str, Hit] = {}
    for passage in _passages(answer):
        score = 1 / (len(hits) + 1)
        hits.setdefault(passage.id, Hit(passage, score))
        if len(hits) == k:
            break
    return list(hits.values())


def _passages(answer: Any, depth: int = 0) -> Iterator[Passage]:
    """Yield the passages in a tool's answer, whatever its form; parts without text are skipped."""
    if isinstance(answer, Passage):
        yield answer
    elif isinstance(answer, str):
        data = _json_in(answer) if depth < _DEEPEST else None
        if data is not None:
            yield from _passages(data, depth + 1)
        elif answer.strip():
            yield _passage(answer, {})
    elif isinstance(answer, Mapping):
        yield from _of_mapping(answer, depth)
    elif isinstance(answer, Sequence):
        if depth >= _DEEPEST:
            return
        for item in answer:
            yield from _passages(item, depth)
    elif hasattr(answer, "page_content"):  # a Document
        about = dict(getattr(answer, "metadata", None) or {})
        about["id"] = answer.id or about.get("id")
        about["text"] = answer.page_content
        yield from _of_mapping(about, depth)


def _of_mapping(answer: Mapping[str, Any], depth: int) -> Iterator[Passage]:
    texts = {
        key: value
        for key, value in answer.items()
        if isinstance(value, str) and value.strip()
    }
    text = _first(texts, _TEXTS)
    is_block = answer.get("type") == "text"  # a block of an MCP answer
    if text and not (is_block and depth < _DEEPEST):
        yield _passage(text, answer)
    elif text:
        yield from _passages(text, depth + 1)
    elif depth < _DEEPEST:
        for key in _LISTS:
            if isinstance(answer.get(key), (list, tuple, str)):
                yield from _passages(answer[key], depth + 1)
                return


def _first(about: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the value of the first key with a text or an integer; "" if no key has one."""
    for key in keys:
        value = about.get(key)
        if isinstance(value, str | int) and value != "":
            return str(value)
    return ""


def _passage(text: str, about: Mapping[str, Any]) -> Passage:
    source = _first(about, _SOURCES)
    hashed = f"{source}\n{text}".encode("utf-8", "surrogatepass")
    name = hashlib.blake2b(hashed, digest_size=8).hexdigest()
    if own_id := _first(about, _IDS):
        name = f"{own_id}/{name}"  # many tools number the results of each search from 1, so the id is not unique
    metadata = {
        key: value
        for key, value in about.items()
        if isinstance(value, str | int | float) and value != text
    }
    if source:
        metadata["url"] = source
    title = _first(about, _TITLES) or source
    return Passage(name, text, title, source, metadata)


def _json_in(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict | list) else None
