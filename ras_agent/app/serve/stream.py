"""Responses made of a run: server-sent events, or one JSON document. A client that leaves ends its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import Response

from ras_agent.app.serve.errors import ApiError, refusal
from ras_agent.app.serve.runs import Ended, Run, Silence
from ras_agent.app.serve.wire import Receive, Scope, Send
from ras_agent.records import JSON
from ras_agent.trace import json_document


class RunStream(Response):
    """Response that streams the text of a run's events."""

    media_type = "text/event-stream"

    def __init__(self, run: Run, pieces: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._run, self._pieces = run, pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(_cancel_when_left(self._run, receive))
        try:
            first = await anext(self._pieces, b"")  # what fails before it is an error with a status of its own
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()
            self._run.cancel()


async def as_events(run: Run, thread: str) -> AsyncIterator[bytes]:
    """Yield a run's events as server-sent events.

    The last is `done` with the outputs, `review` with what waits for a decision, or `error`.
    """
    async for event in run.events():
        yield b": still here\n\n" if isinstance(event, Silence) else sse(event.to_dict(), event.type)
    try:
        ended = await run.end()
    except asyncio.CancelledError:
        raise_if_own_task_is_cancelled()
        yield sse({"message": "the run was cancelled", "type": "cancelled", "thread": thread}, "error")
    except Exception as error:
        yield sse({**refusal(error)[1].error.model_dump(), "thread": thread}, "error")
    else:
        review = ended.review
        yield sse(ended.document(thread), "done") if review is None else sse({**review, "thread": thread}, "review")


def sse(data: JSON, name: str = "") -> bytes:
    """Encode data as a server-sent event, which may have a name."""
    return (f"event: {name}\n" * bool(name) + f"data: {json_document(data)}\n\n").encode()


async def ended_or_left(run: Run, receive: Receive) -> Ended:
    """Wait for the end of a run, which is cancelled if the client leaves first.

    Raises ApiError then, else what the run raised.
    """
    leaving = asyncio.create_task(_cancel_when_left(run, receive))
    try:
        return await run.end()
    except asyncio.CancelledError:
        raise_if_own_task_is_cancelled()
        raise ApiError(499, "the client has left, so the run was cancelled", "cancelled") from None
    finally:
        leaving.cancel()
        run.cancel()


def json_response(data: JSON, status: int = 200) -> Response:
    """Return a JSON response for any data, also with lone surrogates or numbers that JSON lacks."""
    return Response(json_document(data), status, media_type="application/json")


def raise_if_own_task_is_cancelled() -> None:
    """Raise CancelledError where it was this task that was cancelled, and not the one that was waited for."""
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError


async def _cancel_when_left(run: Run, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    run.cancel()
