"""Sends turns to a LangChain model, and reads its message, whole or streamed, as a Reply.

A Reply has the message's text, ending, tool calls and cost, with secrets masked.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ras_agent.prompts import ToolCall, Turn
from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.running.calling import in_thread
from ras_agent.text.normal_form import encodable
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.endings import (
    LENGTH,
    REFUSAL,
    REPEATED,
    kind_of,
    reason_in,
    refusal_in,
    shortfall,
)
from ras_agent.tools.chat.http import BrokenReply, RefusedReply, in_shared_loop
from ras_agent.tools.chat.names import answering_model
from ras_agent.tools.chat.repeats import Repeats, repeated_at
from ras_agent.tools.chat.runnables import (
    chat_models_in,
    class_names,
    our_model,
    plays_a_model,
)
from ras_agent.tools.chat.secrets import HeldSecrets, secrets_of
from ras_agent.tools.chat.tool_calls import calls_in_message
from ras_agent.tools.chat.waits import causes

_LOOP_IS_OVER = "Event loop is closed"
# LangChain's message if a server sends a whole reply though it was asked for a stream
_NO_STREAM = "No generation chunks were returned"
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)


async def ask(model: Any, request: Request, *, streamed: bool) -> Any:
    """Return a LangChain model's message for a request. A reply that is not streamed is passed to `on_text` as a
    whole.

    Connections of other packages' models may be tied to their callers' event loops. So their synchronous methods
    are called in a thread if this runs in the event loop that synchronous callers share, or if a connection's event
    loop is closed.
    """
    if in_shared_loop() and our_model(model) is None:
        return await _ask(model, _InThread(model), request, streamed)
    try:
        return await _ask(model, model, request, streamed)
    except Exception as error:
        if not _is_of_an_ended_loop(error):
            raise
    return await _ask(model, _InThread(model), request, streamed)


def _is_of_an_ended_loop(error: Exception) -> bool:
    return any(_LOOP_IS_OVER in str(cause) for cause in causes(error))


async def _ask(model: Any, asked: Any, request: Request, streamed: bool) -> Any:
    messages = _messages(model, request)
    options = graph_of(model, request)
    with _malformed_replies_named(model):
        gathered = _Gathered(request.on_text, secrets_of(model))
        if streamed:
            with gathered.reading():
                async for chunk in asked.astream(messages, **options):
                    if gathered.add(chunk):
                        break
            if gathered.chunks:
                return gathered.message()
        return gathered.whole(await asked.ainvoke(messages, **options))


class _InThread:
    """Offers a model's synchronous methods as coroutines; each call runs in a new thread.

    A thread cannot be cancelled: if the caller gives up, a stream stops at its next piece, and any other call runs on
    until its client's timeout.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    async def ainvoke(self, messages: list[Any], **options: Any) -> Any:
        return await asyncio.wrap_future(
            in_thread(partial(self._model.invoke, messages, **options))
        )

    async def astream(self, messages: list[Any], **options: Any) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Any] = asyncio.Queue()
        dropped = threading.Event()

        def hand_over(piece: Any) -> None:
            if not dropped.is_set():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        def read() -> None:
            try:
                for piece in self._model.stream(messages, **options):
                    if dropped.is_set():
                        return
                    hand_over(piece)
            finally:
                hand_over(None)

        reading = in_thread(read)
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await asyncio.wrap_future(reading)
        finally:
            dropped.set()


class _Gathered:
    """Collects a reply's pieces, and calls `on_text` with the text so far, without secrets."""

    def __init__(
        self, on_text: Callable[[str], None] | None, secrets: HeldSecrets
    ) -> None:
        self.chunks: list[Any] = []
        self._on_text = on_text
        self._secrets = secrets
        self._text = ""
        self._masked = ""
        self._settled = 0
        self._repeats = Repeats()

    def add(self, chunk: Any) -> bool:
        """Add a piece, and return whether the text now repeats itself, so that reading can stop."""
        self.chunks.append(chunk)
        self._text = bounded(self._text + text_of(chunk))
        masked, length = self._secrets.settled(self._text[self._settled :])
        self._masked += masked
        self._settled += length
        if self._on_text:
            self._on_text(self._masked)
        return self._repeats.place_in(self._text) is not None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Ignore an error that comes after the whole reply, or that only says that the server does not stream."""
        try:
            yield
        except Exception as error:
            no_stream = isinstance(error, ValueError) and _NO_STREAM in str(error)
            is_whole = any(map(reason_in, self.chunks))
            if not no_stream and not is_whole:
                raise

    def message(self) -> Any:
        """Return all pieces as one message."""
        first, *others = self.chunks
        if isinstance(first, str):
            return self._text
        return first + others if others else first

    def whole(self, message: Any) -> Any:
        """Pass a whole message's text to `on_text`, and return the message."""
        if self._on_text:
            self._on_text(self._secrets.masked(text_of(message)))
        return message


@contextmanager
def _malformed_replies_named(model: Any) -> Iterator[None]:
    """Replace the unclear errors that ChatOpenAI raises for a malformed reply, such as an error with status 200.

    Raises BrokenReply, or RefusedReply if the account is exhausted.
    """
    try:
        yield
    except _UNREADABLE as error:
        is_named = _NO_STREAM in str(error) or isinstance(error, json.JSONDecodeError)
        if is_named or not _is_chat_openai(model):
            raise
        # pydantic's errors have no args
        reason = error.args[0] if error.args else str(error)
        kind: type[Exception] = BrokenReply
        message = f"the reply does not have the form of one: {reason}"
        if isinstance(reason, Mapping):
            said = reason.get("message", reason)
            message = f"the server replied with an error: {said}"
            if reason.get("code") == "insufficient_quota":
                kind = RefusedReply
        raise kind(message) from error


