"""The call itself: turns go to a model of LangChain's, and a message or its pieces come back as a Reply."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ras_agent.calling import in_thread
from ras_agent.prompts import ToolCall, Turn
from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.records import JSON, Triple
from ras_agent.text.normal_form import encodable
from ras_agent.text.repeats import Repeats, repeated_at
from ras_agent.tools.chat.endings import LENGTH, REFUSAL, REPEATED, kind_of, reason_in, refusal_in, shortfall
from ras_agent.tools.chat.form import KEEP_PATTERNS, TOOL_CHOICE, ReplyForm
from ras_agent.tools.chat.held_secrets import HeldSecrets
from ras_agent.tools.chat.http import BrokenReply, RefusedReply
from ras_agent.tools.chat.models import answering_model, secrets_of
from ras_agent.tools.chat.retry import causes
from ras_agent.tools.chat.runnables import chat_models_in, plays_a_model
from ras_agent.tools.chat.tool_calls import calls_in_message
from ras_agent.tools.chat.window import window_in

MOST_CHARACTERS = 1_000_000
"""The longest text of a reply that is read."""

_MOST_POOLED_CONNECTIONS = 1000
_TAKES_CONTINUATION = ("vllm", "sglang")
_LOOP_IS_OVER = "Event loop is closed"
# what LangChain says of a server that replies as a whole though it was asked for a stream
_NO_STREAM = "No generation chunks were returned"


@dataclass(frozen=True, slots=True)
class Request:
    """Holds what is sent.

    on_text: called with the whole reply so far whenever more of it arrives.
    max_tokens: of the reply; None for no limit. A model that writes thoughts has none either: they would use it up.
    graph: the facts of each sub-query, for a model that reads them through soft tokens; others know only what the turns
        show.
    tools: what the model may call, each as a JSON Schema with name and description, as LangChain's `bind_tools` takes
        it.
    form: what the server holds the whole reply to, which calls no tool then, where it keeps forms.
    varied: whether a model that always takes the likeliest word is to vary: it would repeat an earlier reply.
    stop: texts at which the reply ends; they are not part of it. A server that takes none gets none.
    takes_part: whether the beginning of a reply is of use where its server withholds the rest.
    ends_early: whether the reply is streamed, by a model of ours, so that it ends where it begins to repeat itself.

    Where the last turn is the assistant's, the reply goes on with it.
    """

    turns: tuple[Turn, ...]
    on_text: Callable[[str], None] | None = None
    max_tokens: int | None = None
    graph: tuple[tuple[Triple, ...], ...] = ()
    tools: tuple[JSON, ...] = ()
    form: ReplyForm | None = None
    varied: bool = False
    stop: tuple[str, ...] = ()
    takes_part: bool = False
    ends_early: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds what came back.

    ending: why it ended, where it is not whole: "length", "repeated", or the server's word. refusal: what the model or
    its server says in place of the rest. replayed: it came from the cache. model: which of several models answered,
    such as a fallback. calls: the tools that it wants called. thoughts: what the model thought first, where the server
    tells it apart from the text. unread: calls whose arguments cannot be read.
    """

    text: str
    ending: str = ""
    refusal: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False
    model: str = ""
    calls: tuple[ToolCall, ...] = ()
    thoughts: str = ""
    unread: tuple[ToolCall, ...] = ()

    @property
    def truncated(self) -> bool:
        """Return whether it was cut off at its token limit, or because it repeated itself."""
        return self.ending in (LENGTH, REPEATED)

    @property
    def shortfall(self) -> str:
        """Return what it lacks, in words; "" for nothing."""
        return shortfall(self.ending, self.refusal)


