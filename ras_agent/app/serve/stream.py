"""Responses made of a run: server-sent events, or one JSON document. A client that leaves ends its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ras_agent.app.serve.errors import refusal
from ras_agent.app.serve.runs import Ended, Run
from ras_agent.records import JSON
from ras_agent.trace import json_document

STILL_HERE = b": still here\n\n"
"""What is sent while no event comes: proxies close silent connections."""


class RunStream(StreamingResponse):
    """Response that sends its headers at once and the text of a run's events as they happen.

    So clients and proxies know at once that the request was taken. What is refused is refused before there is a run;
    what fails in the run is told in its stream.
    """

    media_type = "text/event-stream"

    def __init__(self, run: Run, pieces: AsyncIterator[bytes]) -> None:
        super().__init__(pieces, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with ending_with_client(self._run, receive):  # Starlette may notice at the next piece alone
            await self.stream_response(send)


async def as_events(run: Run, thread: str) -> AsyncIterator[bytes]:
    """Yield a run's events as server-sent events.

    The last is `done` with the outputs, `review` with what waits for a decision, or `error`.
    """
    async for event in run.events():
        yield STILL_HERE if event is None else sse(event.to_dict(), event.type)
    try:
        ended = await run.end()
    except Exception as error:
        yield sse({**refusal(error)[1].error.model_dump(), "thread": thread}, "error")
    else:
        review = ended.review
        yield sse(ended.document(thread), "done") if review is None else sse({**review, "thread": thread}, "review")


def sse(data: JSON, name: str = "") -> bytes:
    """Encode data as a server-sent event, which may have a name."""
    return (f"event: {name}\n" * bool(name) + f"data: {json_document(data)}\n\n").encode()


async def ended_or_left(run: Run, receive: Receive) -> Ended:
    """Wait for the end of a run, which is cancelled if the client leaves first. Raises what `Run.end` raises."""
    async with ending_with_client(run, receive):
        return await run.end()


def json_response(data: JSON, status: int = 200) -> Response:
    """Return a JSON response for any data, also with lone surrogates or numbers that JSON lacks."""
    return Response(json_document(data), status, media_type="application/json")


@asynccontextmanager
async def ending_with_client(run: Run | asyncio.Task[Any], receive: Receive) -> AsyncIterator[None]:
    """Cancel a run, or other work, at the end of the block, and where its client leaves before."""

    async def cancel_when_left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        run.cancel()

    leaving = asyncio.create_task(cancel_when_left())
    try:
        yield
    finally:
        leaving.cancel()
        run.cancel()
