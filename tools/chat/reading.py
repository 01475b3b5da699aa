"""A model's message as a Reply: its text, its ending, its calls of tools, and its cost, without secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ras_agent.prompts import ToolCall
from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.text.repeats import repeated_at
from ras_agent.tools.chat.call import Reply
from ras_agent.tools.chat.endings import (
    LENGTH,
    REFUSAL,
    REPEATED,
    kind_of,
    reason_in,
    refusal_in,
    shortfall,
)
from ras_agent.tools.chat.http import BrokenReply, RefusedReply
from ras_agent.tools.chat.names import answering_model
from ras_agent.tools.chat.secrets import HeldSecrets, secrets_of
from ras_agent.tools.chat.tool_calls import calls_in_message

MOST_CHARACTERS = 1_000_000
"""The longest text of a reply that is read."""


def reply_in(message: Any, seconds: float, model: Any) -> Reply:
    """Return the text of a model's message and its cost. A chain may end in a parser, and return only the text.

    Raises BrokenReply for a reply that its server broke off, which may come whole when it is asked for again.
    """
    text = bounded(text_of(message))
    refusal = refusal_in(message)
    reason = reason_in(message)
    kind = kind_of(reason)
    if refusal and kind == "whole":
        reason = REFUSAL
        kind = kind_of(reason)
    if kind == "broken off":
        raise BrokenReply(shortfall(reason))
    if kind == "replaced":
        refusal = refusal or text
        text = ""
    ending = reason
    if kind == "whole":
        ending = ""
    elif kind == "cut off":
        ending = LENGTH
    repeated = repeated_at(text)
    if repeated is not None:
        text = text[:repeated]
        ending = REPEATED
    calls, unread = _calls_of(message)
    usage = getattr(message, "usage_metadata", None) or {}
    details = usage.get("input_token_details") or {}
    more = getattr(message, "additional_kwargs", None) or {}
    reply = Reply(
        text=text,
        ending=ending,
        refusal=refusal,
        model=answering_model(model, message),
        input_tokens=_count(usage.get("input_tokens")),
        output_tokens=_count(usage.get("output_tokens")),
        cached_tokens=_count(details.get("cache_read")),
        seconds=seconds,
        calls=tuple(calls),
        unread=tuple(unread),
        thoughts=bounded(str(more.get(THOUGHTS_KEY) or "")),
    )
    return _masked(reply, secrets_of(model))


def _masked(reply: Reply, secrets: HeldSecrets) -> Reply:
    """Return a reply without the secrets that its server was sent."""
    if not secrets:
        return reply

    def call_of(call: ToolCall) -> ToolCall:
        return replace(call, arguments=secrets.masked_in(call.arguments))

    return replace(
        reply,
        text=secrets.masked(reply.text),
        refusal=secrets.masked(reply.refusal),
        thoughts=secrets.masked(reply.thoughts),
        calls=tuple(map(call_of, reply.calls)),
        unread=tuple(map(call_of, reply.unread)),
    )


def _calls_of(message: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls of tools in a message, and those with unreadable arguments.

    Calls that LangChain could not read are read once more, as are those of a stream, of which it reads half a call, and
    the call of OpenAI's first form, which it leaves out.
    """
    calls = getattr(message, "tool_call_chunks", None)
    if not calls:
        read = getattr(message, "tool_calls", None) or ()
        calls = [*read, *(getattr(message, "invalid_tool_calls", None) or ())]
    more = getattr(message, "additional_kwargs", None) or {}
    said = {"tool_calls": calls, "function_call": more.get("function_call")}
    return calls_in_message(said)


def text_of(message: Any) -> str:
    """Return the text of a message or of a piece of one. Raises RefusedReply for another object."""
    if isinstance(message, str):
        return message
    if hasattr(message, "text"):
        return str(message.text)
    raise RefusedReply(
        f"a model has to reply with a message or a text, and this one did with {type(message).__name__}"
    )


def bounded(text: str) -> str:
    """Return a reply's text. Raises RefusedReply for one that is too long."""
    if len(text) > MOST_CHARACTERS:
        raise RefusedReply(
            f"the reply has more than {MOST_CHARACTERS:,} characters, which is the most that is read"
        )
    return text


def _count(value: object) -> int:
    """Return a number of tokens; 0 for another value, as servers of all kinds fill these fields."""
    if isinstance(value, int) and value > 0:
        return value
    return 0
