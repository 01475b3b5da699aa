"""Offers the agent as tools of the Model Context Protocol: ask, retrieve, get_graph.

`ras-agent mcp` offers them over standard input and output, and `ras-agent serve` at the path /mcp over
streamable HTTP. There the server's guard decides who may send requests, and a caller's filter restricts the
results of each tool.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import mcp
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import Tool, ToolAnnotations
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HTTPRequest
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import TypedDict  # pydantic takes typing's own from Python 3.12

from ras_agent import __version__
from ras_agent.app.serve import wire
from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.errors import refusal
from ras_agent.app.serve.service import Service
from ras_agent.contracts.events import Planned
from ras_agent.graphs.tool import source_place
from ras_agent.text.lines import one_line, shown_name
from ras_agent.text.markup import inert_markup
from ras_agent.tools.plan.graph_tools import MEANINGS, about_choices

# LangChain's adapters require mcp 1
if TYPE_CHECKING or version("mcp").startswith("1."):
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

    Request = Context[Any, Any, Any]
else:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    Request = Context[Any, Any]

_INSTRUCTIONS = (
    "Answers questions from one collection of documents. Ask one whole question at a time: the agent searches several "
    "times by itself. Its answers rest on the documents and name their sources; where the documents hold no answer, it "
    "says so."
)
_RETRIEVERS = (
    f"{about_choices(MEANINGS)} With neighbours the query is an entity's name, and the last passage states the facts "
    "about it."
)
_MOST_HITS = 50
_MOST_ENTITIES = 200
_PACKAGE = str(Path(mcp.__file__).parent)


class Quoted(TypedDict):
    """Holds a sentence that an answer cites. `supported` tells whether it supports the answer; null if this is
    unknown.
    """

    title: str
    quote: str
    passage_id: str
    source: str
    supported: bool | None


class Answered(TypedDict):
    """Holds an answer. `abstained` tells whether the documents gave no certain answer, `grounded` whether a
    source supports it.

    If the answer abstained, `suggestion` is the answer that the sources suggest; else "".
    """

    answer: str
    abstained: bool
    suggestion: str
    grounded: bool
    sources: list[Quoted]


class Found(TypedDict):
    """Holds a passage that a search returned. A higher `score` is better, within one search."""

    passage_id: str
    title: str
    text: str
    score: float
    source: str


class Around(TypedDict):
    """Holds the part of a knowledge graph around an entity: facts as subject, predicate, object, and their passages."""

    entity: str
    facts: list[list[str]]
    passage_ids: list[list[str]]


def _without_message(record: logging.LogRecord) -> bool:
    """Replace the MCP package's log messages about unreadable requests, because they contain the question."""
    if record.pathname.startswith(_PACKAGE):
        record.msg = "a message of the Model Context Protocol could not be read"
        record.args = None
    return True


_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)


class _Tools(MCPServer):
    """Lists only the tools that the index can currently serve."""

    service: Service

    async def list_tools(self) -> list[Tool]:
        tools = await super().list_tools()
        return (
            tools
            if self.service.has_graph
            else [tool for tool in tools if tool.name != "get_graph"]
        )