def _is_chat_openai(model: Any) -> bool:
    kinds = map(class_names, chat_models_in(model))
    return any("BaseChatOpenAI" in names for names in kinds)


def graph_of(model: Any, request: Request) -> dict[str, Any]:
    """Return the keyword argument that passes the request's facts to a model; {} for a model that reads only text."""
    models = chat_models_in(model)
    if models and all(getattr(one, "reads_graphs", False) is True for one in models):
        return {"graph": request.graph}
    return {}


def _messages(model: Any, request: Request) -> list[Any]:
    """Return the turns as (role, text) pairs or LangChain messages; other libraries' runnables always get messages.

    Lone surrogates, which no request can hold, are replaced.
    """
    messages = [_message(turn) for turn in request.turns]
    if not plays_a_model(model):
        return messages
    from langchain_core.messages import convert_to_messages

    return list(convert_to_messages(messages))


def _message(turn: Turn) -> Any:
    text = encodable(turn.text)
    if not turn.calls and not turn.thoughts:
        return turn.role, text
    from langchain_core.messages import AIMessage, ToolMessage

    if turn.role == "tool":
        call = turn.calls[0]
        return ToolMessage(text, tool_call_id=call.id, name=call.name)
    calls = [
        {"name": call.name, "args": call.arguments, "id": call.id}
        for call in turn.calls
    ]
    thoughts = {THOUGHTS_KEY: turn.thoughts} if turn.thoughts else {}
    return AIMessage(text, tool_calls=calls, additional_kwargs=thoughts)


MOST_CHARACTERS = 1_000_000
"""The maximum number of characters of a reply's text."""


def reply_in(message: Any, seconds: float, model: Any) -> Reply:
    """Return the Reply that a model's message contains.

    Raises BrokenReply for a reply that the server broke off, since another call may give a whole one, and
    RefusedReply for one that is too long.

    Args:
        message: a LangChain message, or a string, which a chain that ends in a parser returns.
        seconds: the duration of the call.
        model: the model, whose secrets are masked in the reply.
    """
    text = bounded(text_of(message))
    refusal = refusal_in(message)
    ending = reason_in(message)
    if refusal and kind_of(ending) == "whole":
        ending = REFUSAL
    kind = kind_of(ending)
    if kind == "broken off":
        raise BrokenReply(shortfall(ending))
    if kind == "replaced":
        refusal = refusal or text
        text = ""
    if kind == "whole":
        ending = ""
    elif kind == "cut off":
        ending = LENGTH
    repeated = repeated_at(text)
    if repeated is not None:
        text = text[:repeated]
        ending = REPEATED
    calls, unread = _calls_of(message)
    read, written, cached = usage_in(message)
    more = getattr(message, "additional_kwargs", None) or {}
    thoughts = bounded(str(more.get(THOUGHTS_KEY) or ""))
    secrets = secrets_of(model)
    return Reply(
        text=secrets.masked(text),
        ending=ending,
        refusal=secrets.masked(refusal),
        model=answering_model(model, message),
        input_tokens=read,
        output_tokens=written,
        cached_tokens=cached,
        seconds=seconds,
        calls=_masked(calls, secrets),
        unread=_masked(unread, secrets),
        thoughts=secrets.masked(thoughts),
    )


def _masked(calls: list[ToolCall], secrets: HeldSecrets) -> tuple[ToolCall, ...]:
    masked = []
    for call in calls:
        arguments = secrets.masked_in(call.arguments)
        masked.append(replace(call, arguments=arguments))
    return tuple(masked)


def usage_in(message: Any) -> tuple[int, int, int]:
    """Return the numbers of input, output and cached input tokens of a message; 0 for a missing or invalid one."""
    usage = getattr(message, "usage_metadata", None) or {}
    details = usage.get("input_token_details") or {}
    return (
        _count(usage.get("input_tokens")),
        _count(usage.get("output_tokens")),
        _count(details.get("cache_read")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _calls_of(message: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the tool calls in a message, and those with unreadable arguments.

    The calls are parsed again, from a stream's pieces (of which LangChain may read only half a call) and from what
    LangChain found invalid. The single call of OpenAI's older `function_call` field is included.
    """
    calls = getattr(message, "tool_call_chunks", None)
    if not calls:
        read = getattr(message, "tool_calls", None) or ()
        calls = [*read, *(getattr(message, "invalid_tool_calls", None) or ())]
    more = getattr(message, "additional_kwargs", None) or {}
    said = {"tool_calls": calls, "function_call": more.get("function_call")}
    return calls_in_message(said)


def text_of(message: Any) -> str:
    """Return the text of a message or of a streamed piece. Raises RefusedReply for an object that is neither, nor a
    string.
    """
    if isinstance(message, str):
        return message
    if hasattr(message, "text"):
        return str(message.text)
    raise RefusedReply(
        f"the model replied with a {type(message).__name__} instead of a message or a text: give a chat model"
    )


def bounded(text: str) -> str:
    """Return the text unchanged. Raises RefusedReply if it has more than `MOST_CHARACTERS` characters."""
    if len(text) > MOST_CHARACTERS:
        raise RefusedReply(
            f"the reply has more than {MOST_CHARACTERS:,} characters, the most that is read: set max_tokens"
        )
    return text
