"""What is sent to a chat model, what comes back, and the one place that asks. Sync and async."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ras_agent.prompts import Turn
from ras_agent.tools.chat.unreachable import causes

__all__ = ["Reply", "Request", "aask", "ask", "estimated_tokens", "reply_in"]

MOST_KEPT_CONNECTIONS = 1000
_LOOP_IS_OVER = "Event loop is closed"
_CUT_SHORT = frozenset({"length", "max_tokens", "MAX_TOKENS", "model_length"})


@dataclass(frozen=True, slots=True)
class Request:
    """What to send. `on_text`, if given, is called with the whole reply so far whenever more of it arrives."""

    turns: tuple[Turn, ...]
    on_text: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `truncated`: the model stopped at its token limit."""

    text: str
    truncated: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False


def ask(model: Any, request: Request, wanted: Callable[[], object]) -> Any:
    """The model's message; streamed while it is `wanted`, if somebody listens."""
    if request.on_text is None:
        return model.invoke(_messages(request))
    message = None
    for chunk in model.stream(_messages(request)):
        if not wanted():
            break
        message = chunk if message is None else message + chunk
        request.on_text(str(message.text))
    return message


async def aask(model: Any, request: Request) -> Any:
    """`ask` for coroutines, which are cancelled when their reply is not wanted any more.

    The providers' clients live as long as the process and keep their connections, also those of an event loop that is
    over (`asyncio.run` twice). Whoever is given such a connection fails, and it is dropped: so ask again.
    """
    for _ in range(MOST_KEPT_CONNECTIONS):
        try:
            return await _aask(model, request)
        except Exception as error:
            if not any(isinstance(cause, RuntimeError) and _LOOP_IS_OVER in str(cause) for cause in causes(error)):
                raise
    return await _aask(model, request)


async def _aask(model: Any, request: Request) -> Any:
    if request.on_text is None:
        return await model.ainvoke(_messages(request))
    message = None
    async for chunk in model.astream(_messages(request)):
        message = chunk if message is None else message + chunk
        request.on_text(str(message.text))
    return message


def estimated_tokens(request: Request) -> int:
    """About four characters a token, and room for a reply."""
    return sum(len(turn.text) for turn in request.turns) // 4 + 256


def reply_in(message: Any, seconds: float) -> Reply:
    """What a model's message says, and what it cost."""
    usage, ending = message.usage_metadata or {}, message.response_metadata
    return Reply(
        text=str(message.text),
        truncated=any(ending.get(name) in _CUT_SHORT for name in ("finish_reason", "stop_reason", "done_reason")),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cached_tokens=(usage.get("input_token_details") or {}).get("cache_read", 0) or 0,
        seconds=seconds,
    )


def _messages(request: Request) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in request.turns]
