"""Implements OpenAI's API: the agent as a chat model, for programs and chat pages that use this API.

One run of the agent answers a conversation. Temperature and similar options are ignored, because they do not
apply to a run; options that would change the form of the answer are honoured or refused. A run without an
answer gives an error, never a text that looks like an answer.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ras_agent.app.serve.bodies import ApartRoute
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
    AskRequest,
    AsOf,
    Message,
    Messages,
    OffUnlessTold,
    Only,
    OnUnlessTold,
    Stops,
    Tokens,
)
from ras_agent.contracts.events import AnswerToken, Event, Hits, Planned, Rewritten
from ras_agent.contracts.records import JSON
from ras_agent.graphs.tool import answer_and_sources
from ras_agent.text.lines import one_line, shown_name
from ras_agent.text.markup import inert_markup, web_address
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.endings import finish_reason

MODEL = "ras-agent"
_MODEL: JSON = {"id": MODEL, "object": "model", "created": 0, "owned_by": "ras-agent"}

router = APIRouter(prefix="/v1", tags=["OpenAI"], route_class=ApartRoute)


class ChatRequest(BaseModel):
    """Describes a request for a chat completion. `filter`, `as_of` and `sources` are ras-agent's own fields,
    the others OpenAI's.

    max_tokens, max_completion_tokens and stop limit the reply's text, including its sources; tokens are
    estimated. `sources` tells whether the text names its sources; annotations always do.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    messages: Messages = Field(min_length=1)
    stream: OffUnlessTold = False
    stream_options: dict[str, Any] | None = None
    max_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    stop: Stops = ()
    filter: Only = None
    as_of: AsOf = None
    sources: OnUnlessTold = True


ONLY_TEXT = (
    "answers are text, and a schema of yours is not filled in; POST /api/ask returns the answer with its citations as "
    "JSON, or let your own model write the schema from the answer"
)
# fields that would change the form of an answer: the values that are accepted, and the remedy for others
_FORMS: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "one answer is given"),
    "tools": (([],), "the agent calls no tools of yours, unless tool_choice is 'none'"),
    "functions": (([],), "the agent calls no functions of yours"),
    "tool_choice": (("auto", "none"), "the agent calls no tools of yours"),
    "function_call": (("auto", "none"), "the agent calls no functions of yours"),
    "response_format": (({"type": "text"},), ONLY_TEXT),
    "modalities": ((["text"],), "answers are text"),
    "audio": ((), "answers are text"),
    "logprobs": ((False,), "an answer has no probabilities of its tokens"),
}


@router.get("/models")
async def models() -> JSON:
    """List the one model, which is the agent."""
    return {"object": "list", "data": [_MODEL]}


@router.get("/models/{name}")
async def model(name: str) -> JSON:
    """Describe the model."""
    check_model(name)
    return _MODEL


@router.post("/chat/completions", response_model=None)
async def chat_completions(body: ChatRequest, request: Request) -> Response:
    """Answer a conversation: one completion, or with `stream` its chunks."""
    check_model(body.model)
    check_form(body.model_extra or {}, body.messages)
    reply = _Completion(body, str(request.base_url))
    by_rule = reply_to_task(body.messages)
    if by_rule is not None:
        outputs = {"answer": by_rule, "citations": []}
        if body.stream:
            return Response(
                b"".join(reply.end(outputs)), media_type="text/event-stream"
            )
        return json_response(reply.document(outputs))
    asked = AskRequest(
        messages=body.messages,
        filter=body.filter,
        as_of=body.as_of,
        review=[],
        stream=body.stream,
    )
    run: Run = request.app.state.service.ask_once(asked, request.state.caller)
    if body.stream:
        return RunStream(run, reply.chunks(run))
    ended = await ended_or_left(run, request.receive)
    return json_response(reply.document(ended.answered()))


