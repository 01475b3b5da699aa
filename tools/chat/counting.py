"""Records model calls in the running node's ledger: those of `Chat`, and those that a user's own role makes.

LangChain passes a callback handler to every model that is called inside `counting`, even deep inside a chain, tool
or agent of the role. Calls of `Chat` are excluded there, since `Metered` records them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any
from uuid import UUID

from ras_agent.contracts.records import Call
from ras_agent.contracts.scoped_value import ScopedValue
from ras_agent.running.budget import Ledger, current_ledger
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.asking import usage_in
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.window import (
    TOKENS_PER_TURN,
    USUAL_REPLY,
    Sizes,
    estimate_turns,
)


class Metered:
    """Wraps a model and records every call in the run's ledger. A cached reply counts with the tokens that it once
    cost.

    So a replayed run reaches its limits at the same point as the recorded run and takes the same path.
    """

    def __init__(self, model: Model, sizes: Sizes) -> None:
        self._model = model
        self._sizes = sizes

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply. Raises BudgetExceeded if the budget forbids the call or runs out during it."""
        ledger = current_ledger()
        with self._reserved(ledger, request) as (granted, reserved):
            reply = await self._model.ask(granted, deadline)
            if reply.replayed and request.on_text is not None:
                request.on_text(reply.text)  # it was not streamed
            ledger.record(self._entry(ledger, request, reply), reserved)
            return reply

    @contextmanager
    def _reserved(
        self, ledger: Ledger, request: Request
    ) -> Iterator[tuple[Request, int]]:
        """Reserve a call in the ledger; yield the request with its granted reply tokens, and the reserved tokens."""
        reserved = 0
        if ledger.tokens_left() == inf:
            ledger.admit()
        else:
            prompt = estimate_turns(request.turns)
            limit = self._sizes.limit(request)
            granted = ledger.admit(prompt, limit or USUAL_REPLY)
            reserved = prompt + granted
            if limit is not None:
                most = min(granted, request.max_tokens or granted)
                request = replace(request, max_tokens=most, granted=granted)
        try:
            yield request, reserved
        except BaseException:
            ledger.release(reserved)
            raise

    def _entry(self, ledger: Ledger, request: Request, reply: Reply) -> Call:
        usage = (reply.input_tokens, reply.output_tokens, reply.cached_tokens)
        estimated = not any(usage)
        if estimated:
            usage = (estimate_turns(request.turns), estimate_tokens(reply.text), 0)
        return Call(
            ledger.role,
            ledger.hop,
            reply.model or self._sizes.name,
            *usage,
            seconds=reply.seconds,
            replayed=reply.replayed,
            estimated=estimated,
            key=reply.key,
        )


_counter: ContextVar[Any] = ContextVar("ras_agent_counter", default=None)


def counting() -> ScopedValue[Any]:
    """Return a context manager that records the model calls in its block in the current ledger, and refuses calls
    beyond its limits.
    """
    return ScopedValue(_counter, _handler())


def uncounted() -> ScopedValue[Any]:
    """Return a context manager that excludes the model calls in its block, because their caller records them."""
    return ScopedValue(_counter, None)


@dataclass(frozen=True, slots=True)
class _Open:
    """Holds a call that has begun and not ended, with the tokens reserved for it."""

    ledger: Ledger
    name: str
    prompt: int
    """The estimated tokens of the prompt."""
    reserved: int
    began: float

    @classmethod
    def begin(cls, texts: list[str], name: str) -> _Open:
        """Reserve a call in the current ledger. Raises BudgetExceeded if its limits forbid the call."""
        ledger = current_ledger()
        prompt = sum(estimate_tokens(text) + TOKENS_PER_TURN for text in texts)
        if ledger.tokens_left() < inf:
            reserved = prompt + ledger.admit(prompt, USUAL_REPLY)
        else:
            reserved = ledger.admit()
        return cls(ledger, name, prompt, reserved, time.perf_counter())

    def end(self, response: Any) -> None:
        """Record the finished call in its ledger."""
        replies = [reply for some in response.generations for reply in some]
        usages = [usage_in(getattr(reply, "message", None)) for reply in replies]
        usage = next(filter(any, usages), None)
        written = sum(estimate_tokens(str(reply.text)) for reply in replies)
        call = Call(
            self.ledger.role,
            self.ledger.hop,
            self.name,
            *(usage or (self.prompt, written, 0)),
            seconds=time.perf_counter() - self.began,
            estimated=usage is None,
        )
        self.ledger.record(call, self.reserved)


@cache
def _handler() -> Any:
    """Return the one callback handler, registering it with LangChain on first use."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tracers.context import register_configure_hook

    class Counter(BaseCallbackHandler):
        """Records each call in the ledger of the role that makes it."""

        raise_error = True  # so that a refused call is not made
        run_inline = True  # run in the caller's context, which has its ledger

        @property
        def ignore_retriever(self) -> bool:
            return True

        def __init__(self) -> None:
            self._open: dict[UUID, _Open] = {}

        def on_chat_model_start(
            self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any
        ) -> None:
            texts = []
            for turns in messages:
                texts += [str(message.text) for message in turns]
            self.on_llm_start(serialized, texts, run_id=run_id, **about)

        def on_llm_start(
            self, serialized: Any, prompts: list[str], *, run_id: UUID, **about: Any
        ) -> None:
            # without a counter, the handler was inherited from a caller outside the block
            if _counter.get() is not None:
                metadata = about.get("metadata") or {}
                name = str(metadata.get("ls_model_name") or "unknown model")
                self._open[run_id] = _Open.begin(prompts, name)

        def on_llm_end(self, response: Any, *, run_id: UUID, **about: Any) -> None:
            if run_id in self._open:
                self._open.pop(run_id).end(response)

        def on_llm_error(
            self, error: BaseException, *, run_id: UUID, **about: Any
        ) -> None:
            if run_id in self._open:
                opened = self._open.pop(run_id)
                opened.ledger.release(opened.reserved)

    register_configure_hook(_counter, inheritable=True)
    return Counter()