class _Gathered:
    """Gathers a reply, which may come in pieces. on_text: is called with the text so far, without secrets."""

    def __init__(self, on_text: Callable[[str], None] | None, secrets: HeldSecrets) -> None:
        self._on_text = on_text or _unheard
        self._secrets = secrets
        self._text = self._masked = ""
        self._settled = 0
        self._chunks: list[Any] = []
        self._repeats = Repeats()

    def add(self, chunk: Any) -> bool:
        """Take a piece, and tell the text so far. Return whether it repeats itself, so that no more is wanted."""
        self._chunks.append(chunk)
        self._text = _bounded(self._text + _text_of(chunk))
        masked, length = self._secrets.settled(self._text[self._settled :])
        self._masked += masked
        self._settled += length
        self._on_text(self._masked)
        return self._repeats.place_in(self._text) is not None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Pass over an error that comes after the whole reply, or where a server sends no pieces."""
        try:
            yield
        except Exception as error:
            no_stream = isinstance(error, ValueError) and _NO_STREAM in str(error)
            if not no_stream and not self._is_whole():
                raise

    def _is_whole(self) -> bool:
        """Return whether a piece has said how the reply ended."""
        return any(map(reason_in, self._chunks))

    @property
    def has_begun(self) -> bool:
        return bool(self._chunks)

    def message(self) -> Any:
        """Return the pieces as one message; None where there are none."""
        if not self._chunks:
            return None
        first, *others = self._chunks
        if isinstance(first, str):
            return self._text
        return first + others if others else first

    def whole(self, message: Any) -> Any:
        """Take a message that came as a whole, and return it."""
        self._on_text(self._secrets.masked(_text_of(message)))
        return message


def _unheard(text: str) -> None:
    """Take the text of a reply that nobody reads before it is whole."""


def ask(model: Any, request: Request, *, streamed: bool, in_a_thread: bool) -> Awaitable[Any]:
    """Return the call that gives the model's message. `on_text` gets a reply that is not streamed as a whole.

    in_a_thread: call the model's synchronous methods. A thread cannot be cancelled: one that nobody waits for any more
    stops at the next piece of a stream, or goes on until its client's timeout.
    """
    if in_a_thread:
        return _wait_for_thread(model, request, streamed)
    return _ask(model, request, streamed)


def asks_in_any_loop(model: object) -> bool:
    """Return whether a model is one of ours, whose connections belong to no event loop, and whose errors are named."""
    return getattr(type(model), "in_any_loop", False) is True


async def held_to(model: Any, request: Request) -> dict[str, Any]:
    """Return the options of a call by which the server holds its reply to a form; {} for a model that is not ours.

    Of a model that may call tools, and whose server keeps no form of a text that we know of, a call is required.
    """
    if request.form is None or not asks_in_any_loop(model):
        return {}
    owner = await model.owner()
    if request.tools and owner not in KEEP_PATTERNS:
        return {TOOL_CHOICE: "required"}
    return request.form.options(owner)


async def continuing(model: Any, request: Request) -> dict[str, Any]:
    """Return the options by which the server goes on with the assistant's last turn; {} where no option is needed.

    vLLM and SGLang begin a new turn unless they are told. Other servers go on by themselves, or cannot.
    """
    if request.turns[-1].role != "assistant" or not asks_in_any_loop(model):
        return {}
    if await model.owner() not in _TAKES_CONTINUATION:
        return {}
    return {"continue_final_message": True, "add_generation_prompt": False}


async def listed_window(model: Any) -> int | None:
    """Return the window that the server of a model of ours lists, in tokens; None where it lists none."""
    return window_in(await model.about()) if asks_in_any_loop(model) else None


async def _wait_for_thread(model: Any, request: Request, streamed: bool) -> Any:
    dropped = threading.Event()
    try:
        return await asyncio.wrap_future(in_thread(partial(_ask_in_thread, model, request, streamed, dropped.is_set)))
    finally:
        dropped.set()


def _ask_in_thread(model: Any, request: Request, streamed: bool, dropped: Callable[[], bool]) -> Any:
    messages, options = _messages(model, request), graph_of(model, request)
    with _malformed_replies_named(model):
        gathered = _Gathered(request.on_text, secrets_of(model))
        if streamed:
            with gathered.reading():
                for chunk in model.stream(messages, **options):
                    if dropped() or gathered.add(chunk):
                        break
            if gathered.has_begun or dropped():
                return gathered.message()
        return gathered.whole(model.invoke(messages, **options))


async def _ask(model: Any, request: Request, streamed: bool) -> Any:
    """Ask through the model's asynchronous methods.

    The providers' clients live as long as the process and pool their connections, also those of an event loop that is
    over (`asyncio.run` twice). A call over such a connection fails and the connection is dropped, so the call is
    repeated.
    """
    for _ in range(_MOST_POOLED_CONNECTIONS):
        try:
            return await _ask_once(model, request, streamed)
        except Exception as error:
            if not any(isinstance(cause, RuntimeError) and _LOOP_IS_OVER in str(cause) for cause in causes(error)):
                raise
    return await _ask_once(model, request, streamed)


async def _ask_once(model: Any, request: Request, streamed: bool) -> Any:
    messages, options = _messages(model, request), graph_of(model, request)
    with _malformed_replies_named(model):
        gathered = _Gathered(request.on_text, secrets_of(model))
        if streamed:
            with gathered.reading():
                async for chunk in model.astream(messages, **options):
                    if gathered.add(chunk):
                        break
            if gathered.has_begun:
                return gathered.message()
        return gathered.whole(await model.ainvoke(messages, **options))


@contextmanager
def _malformed_replies_named(model: Any) -> Iterator[None]:
    """Turn what ChatOpenAI raises for a reply that it cannot read, such as an error under status 200."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        asked = chat_models_in(model)
        known = any(base.__name__ == "BaseChatOpenAI" for one in asked for base in type(one).__mro__)
        if not known or _NO_STREAM in str(error) or isinstance(error, json.JSONDecodeError):
            raise
        told = error.args[0] if error.args else str(error)  # pydantic's has no arguments
        if isinstance(told, Mapping):
            kind = RefusedReply if told.get("code") == "insufficient_quota" else BrokenReply
            raise kind(f"the server replied with an error: {told.get('message', told)}") from error
        raise BrokenReply(f"the reply does not have the form of one: {told}") from error