class _Completion:
    """Makes the JSON objects of one completion."""

    def __init__(self, body: ChatRequest, base_url: str) -> None:
        kind = "chat.completion.chunk" if body.stream else "chat.completion"
        self._about = {
            "id": f"chatcmpl-{uuid4().hex}",
            "object": kind,
            "created": int(time.time()),
            "model": MODEL,
        }
        self._usage = bool((body.stream_options or {}).get("include_usage"))
        self._base_url = base_url
        self._sources = body.sources
        limits = [
            limit for limit in (body.max_tokens, body.max_completion_tokens) if limit
        ]
        self._most = min(limits, default=None)
        self._stops = body.stop
        self._sent = ""
        self._begun = False

    def document(self, outputs: JSON) -> JSON:
        """Return the complete completion, which is not streamed."""
        text, finish = self._text(outputs)
        message = {
            "role": "assistant",
            "content": text,
            "refusal": None,
            **self._marks(outputs),
        }
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": finish,
            "logprobs": None,
        }
        return {**self._about, "choices": [choice], "usage": _usage(outputs)}

    async def chunks(self, run: Run) -> AsyncIterator[bytes]:
        """Yield the chunks of a run: its searches as reasoning, the answer as it is written, then its
        citations.
        """
        written = ""
        hold = max(map(len, self._stops), default=1) - 1
        async for event in run.events():
            if event is None:
                yield STILL_HERE
            elif isinstance(event, AnswerToken):
                written += event.text
                text, finish = self._cut(written)
                # the end of the text may be the beginning of a stop string
                text = text if finish or not hold else text[:-hold]
                if len(text) > len(self._sent):
                    yield self._chunk({"content": text[len(self._sent) :]})
                    self._sent = text
            elif thought := _thought(event):
                yield self._chunk({"reasoning_content": thought})
        try:
            outputs = (await run.end()).answered()
        except Exception as error:
            yield sse(refusal(error)[1].model_dump())
            yield b"data: [DONE]\n\n"
        else:
            for chunk in self.end(outputs):
                yield chunk

    def end(self, outputs: JSON) -> list[bytes]:
        """Return the chunks for the part of the answer that was not streamed, and for the end.

        If the answer does not begin with the text that was sent, the whole answer follows as a new paragraph:
        sent text cannot be taken back if a model breaks off and another one replaces it.
        """
        text, finish = self._text(outputs)
        rest = text[len(self._sent) :] if text.startswith(self._sent) else f"\n\n{text}"
        chunks = [self._chunk({"content": rest})] if rest else []
        chunks += [self._chunk(self._marks(outputs)), self._chunk({}, finish)]
        if self._usage:
            chunks.append(sse({**self._about, "choices": [], "usage": _usage(outputs)}))
        return [*chunks, b"data: [DONE]\n\n"]

    def _text(self, outputs: JSON) -> tuple[str, str]:
        """Return the text of an answer, and the finish reason."""
        text, finish = self._cut(
            answer_and_sources(outputs) if self._sources else outputs["answer"]
        )
        failures = outputs.get("failures", ())
        return text, finish or finish_reason(
            one["message"] for one in failures if one["role"] == "answerer"
        )

    def _cut(self, text: str) -> tuple[str, str]:
        """Return the text cut at a stop string or at the token limit, and the finish reason, which is "" if
        nothing was cut.
        """
        end = min(
            (place for stop in self._stops if (place := text.find(stop)) >= 0),
            default=None,
        )
        finish = "stop"
        text = text[:end]
        if self._most is not None and estimate_tokens(text) > self._most:
            end = (
                bisect_right(
                    range(len(text)),
                    self._most,
                    key=lambda n: estimate_tokens(text[:n]),
                )
                - 1
            )
            finish = "length"
        return text[:end], "" if end is None else finish

    def _chunk(self, delta: JSON, finish: str | None = None) -> bytes:
        delta = delta if self._begun else {"role": "assistant", "content": "", **delta}
        self._begun = True
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        usage = {"usage": None} if self._usage else {}
        return sse({**self._about, "choices": [choice], **usage})

    def _marks(self, outputs: JSON) -> JSON:
        """Return the further fields of a message: its citations, and whether it is an answer that citations
        support.
        """
        citations = web_citations(outputs, self._base_url)
        annotations = [
            {"type": "url_citation", "url_citation": citation} for citation in citations
        ]
        return {"annotations": annotations, **marks_of(outputs)}