def tools_over(service: Service) -> MCPServer:
    """Return a Model Context Protocol server over an open service."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    level = root.level
    server = _Tools("ras-agent", instructions=_INSTRUCTIONS)
    server.service = service
    _core_of(server).version = __version__  # by default it is the version of mcp
    # undo the logging that it has set up for the whole program
    root.handlers[:], root.level = handlers, level
    root.addFilter(_without_message)

    @server.tool(annotations=_READS)
    async def ask(
        question: Annotated[
            str,
            Field(max_length=wire.LONGEST_QUESTION, description="One whole question."),
        ],
        context: Request,
        filter: wire.Only = None,
        thread: wire.Thread | None = None,
        as_of: wire.AsOf = None,
    ) -> Answered:
        """Answer a question from the documents, with its sources."""
        with _refusing():
            asked = wire.AskRequest(
                question=question,
                filter=filter,
                as_of=as_of,
                thread=thread,
                review=[],
                stream=True,
            )
            run = (
                service.ask(asked, _caller(context))[1]
                if thread
                else service.ask_once(asked, _caller(context))
            )
            try:
                async for event in run.events():
                    if isinstance(event, Planned):
                        searches = "; ".join(event.plan.subqueries)
                        step = inert_markup(one_line(searches or event.plan.action))
                        await context.report_progress(event.hop, message=step)
                out = (await run.end()).answered()
            finally:
                run.cancel()
        sources = [
            Quoted(
                title=shown_name(cited.get("title", "")),
                quote=str(cited.get("quote", "")),
                passage_id=str(cited.get("passage_id", "")),
                source=source_place(cited.get("file"), cited.get("page")),
                supported=cited.get("supported"),
            )
            for cited in out["citations"]
        ]
        return Answered(
            answer=out["answer"],
            abstained=out["abstained"],
            suggestion=out["suggestion"],
            grounded=out["grounded"],
            sources=sources,
        )

    @server.tool(annotations=_READS)
    async def retrieve(
        query: Annotated[
            str, Field(max_length=wire.LONGEST_QUERY, description="What to search for.")
        ],
        context: Request,
        k: Annotated[
            int, Field(ge=1, le=_MOST_HITS, description="How many passages.")
        ] = 5,
        filter: wire.Only = None,
        retriever: Annotated[
            str, Field(max_length=wire.LONGEST_NAME, description=_RETRIEVERS)
        ] = "",
    ) -> list[Found]:
        """Search the documents once, and return the best passages, without an answer."""
        with _refusing():
            found = await service.retrieve(
                query, k, _caller(context), filter, retriever
            )
        return [
            Found(
                passage_id=hit.passage.id,
                title=shown_name(hit.passage.title),
                text=hit.passage.text,
                score=hit.score,
                source=source_place(hit.passage.file, hit.passage.page),
            )
            for hit in found.hits
        ]

    @server.tool(annotations=_READS)
    async def get_graph(
        entity: Annotated[
            str,
            Field(
                max_length=wire.LONGEST_NAME,
                description="The name of a person or thing.",
            ),
        ],
        context: Request,
        entities: Annotated[
            int,
            Field(ge=2, le=_MOST_ENTITIES, description="How many entities around it."),
        ] = 20,
    ) -> Around:
        """Show the facts of the documents' knowledge graph around an entity."""
        with _refusing():
            around = await service.reading.run(
                service.around, entity, entities, _caller(context)
            )
        return Around(
            entity=around.entity,
            facts=[
                [fact.subject, fact.predicate, fact.object] for fact in around.facts
            ],
            passage_ids=[
                [str(source["passage_id"]) for source in fact.sources]
                for fact in around.facts
            ],
        )

    return server


class OverHTTP:
    """Answers the requests of one path over the protocol's streamable HTTP, as an ASGI application.

    Each request has its own session manager. A shared manager would have to be started together with the
    application, but an application that mounts this one does not start it.
    """

    def __init__(self, server: MCPServer) -> None:
        self._server = _core_of(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = HTTPRequest(scope, receive)
        try:
            body = await received.body()
        except ClientDisconnect:  # the protocol's package would log it as an error
            return
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        # the guard of the HTTP server checks hosts and origins for all paths
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        manager = StreamableHTTPSessionManager(
            self._server, stateless=True, security_settings=security
        )
        async with manager.run():
            await manager.handle_request(scope, receive_again, send)


def _core_of(server: MCPServer) -> Any:
    """Return the low-level server inside `server`. With `server` itself, all requests would share one session
    manager.
    """
    return getattr(server, "_lowlevel_server", None) or server._mcp_server


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors in the block into tool errors with the messages of the REST paths. An unexpected error is
    only logged.
    """
    try:
        yield
    except Exception as error:
        raise ToolError(refusal(error)[1].error.message) from None


def _caller(context: Request) -> Caller:
    """Return the caller: over HTTP the one that the guard has admitted, over standard input the user of this
    process."""
    request = context.request_context.request
    caller = None if request is None else request.state.caller
    return caller or Caller()
