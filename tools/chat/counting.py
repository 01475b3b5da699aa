"""Counts the model calls that a role of the user's own makes through LangChain, like those of our roles.

LangChain hands a callback handler to every model that is called inside `counting`, however deep: in a chain, a tool or
an agent of the role's. The calls of `Chat`, which counts them itself, are left out.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
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


@cache
def _handler() -> Any:
    """Return the one handler, which LangChain is told of when it is first needed."""
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
            self._open: dict[UUID, tuple[Ledger, str, int, int, float]] = {}

        def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any) -> None:
            self._begin([str(message.text) for turns in messages for message in turns], run_id, about)

        def on_llm_start(self, serialized: Any, prompts: list[str], *, run_id: UUID, **about: Any) -> None:
            self._begin(prompts, run_id, about)

        def _begin(self, texts: list[str], run_id: UUID, about: dict[str, Any]) -> None:
            if _counter.get() is None:  # this handler came down from a caller further up
                return
            ledger, prompt = current_ledger(), sum(estimate_tokens(text) + TOKENS_PER_TURN for text in texts)
            reserved = prompt + ledger.admit(prompt, USUAL_REPLY) if ledger.tokens_left() < inf else ledger.admit()
            name = (about.get("metadata") or {}).get("ls_model_name") or "unknown model"
            self._open[run_id] = ledger, str(name), prompt, reserved, time.perf_counter()

        def on_llm_end(self, response: Any, *, run_id: UUID, **about: Any) -> None:
            if (opened := self._open.pop(run_id, None)) is None:
                return
            ledger, name, prompt, reserved, began = opened
            told = [one for some in response.generations for one in some]
            usage: dict[str, Any] = next((used for one in told if (used := _usage(one))), {})
            details = usage.get("input_token_details") or {}
            tokens = (usage.get("input_tokens") or 0, usage.get("output_tokens") or 0, details.get("cache_read") or 0)
            if not any(tokens):
                tokens = prompt, sum(estimate_tokens(str(one.text)) for one in told), 0
            seconds = time.perf_counter() - began
            ledger.record(Call(ledger.role, ledger.hop, name, *tokens, seconds, estimated=not usage), reserved)

        def on_llm_error(self, error: BaseException, *, run_id: UUID, **about: Any) -> None:
            if (opened := self._open.pop(run_id, None)) is not None:
                opened[0].release(opened[3])

    register_configure_hook(_counter, inheritable=True)
    return Counter()


def _usage(generation: Any) -> Any:
    return getattr(getattr(generation, "message", None), "usage_metadata", None)