def reply_in(message: Any, seconds: float, model: Any) -> Reply:
    """Return the text of a model's message and what it cost. A chain may end in a parser, and return the text alone.

    Raises BrokenReply for a reply that its server broke off, which may come whole when it is asked for again.
    """
    usage = getattr(message, "usage_metadata", None) or {}
    text, refusal, reason = _bounded(_text_of(message)), refusal_in(message), reason_in(message)
    reason = REFUSAL if refusal and kind_of(reason) == "whole" else reason
    kind = kind_of(reason)
    if kind == "broken off":
        raise BrokenReply(shortfall(reason))
    if kind == "replaced":
        text, refusal = "", refusal or text
    repeated = repeated_at(text)
    if repeated is not None:
        text, reason, kind = text[:repeated], REPEATED, None
    calls, unread = _calls_of(message)
    reply = Reply(
        text=text,
        ending="" if kind == "whole" else LENGTH if kind == "cut off" else reason,
        refusal=refusal,
        model=answering_model(model, message),
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        cached_tokens=_count((usage.get("input_token_details") or {}).get("cache_read")),
        seconds=seconds,
        calls=tuple(calls),
        unread=tuple(unread),
        thoughts=_bounded(str((getattr(message, "additional_kwargs", None) or {}).get(THOUGHTS_KEY) or "")),
    )
    return _masked(reply, secrets_of(model))


def _masked(reply: Reply, secrets: HeldSecrets) -> Reply:
    """Return a reply without the secrets that its server was sent."""
    if not secrets:
        return reply
    masked = secrets.masked

    def call_of(call: ToolCall) -> ToolCall:
        arguments = {name: secrets.masked_in(value) for name, value in call.arguments.items()}
        return replace(call, arguments=arguments)

    calls = tuple(map(call_of, reply.calls))
    unread = tuple(map(call_of, reply.unread))
    text, refusal = masked(reply.text), masked(reply.refusal)
    thoughts = masked(reply.thoughts)
    return replace(reply, text=text, refusal=refusal, thoughts=thoughts, calls=calls, unread=unread)


def _calls_of(message: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls of tools in a message, and those whose arguments cannot be read.

    What LangChain could not read is read once more, as is the call of OpenAI's first form, which it leaves aside.
    """
    named = [*(getattr(message, "tool_calls", None) or ()), *(getattr(message, "invalid_tool_calls", None) or ())]
    first_form = (getattr(message, "additional_kwargs", None) or {}).get("function_call")
    return calls_in_message({"tool_calls": named, "function_call": first_form})


def graph_of(model: Any, request: Request) -> dict[str, Any]:
    """Return the argument by which a model gets the request's graph; none for a model that reads text alone."""
    models = chat_models_in(model)
    reads = bool(models) and all(getattr(one, "reads_graphs", False) is True for one in models)
    return {"graph": request.graph} if reads else {}


def _text_of(message: Any) -> str:
    """Return the text of a message or of a piece of one. Raises RefusedReply for another object."""
    if isinstance(message, str):
        return message
    if hasattr(message, "text"):
        return str(message.text)
    raise RefusedReply(f"a model has to reply with a message or a text, and this one did with {type(message).__name__}")


def _bounded(text: str) -> str:
    """Return a reply's text. Raises RefusedReply for one that is too long."""
    if len(text) > MOST_CHARACTERS:
        raise RefusedReply(f"the reply has more than {MOST_CHARACTERS:,} characters, which is the most that is read")
    return text


def _count(value: object) -> int:
    """Return a number of tokens; 0 for what is none, as servers of all kinds fill these fields."""
    return value if isinstance(value, int) and value > 0 else 0


def _messages(model: Any, request: Request) -> list[Any]:
    """Return the turns as LangChain takes them, and for runnables of others as its messages, which they may look into.

    Half a character, which no request can hold, is replaced.
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
        return ToolMessage(text, tool_call_id=turn.calls[0].id, name=turn.calls[0].name)
    return AIMessage(
        text,
        tool_calls=[{"name": call.name, "args": call.arguments, "id": call.id} for call in turn.calls],
        additional_kwargs={THOUGHTS_KEY: turn.thoughts} if turn.thoughts else {},
    )
