"""A run as server-sent events: each event by its type, then one that ends the stream."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import Response

from ras_agent.app.serve.failures import failure_of
from ras_agent.app.serve.runs import Ended, Run, Silence
from ras_agent.app.serve.wire import Receive, Scope, Send
from ras_agent.records import JSON
from ras_agent.trace import json_document

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(Response):
    """Sends a run's events to a client; the run ends when the client leaves.

    The last event is `done` with the outputs, `review` with what waits for a decision, or `error`.
    """

    media_type = "text/event-stream"

    def __init__(self, run: Run, thread: str) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._run, self._thread = run, thread

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(cancel_when_left(self._run, receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for event in self._run.events():
                sent = b": still here\n\n" if isinstance(event, Silence) else sse(event.type, event.to_dict())
                await send({"type": "http.response.body", "body": sent, "more_body": True})
            last = await self._last()
            await send({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            leaving.cancel()
            self._run.cancel()

    async def _last(self) -> bytes:
        try:
            ended = await self._run.end()
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return sse("error", {"message": "the run was cancelled", "type": "cancelled"})
        except Exception as error:
            return sse("error", failure_of(error).error.model_dump())
        return last_event(ended, self._thread)


def last_event(ended: Ended, thread: str) -> bytes:
    """Return the event that ends the stream of a run."""
    if ended.review is not None:
        return sse("review", {**ended.review, "thread": thread})
    return sse("done", {**ended.outputs, "thread": thread})


def sse(name: str, data: JSON) -> bytes:
    """Return one event as it goes over the wire."""
    return f"event: {name}\ndata: {json_document(data)}\n\n".encode()


async def cancel_when_left(run: Run, receive: Receive) -> None:
    """Cancel the run when the client closes the connection."""
    message: Any = {}
    while message.get("type") != "http.disconnect":
        message = await receive()
    run.cancel()