def marks_of(outputs: JSON) -> JSON:
    """Return the ras-agent fields of a reply: `abstained`, `suggestion` and `grounded`, as far as the outputs have
    them.
    """
    marks: JSON = {}
    for name in ("abstained", "suggestion", "grounded"):
        if name in outputs:
            marks[name] = outputs[name]
    return marks


def web_citations(outputs: JSON, base_url: str) -> list[JSON]:
    """Return an answer's citations as OpenAI's `url_citation` objects, without those that do not support the
    answer.

    A passage that comes from no web page gets an address on this server, under `base_url`.
    """
    end = len(outputs.get("answer", ""))
    citations = []
    for citation in outputs.get("citations", ()):
        if citation.get("supported") is False:
            continue
        passage = outputs["passages"].get(citation["passage_id"], {})
        title = inert_markup(
            shown_name(
                citation["title"] or citation.get("file") or citation["passage_id"]
            )
        )
        address = _address(passage, base_url)
        citations.append(
            {"url": address, "title": title, "start_index": 0, "end_index": end}
        )
    return citations


def _thought(event: Event) -> str:
    """Return a paragraph that describes an event of the search; "" for other events."""
    match event:
        case Rewritten(standalone=question):
            line = f"Understood as: {question}"
        case Planned(hop=hop, plan=plan) if plan.subquery:
            searches = enumerate(plan.subqueries, start=hop)
            line = "\n\n".join(f"Search {at}: {subquery}" for at, subquery in searches)
        case Hits(hits=hits):
            found = [hit.passage for hit in hits]
            names = dict.fromkeys(
                shown_name(one.title or one.document_id or one.id) for one in found
            )
            line = f"Found: {', '.join(names) or 'nothing'}"
        case _:
            return ""
    return inert_markup(f"{one_line(line)}\n\n")


def _address(passage: JSON, base_url: str) -> str:
    metadata = passage.get("metadata", {})
    for name in ("url", "source"):
        if address := web_address(str(metadata.get(name, ""))):
            return address
    return f"{base_url}api/passages/{quote(str(passage.get('id', '')), safe='')}"


def _usage(outputs: JSON) -> JSON:
    usage = outputs.get("usage", {})
    prompt = usage.get("input_tokens", 0)
    reply = usage.get("output_tokens", 0)
    tokens = {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }
    return {
        **tokens,
        "prompt_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
    }


def check_model(name: str) -> None:
    """Raise ApiError with status 404 if `name` is not the name of the agent's model."""
    if name != MODEL:
        raise ApiError(
            404,
            f"there is no model {name!r}: set model to {MODEL!r}",
            "model_not_found",
        )


def check_form(given: Mapping[str, Any], messages: Sequence[Message]) -> None:
    """Raise ApiError if a request asks for an answer that is not text, or if its messages hold more than text.

    `given` has the fields of the request.
    """
    for name, (values, remedy) in _FORMS.items():
        value = given.get(name)
        if (
            value is not None
            and value not in values
            and not (name == "tools" and given.get("tool_choice") == "none")
        ):
            raise ApiError(
                400, f"{name}: {remedy}; leave {name} out", "unsupported_value"
            )
    if kinds := {kind for turn in messages for kind in turn.other_parts}:
        wrong = f"messages: the agent reads text, not {', '.join(sorted(kinds))}; leave these parts out"
        raise ApiError(400, wrong, "unsupported_value")
