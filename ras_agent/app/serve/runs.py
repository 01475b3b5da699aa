"""Runs an agent for one request, and makes responses from its events and its end.

If the client leaves, its run is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from fastapi.responses import Response, StreamingResponse
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from starlette.types import Receive, Scope, Send

from ras_agent.app.serve.errors import ApiError, refusal, without_places
from ras_agent.app.serve.half_open import STREAMS
from ras_agent.contracts.events import Event, Failed
from ras_agent.contracts.records import JSON
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.nodes import SEARCH_FAILED
from ras_agent.graphs.state import Outputs
from ras_agent.running.budget import Limits
from ras_agent.running.calling import raise_if_cancelled
from ras_agent.running.trace import json_document

STILL_HERE = b": still here\n\n"
"""A comment that is sent after _SILENCE seconds without an event, because proxies close silent connections."""
_SILENCE = 15.0
# seconds for all checkpoints of a run together
_TO_STORE = 15.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Holds the end of a run. `review` is the value of the interrupt at which it waits for a decision, or None."""

    outputs: JSON
    review: JSON | None = None

    @property
    def problem(self) -> ApiError | None:
        """Return the error to report if no answer could be made, because the text in its place is no answer;
        else None.
        """
        failed = self.outputs.get("failed")
        if not failed:
            return None
        said = f"no answer: {failed}"
        if self.outputs["stop_reason"] == "model_refused":
            return ApiError(503, said, "model_unavailable")
        if failed == SEARCH_FAILED:
            return ApiError(503, said, "index_unavailable")
        return ApiError(502, said, "no_answer")

    def answered(self) -> JSON:
        """Return the outputs. Raises ApiError if no answer could be made."""
        if problem := self.problem:
            raise problem
        return self.outputs

    def document(self, thread: str) -> JSON:
        """Return the JSON document that replies to a question: the outputs, `thread`, and `review` if the run waits."""
        return {
            **self.outputs,
            **({} if self.review is None else {"review": self.review}),
            "thread": thread,
        }


class Run:
    """Runs an agent in its own task, which does not wait for a slow reader of its events.

    `cancel` ends it together with the running model call. It can be resumed from the thread's last checkpoint.
    """

    def __init__(
        self,
        agent: Agent,
        inputs: Any,
        config: RunnableConfig,
        limits: Limits,
        *,
        caller: str,
        turn: AbstractAsyncContextManager[None],
        ended: Callable[[], object],
        check: Callable[[], Awaitable[object]],
    ) -> None:
        """Start the run of a caller.

        Args:
            turn: entered before the run starts, and left at its end.
            ended: called at the end of the run.
            check: raises an error if the index is gone.
        """
        self.caller = caller
        self._news: asyncio.Queue[Event | None] = asyncio.Queue()  # None after the last
        self._turn = turn
        self._check = check
        self._why_cancelled = ApiError(
            499, "the client has left, so the run was cancelled", "cancelled"
        )
        self._task = asyncio.create_task(self._run(agent, inputs, config, limits))
        self._task.add_done_callback(lambda _: self._news.put_nowait(None))
        self._task.add_done_callback(lambda _: ended())

    def cancel(self) -> None:
        """Cancel the run, unless it has ended."""
        self._task.cancel()

    def end_with_server(self) -> None:
        """Cancel the run, and tell its callers that the server is shutting down."""
        self._why_cancelled = ApiError(
            503, "the server is shutting down: ask again soon", "ending"
        )
        self.cancel()

    async def events(self) -> AsyncIterator[Event | None]:
        """Yield the events of the run, and None after _SILENCE seconds without an event."""
        while True:
            try:
                async with asyncio.timeout(_SILENCE):
                    event = await self._news.get()
            except TimeoutError:
                yield None
            else:
                if event is None:
                    return
                yield event

    async def end(self) -> Ended:
        """Wait for the end of the run. Raises the run's error, and ApiError if the run was cancelled."""
        await asyncio.wait({self._task})
        if self._task.cancelled():
            raise self._why_cancelled
        return self._task.result()

    async def _run(
        self, agent: Agent, inputs: Any, config: RunnableConfig, limits: Limits
    ) -> Ended:
        state: JSON = {}
        review: JSON | None = None
        # each step is stored before the next begins, so that a step that cannot be stored ends the run at once
        how: dict[str, Any] = {"durability": "sync"} if agent.checkpointer else {}
        stream: Any = agent.astream(
            inputs, config, context=limits, stream_mode=["custom", "values"], **how
        )
        # the agent's own time limit does not include storing its state
        async with (
            self._turn,
            asyncio.timeout(limits.max_seconds and limits.max_seconds + _TO_STORE),
        ):
            async for kind, payload in stream:
                if isinstance(payload, Failed):
                    failure = replace(
                        payload.failure, message=without_places(payload.failure.message)
                    )
                    self._news.put_nowait(Failed(failure))
                elif kind == "custom":
                    self._news.put_nowait(payload)
                else:
                    state = payload
                    review = next(
                        (
                            interrupt.value
                            for interrupt in payload.get("__interrupt__", ())
                        ),
                        None,
                    )
        raise_if_cancelled()
        if not state.get("passages") and any(
            failure["role"] == "retriever" for failure in state.get("failures", ())
        ):
            await self._check()  # otherwise the answer would say that nothing was found
        return Ended(outputs_of(state), review)


