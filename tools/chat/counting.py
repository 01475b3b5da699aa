"""Counts the model calls that a role of the user's own makes through LangChain, like those of our roles.

LangChain hands a callback handler to every model that is called inside `counting`, however deep: in a chain, a tool or
an agent of the role's. The calls of `Chat`, which counts them itself, are left out.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any
from uuid import UUID

from ras_agent.budget import Ledger, current_ledger
from ras_agent.records import Call
from ras_agent.scoped_value import ScopedValue
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.window import TOKENS_PER_TURN, USUAL_REPLY

_counter: ContextVar[Any] = ContextVar("ras_agent_counter", default=None)


def counting() -> ScopedValue[Any]:
    """Enter the model calls that are made inside the block in the current ledger, and refuse them as its limits say."""
    return ScopedValue(_counter, _handler())


def uncounted() -> ScopedValue[Any]:
    """Leave out the calls that are made inside the block: their caller enters them."""
    return ScopedValue(_counter, None)


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has begun."""

    ledger: Ledger
    name: str
    prompt: int
    """tokens by the estimate"""
    reserved: int
    began: float

    def end(self, response: Any) -> None:
        """Enter the call in its ledger."""
        replies = [reply for some in response.generations for reply in some]
        usages = [usage for usage in map(_usage, replies) if usage]
        usage = usages[0] if usages else {}
        details = usage.get("input_token_details") or {}
        read = usage.get("input_tokens") or 0
        written = usage.get("output_tokens") or 0
        cached = details.get("cache_read") or 0
        if not (read or written or cached):
            read = self.prompt
            written = sum(estimate_tokens(str(reply.text)) for reply in replies)
        call = Call(
            self.ledger.role,
            self.ledger.hop,
            self.name,
            read,
            written,
            cached,
            seconds=time.perf_counter() - self.began,
            estimated=not usage,
        )
        self.ledger.record(call, self.reserved)


@cache
def _handler() -> Any:
    """Return the one handler, which is registered at LangChain when it is first needed."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tracers.context import register_configure_hook

    class Counter(BaseCallbackHandler):
        """Enters each call in the ledger of the role that makes it."""

        raise_error = True  # a call that is refused must not be made
        run_inline = True  # in the caller's context, where its ledger is

        @property
        def ignore_retriever(self) -> bool:
            return True

        def __init__(self) -> None:
            self._open: dict[UUID, _Open] = {}

        def on_chat_model_start(
            self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any
        ) -> None:
            self._begin(
                [str(message.text) for turns in messages for message in turns],
                run_id,
                about,
            )

        def on_llm_start(
            self, serialized: Any, prompts: list[str], *, run_id: UUID, **about: Any
        ) -> None:
            self._begin(prompts, run_id, about)

        def _begin(self, texts: list[str], run_id: UUID, about: dict[str, Any]) -> None:
            # else this handler came down from a caller further up
            if _counter.get() is not None:
                metadata = about.get("metadata") or {}
                self._open[run_id] = _opened(
                    texts, str(metadata.get("ls_model_name") or "unknown model")
                )

        def on_llm_end(self, response: Any, *, run_id: UUID, **about: Any) -> None:
            opened = self._open.pop(run_id, None)
            if opened is not None:
                opened.end(response)

        def on_llm_error(
            self, error: BaseException, *, run_id: UUID, **about: Any
        ) -> None:
            opened = self._open.pop(run_id, None)
            if opened is not None:
                opened.ledger.release(opened.reserved)

    register_configure_hook(_counter, inheritable=True)
    return Counter()


def _opened(texts: list[str], name: str) -> _Open:
    """Reserve a call in the current ledger. Raises BudgetExceeded."""
    ledger = current_ledger()
    prompt = sum(estimate_tokens(text) + TOKENS_PER_TURN for text in texts)
    if ledger.tokens_left() < inf:
        reserved = prompt + ledger.admit(prompt, USUAL_REPLY)
    else:
        reserved = ledger.admit()
    return _Open(ledger, name, prompt, reserved, began=time.perf_counter())


def _usage(generation: Any) -> Any:
    message = getattr(generation, "message", None)
    return getattr(message, "usage_metadata", None)
