"""Implements OpenAI's Responses API, as far as questions need it: input, instructions, streams, earlier
responses.

A response is stored by default, as a turn of a thread; `previous_response_id` continues that thread.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ras_agent.app.serve.bodies import ApartRoute
from ras_agent.app.serve.chat import (
    MODEL,
    ONLY_TEXT,
    check_form,
    check_model,
    marks_of,
    web_citations,
)
from ras_agent.app.serve.errors import ApiError, refusal
from ras_agent.app.serve.page_tasks import reply_to_task
from ras_agent.app.serve.runs import (
    STILL_HERE,
    Run,
    RunStream,
    ended_or_left,
    json_response,
    sse,
)
from ras_agent.app.serve.wire import (
    MOST_MESSAGES,
    AskRequest,
    AsOf,
    Message,
    Messages,
    OffUnlessTold,
    Only,
    OnUnlessTold,
)
from ras_agent.contracts.events import AnswerToken
from ras_agent.contracts.records import JSON
from ras_agent.graphs.tool import answer_and_sources

router = APIRouter(prefix="/v1", tags=["OpenAI"], route_class=ApartRoute)
_ID = "resp_"
_messages: TypeAdapter[list[Message]] = TypeAdapter(Messages)


class _Format(BaseModel):
    model_config = ConfigDict(extra="allow")

    type: str = "text"


class _Text(BaseModel):
    model_config = ConfigDict(extra="allow")

    format: _Format | None = None


class ResponsesRequest(BaseModel):
    """Describes a request for a response. `filter`, `as_of` and `sources` are ras-agent's own fields, the
    others OpenAI's.
    """

    model_config = ConfigDict(extra="allow")

    model: str = MODEL
    input: (
        str
        | Annotated[
            list[dict[str, Any]], Field(max_length=MOST_MESSAGES, fail_fast=True)
        ]
    )
    instructions: str | None = None
    stream: OffUnlessTold = False
    store: OnUnlessTold = True
    previous_response_id: str | None = None
    filter: Only = None
    as_of: AsOf = None
    sources: OnUnlessTold = True
    text: _Text | None = None

    def messages(self) -> list[Message]:
        """Return the input as turns, without items that are not messages, such as earlier reasoning."""
        turns = (
            [Message(role="system", content=self.instructions)]
            if self.instructions
            else []
        )
        if isinstance(self.input, str):
            return [*turns, Message(role="user", content=self.input)]
        said = [item for item in self.input if item.get("role")]
        turns += _messages.validate_python(said)
        return turns


@router.post("/responses", response_model=None)
async def responses(body: ResponsesRequest, request: Request) -> Response:
    """Answer a question: one response, or with `stream` its events."""
    check_model(body.model)
    messages = body.messages()
    check_form(body.model_extra or {}, messages)
    if body.text and body.text.format and body.text.format.type != "text":
        raise ApiError(
            400,
            f"text.format: {ONLY_TEXT}; leave text.format out",
            "unsupported_value",
        )
    if not messages:
        raise ApiError(
            400,
            "input has no message of the user: add one with the role 'user'",
            "no_question",
        )
    thread = (
        _thread_of(body.previous_response_id)
        if body.previous_response_id
        else uuid4().hex
    )
    service = request.app.state.service
    caller = request.state.caller
    reply = _Response(body, str(request.base_url), thread)
    by_rule = reply_to_task(messages)
    if by_rule is not None:
        return reply.whole({"answer": by_rule, "citations": []})
    if body.previous_response_id:
        await service.thread(thread, caller)
    asked = AskRequest(
        messages=messages,
        filter=body.filter,
        as_of=body.as_of,
        review=[],
        stream=body.stream,
        thread=thread if body.store else None,
    )
    run: Run = (
        service.ask(asked, caller)[1] if body.store else service.ask_once(asked, caller)
    )
    if body.stream:
        return RunStream(run, reply.events(run))
    ended = await ended_or_left(run, request.receive)
    return reply.whole(ended.answered())


def _thread_of(response_id: str) -> str:
    """Return the thread of a response. Raises ApiError for an unknown id."""
    thread, _, turn = response_id.removeprefix(_ID).rpartition("_")
    if not (response_id.startswith(_ID) and thread and turn):
        raise ApiError(
            404,
            f"there is no response {response_id!r:.80}: send the whole conversation as input",
            "previous_response_not_found",
        )
    return thread


class _Response:
    """Makes the JSON objects and events of one response."""

    def __init__(self, body: ResponsesRequest, base_url: str, thread: str) -> None:
        self._body = body
        self._base_url = base_url
        self._id = f"{_ID}{thread}_{uuid4().hex[:12]}"
        self._message_id = f"msg_{uuid4().hex}"
        self._created = int(time.time())
        self._number = 0
        self._sent = ""

    def whole(self, outputs: JSON) -> Response:
        """Return a response that has ended, as a document or as its stream."""
        if not self._body.stream:
            return json_response(self._document("completed", outputs))
        events = [*self._beginning(), *self._ending(outputs)]
        return Response(b"".join(events), media_type="text/event-stream")

    async def events(self, run: Run) -> AsyncIterator[bytes]:
        """Yield the events of a run."""
        for event in self._beginning():
            yield event
        async for news in run.events():
            if news is None:
                yield STILL_HERE
            elif isinstance(news, AnswerToken):
                self._sent += news.text
                yield self._text_event(
                    "response.output_text.delta", delta=news.text, logprobs=[]
                )
        try:
            outputs = (await run.end()).answered()
        except Exception as error:
            problem = refusal(error)[1].error
            failed = self._document("failed", {"answer": "", "citations": []})
            failed["error"] = {
                "code": problem.code or "server_error",
                "message": problem.message,
            }
            yield self._event("response.failed", response=failed)
        else:
            for event in self._ending(outputs):
                yield event

    def _beginning(self) -> list[bytes]:
        begun = self._document("in_progress", None)
        item = {
            "id": self._message_id,
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        return [
            self._event("response.created", response=begun),
            self._event("response.in_progress", response=begun),
            self._event("response.output_item.added", output_index=0, item=item),
            self._text_event("response.content_part.added", part=_part("", [])),
        ]

    def _ending(self, outputs: JSON) -> list[bytes]:
        text = self._text(outputs)
        rest = text[len(self._sent) :] if text.startswith(self._sent) else f"\n\n{text}"
        document = self._document("completed", outputs)
        item = document["output"][0]
        deltas = (
            [self._text_event("response.output_text.delta", delta=rest, logprobs=[])]
            if rest
            else []
        )
        return [
            *deltas,
            self._text_event("response.output_text.done", text=text, logprobs=[]),
            self._text_event("response.content_part.done", part=item["content"][0]),
            self._event("response.output_item.done", output_index=0, item=item),
            self._event("response.completed", response=document),
        ]

    def _text_event(self, kind: str, **data: Any) -> bytes:
        return self._event(
            kind, content_index=0, output_index=0, item_id=self._message_id, **data
        )

    def _event(self, kind: str, **data: Any) -> bytes:
        numbered = {"type": kind, "sequence_number": self._number, **data}
        self._number += 1
        return sse(numbered, kind)

    def _text(self, outputs: JSON) -> str:
        return (
            answer_and_sources(outputs)
            if self._body.sources
            else str(outputs["answer"])
        )

    def _document(self, status: str, outputs: JSON | None) -> JSON:
        """Return the response as JSON. `outputs` is None before its end."""
        body = self._body
        output: list[JSON] = []
        if outputs is not None and status == "completed":
            citations = web_citations(outputs, self._base_url)
            annotations = [
                {"type": "url_citation", **citation} for citation in citations
            ]
            content = [_part(self._text(outputs), annotations)]
            item = {
                "id": self._message_id,
                "type": "message",
                "status": "completed",
                "role": "assistant",
            }
            output = [{**item, "content": content}]
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": body.instructions,
            "model": MODEL,
            "output": output,
            "parallel_tool_calls": False,
            "previous_response_id": body.previous_response_id,
            "store": body.store,
            "temperature": None,
            "top_p": None,
            "max_output_tokens": None,
            "truncation": "disabled",
            "tool_choice": "auto",
            "tools": [],
            "text": {"format": {"type": "text"}},
            "metadata": {},
            "usage": _usage(outputs) if outputs is not None else None,
            **marks_of(outputs or {}),
        }


def _part(text: str, annotations: list[JSON]) -> JSON:
    return {
        "type": "output_text",
        "text": text,
        "annotations": annotations,
        "logprobs": [],
    }


def _usage(outputs: JSON) -> JSON:
    usage = outputs.get("usage", {})
    tokens_in = usage.get("input_tokens", 0)
    tokens_out = usage.get("output_tokens", 0)
    return {
        "input_tokens": tokens_in,
        "input_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    }