def outputs_of(state: JSON) -> JSON:
    """Return the agent's outputs in a state, as plain JSON for callers."""
    outputs = {name: state[name] for name in Outputs.__annotations__ if name in state}
    failures = [
        {**failure, "message": without_places(failure["message"])}
        for failure in outputs.get("failures", ())
    ]
    messages = [_turn(message) for message in outputs.get("messages", ())]
    return {
        **outputs,
        "messages": messages,
        **({"failures": failures} if failures else {}),
    }


def _turn(message: BaseMessage) -> JSON:
    """Return a message in OpenAI's form. An answer includes its citations."""
    role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    return {"role": role, "content": message.text, **message.additional_kwargs}


class RunStream(StreamingResponse):
    """Sends its headers at once, and the text of a run's events as they happen.

    So clients and proxies know at once that the request was accepted. A request is refused before its run
    begins; failures of the run are reported in the stream.
    """

    media_type = "text/event-stream"

    def __init__(self, run: Run, pieces: AsyncIterator[bytes]) -> None:
        super().__init__(
            pieces, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[STREAMS] = True
        # Starlette alone may notice only at the next piece that the client has left
        async with ending_with_client(self._run, receive):
            await self.stream_response(send)


async def as_events(run: Run, thread: str) -> AsyncIterator[bytes]:
    """Yield a run's events as server-sent events.

    The last one is `done` with the outputs, `review` with the pending decision, or `error`. If the run has
    ended without an answer, `error` has the outputs too.
    """
    async for event in run.events():
        yield STILL_HERE if event is None else sse(event.to_dict(), event.type)
    try:
        ended = await run.end()
    except Exception as error:
        yield sse({**refusal(error)[1].error.model_dump(), "thread": thread}, "error")
        return
    if ended.review is not None:
        yield sse({**ended.review, "thread": thread}, "review")
        return
    document = ended.document(thread)
    if ended.problem is None:
        yield sse(document, "done")
    else:
        yield sse({**refusal(ended.problem)[1].error.model_dump(), **document}, "error")


def sse(data: JSON, name: str = "") -> bytes:
    """Encode data as a server-sent event, with an optional name."""
    return (
        f"event: {name}\n" * bool(name) + f"data: {json_document(data)}\n\n"
    ).encode()


async def ended_or_left(run: Run, receive: Receive) -> Ended:
    """Wait for the end of a run, which is cancelled if the client leaves first.

    `receive` is the ASGI function that reports that the client has left. Raises as `Run.end` does.
    """
    async with ending_with_client(run, receive):
        return await run.end()


def json_response(data: JSON, status: int = 200) -> Response:
    """Return a JSON response for any data, even with lone surrogates or numbers that JSON cannot hold."""
    return Response(json_document(data), status, media_type="application/json")


@asynccontextmanager
async def ending_with_client(
    run: Run | asyncio.Task[Any], receive: Receive
) -> AsyncIterator[None]:
    """Cancel a run, or another task, at the end of the block, or earlier if its client leaves."""

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
