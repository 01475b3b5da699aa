"""OpenAI's protocol: the agent as a chat model, for programs and chat pages that speak it.

A conversation is answered by one run of the agent. What tunes a model's sampling means nothing to it and is passed
over; what would change the form of the answer is refused.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.errors import ApiError, refusal
from ras_agent.app.serve.runs import Ended, Run, Silence
from ras_agent.app.serve.service import Service
from ras_agent.app.serve.stream import RunStream, ended_or_left, json_response, raise_if_own_task_is_cancelled
from ras_agent.app.serve.wire import Message
from ras_agent.events import AnswerToken
from ras_agent.records import JSON
from ras_agent.trace import json_document

MODEL = "ras-agent"
# what Open WebUI asks the chat's own model for besides answers; a run over the index would answer none of it
_TASK, _HISTORY = "### Task:", "<chat_history>"
_LONGEST_TITLE = 50

router = APIRouter(prefix="/v1", tags=["OpenAI"])


class StreamOptions(BaseModel):
    """Options of a streamed completion."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """Request for a chat completion. `filter` is ours, the rest OpenAI's."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[Message] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    filter: dict[str, Any] | None = None


@router.get("/models")
async def models() -> JSON:
    """List the one model, which is the agent."""
    return {"object": "list", "data": [_model()]}


@router.get("/models/{name}")
async def model(name: str) -> JSON:
    """Describe the model."""
    _check_model(name)
    return _model()


@router.post("/chat/completions", response_model=None)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """Answer a conversation: one completion, or with `stream` its chunks."""
    _check_model(body.model)
    _check_form(body)
    reply = _Completion(body, str(request.base_url))
    last = body.messages[-1].text
    if last.startswith(_TASK) and _HISTORY in last:
        text = json.dumps(task_reply(last), ensure_ascii=False)
        if body.stream:
            return Response(b"".join(reply.replay(text)), media_type="text/event-stream")
        return json_response(reply.document(text, {}))
    service: Service = request.app.state.service
    caller: Caller = request.state.caller
    run = service.ask_once(body.messages, caller, body.filter)
    if body.stream:
        return RunStream(run, reply.chunks(run))
    ended = await ended_or_left(run, request.receive)
    return json_response(reply.document(ended.outputs["answer"], ended.outputs))


def task_reply(prompt: str) -> JSON:
    """Answer a task of a chat page about the chat itself, by rule: a title, tags, further questions.

    The prompt asks for JSON with one key. A title is the user's question; of the rest there is none.
    """
    task = prompt.partition("### Output")[2] or prompt
    if '"title"' in task:
        return {"title": _title(prompt)}
    if '"tags"' in task:
        return {"tags": ["General"]}
    if '"follow_ups"' in task:
        return {"follow_ups": []}
    return {"queries": []} if '"queries"' in task else {"text": ""}


def _title(prompt: str) -> str:
    history = prompt.partition(_HISTORY)[2].partition("</chat_history>")[0]
    title = next((line[5:].strip() for line in history.splitlines() if line.startswith("USER:")), "")
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1].rsplit(' ', 1)[0]}…"


class _Completion:
    """Maker of the objects of one completion."""

    def __init__(self, body: ChatRequest, base_url: str) -> None:
        self._about = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": body.model}
        self._usage = bool(body.stream_options and body.stream_options.include_usage)
        self._base_url = base_url

    def document(self, text: str, outputs: JSON) -> JSON:
        """Return the whole completion."""
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": self._annotations(outputs)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._about, "object": "chat.completion", "choices": [choice], "usage": _usage(outputs)}

    def replay(self, text: str, outputs: JSON | None = None) -> list[bytes]:
        """Return all chunks of an answer that is already complete."""
        return [self._chunk({"role": "assistant", "content": ""}), self._chunk({"content": text}), *self._end(outputs)]

    async def chunks(self, run: Run) -> AsyncIterator[bytes]:
        """Yield the chunks of a run: the answer as it is written, then its citations."""
        streamed = ""
        yield self._chunk({"role": "assistant", "content": ""})
        async for event in run.events():
            if isinstance(event, Silence):
                yield b": still here\n\n"
            elif isinstance(event, AnswerToken):
                streamed += event.text
                yield self._chunk({"content": event.text})
        try:
            ended = await run.end()
        except asyncio.CancelledError:
            raise_if_own_task_is_cancelled()
            return
        except Exception as error:
            yield _data(refusal(error)[1].model_dump())
            yield b"data: [DONE]\n\n"
            return
        rest = _rest(streamed, ended)
        if rest:
            yield self._chunk({"content": rest})
        for chunk in self._end(ended.outputs):
            yield chunk

    def _end(self, outputs: JSON | None) -> list[bytes]:
        annotations = self._annotations(outputs or {})
        chunks = [self._chunk({"annotations": annotations})] if annotations else []
        chunks.append(self._chunk({}, "stop"))
        if self._usage:
            chunks.append(_data({**self._about, **_CHUNK, "choices": [], "usage": _usage(outputs or {})}))
        return [*chunks, b"data: [DONE]\n\n"]

    def _chunk(self, delta: JSON, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        usage = {"usage": None} if self._usage else {}
        return _data({**self._about, **_CHUNK, "choices": [choice], **usage})

    def _annotations(self, outputs: JSON) -> list[JSON]:
        """Return the citations as OpenAI has those of web pages. A passage without a web address has one here."""
        text, annotations = outputs.get("answer", ""), []
        for citation in outputs.get("citations", ()):
            passage = outputs["passages"].get(citation["passage_id"], {})
            about = {
                "url": _address(passage, self._base_url),
                "title": citation["title"] or citation.get("file") or citation["passage_id"],
                "start_index": 0,
                "end_index": len(text),
            }
            annotations.append({"type": "url_citation", "url_citation": about})
        return annotations


_CHUNK = {"object": "chat.completion.chunk"}


def _rest(streamed: str, ended: Ended) -> str:
    """Return the part of the answer that was not streamed.

    It is the whole answer, as a paragraph of its own, if that begins otherwise than the streamed text.
    """
    answer: str = ended.outputs["answer"]
    # a model may break off and another answer; what was sent cannot be taken back
    return answer[len(streamed) :] if answer.startswith(streamed) else f"\n\n{answer}"


def _address(passage: JSON, base_url: str) -> str:
    from urllib.parse import quote

    metadata = passage.get("metadata", {})
    for name in ("url", "source"):
        if str(metadata.get(name, "")).startswith(("https://", "http://")):
            return str(metadata[name])
    return f"{base_url}api/passages/{quote(str(passage.get('id', '')), safe='')}"


def _usage(outputs: JSON) -> JSON:
    usage = outputs.get("usage", {})
    prompt, reply = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
        "prompt_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
    }


def _data(data: JSON) -> bytes:
    return f"data: {json_document(data)}\n\n".encode()


def _model() -> JSON:
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "ras-agent"}


def _check_model(name: str) -> None:
    if name != MODEL:
        raise ApiError(404, f"there is no model {name!r}: the one here is {MODEL!r}", "model_not_found")


def _check_form(body: ChatRequest) -> None:
    """Raise ApiError for a request for another form of answer than text."""
    form = (body.response_format or {}).get("type", "text")
    for wrong, remedy in (
        ((body.n or 1) > 1, "n: one answer is given; leave n away"),
        (form != "text", f"response_format: answers are text, not {form!r}; leave response_format away"),
        (body.tool_choice not in (None, "auto", "none"), "tool_choice: the agent calls no tools of yours"),
    ):
        if wrong:
            raise ApiError(400, remedy, "unsupported")
