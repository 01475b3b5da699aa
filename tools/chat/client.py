"""One model call: budget, kept replies, rate limits, retries, the call itself, its usage. Sync and async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from ras_agent.budget import Ledger, current_ledger
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.records import Call
from ras_agent.tools.chat.cache import KeptReply, ReplyCache
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.limits import Booking, Clock, Limiter, Rates, TooLate, shared_limiter
from ras_agent.tools.chat.models import (
    build_chat_model,
    endpoint_of,
    is_chat_model,
    model_name,
    printable,
    sampling_parameters,
    without_secrets,
)
from ras_agent.tools.chat.request import Reply, Request, aask, ask, estimated_tokens, reply_in
from ras_agent.tools.chat.retry import RetryPolicy, retry_after
from ras_agent.tools.chat.shared import UnderWay
from ras_agent.tools.chat.unreachable import unreachable

__all__ = ["Chat", "ChatSettings", "Reply", "Request", "as_chat"]

# a server that is starting may refuse once; of one that is not there nothing more can be hoped
UNREACHABLE_TRIES = 2
_REMEDIES = {
    401: "check the API key",
    403: "check the API key's rights",
    404: "check the model's name",
    429: "lower requests_per_minute or tokens_per_minute",
}


@dataclass(frozen=True)
class ChatSettings:
    """How models are built from strings, and how any model is called.

    temperature, max_tokens: for models built from a string; None leaves the provider's default.
    timeout: seconds one try may take, for models built from a string (a model object keeps its own, and should have its
        own retries off).
    rates: for the model's endpoint; None keeps those it has. All roles on one endpoint share one limiter.
    cache: a file of replies; a request found in it is answered from it.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 60.0
    rates: Rates | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    cache: str | Path | None = None
    clock: Clock = field(default_factory=Clock)


class Chat:
    """A chat model as the roles use it. Thread safe.

    Every call is held against the running node's ledger. So is a reply from the cache, with the tokens it once cost:
    a replayed run meets its limits where the first run did, and takes the same path.
    """

    def __init__(
        self, model: Any, name: str = "", settings: ChatSettings | None = None, limiter: Limiter | None = None
    ) -> None:
        self.model = model
        self.name = name or model_name(model)
        self.endpoint = endpoint_of(model)
        self.settings = settings or ChatSettings()
        self.limiter = limiter or shared_limiter(self.endpoint, self.settings.rates, self.settings.clock)
        self._cache = ReplyCache(self.settings.cache) if self.settings.cache else None
        # apart: a thread that waited for a coroutine of its own event loop would wait for ever
        self._under_way: UnderWay[Reply] = UnderWay()
        self._aunder_way: UnderWay[Reply] = UnderWay()

    def __repr__(self) -> str:
        return f"Chat({self.name!r})"

    def complete(self, request: Request) -> Reply:
        """The model's reply.

        Raises BudgetExceeded if the budget forbids the call or ends before it, ModelCallError after the last try.
        """
        with self._metered() as ledger:
            deadline = self._deadline(ledger)
            reply = self._fresh(request, deadline) if self._cache is None else self._shared(request, deadline)
            return self._delivered(request, reply, ledger)

    async def acomplete(self, request: Request) -> Reply:
        """`complete` for coroutines."""
        with self._metered() as ledger:
            deadline = self._deadline(ledger)
            asked = self._afresh(request, deadline) if self._cache is None else self._ashared(request, deadline)
            return self._delivered(request, await asked, ledger)

    def _deadline(self, ledger: Ledger) -> Deadline:
        return Deadline.of(ledger, self.settings.clock, self.settings.timeout)

    def _shared(self, request: Request, deadline: Deadline) -> Reply:
        """The reply that is kept, the one that an equal request under way gets, or a fresh one, which is then kept."""
        kept = self._place_of(request)
        while (ahead := self._under_way.come(kept.key)) is not None:
            if (found := deadline.wait(ahead)) is not None:
                return replace(found, replayed=True, seconds=0.0)
        reply = None
        try:
            reply = _read(kept.get())
            if reply is None:
                reply = self._fresh(request, deadline)
                kept.put(_written(reply))
            return reply
        finally:
            self._under_way.leave(kept.key, reply)

    async def _ashared(self, request: Request, deadline: Deadline) -> Reply:
        kept = self._place_of(request)
        while (ahead := self._aunder_way.come(kept.key)) is not None:
            # shielded: one that gives up waiting must not cancel what the others wait for
            if (found := await deadline.arun(asyncio.shield(asyncio.wrap_future(ahead)))) is not None:
                return replace(found, replayed=True, seconds=0.0)
        reply = None
        try:
            reply = _read(kept.get() if kept.rows.near else await asyncio.to_thread(kept.get))
            if reply is None:
                reply = await self._afresh(request, deadline)
                await asyncio.to_thread(kept.put, _written(reply))
            return reply
        finally:
            self._aunder_way.leave(kept.key, reply)

    def _fresh(self, request: Request, deadline: Deadline) -> Reply:
        tries = Retrying(sleep=self.settings.clock.sleep, **self._retry_options(deadline))
        with self._errors_named(tries, deadline):
            return tries(self._try, request, deadline)

    async def _afresh(self, request: Request, deadline: Deadline) -> Reply:
        tries = AsyncRetrying(sleep=self.settings.clock.asleep, **self._retry_options(deadline))
        with self._errors_named(tries, deadline):
            reply: Reply = await tries(self._atry, request, deadline)
        return reply

    def _try(self, request: Request, deadline: Deadline) -> Reply:
        with self.limiter.hold(estimated_tokens(request), deadline.left()) as booking:
            started = time.perf_counter()
            message = deadline.run(lambda: ask(self.model, request, deadline.left))
            return _booked(reply_in(message, time.perf_counter() - started), booking)

    async def _atry(self, request: Request, deadline: Deadline) -> Reply:
        async with self.limiter.ahold(estimated_tokens(request), deadline.left()) as booking:
            started = time.perf_counter()
            message = await deadline.arun(aask(self.model, request))
            return _booked(reply_in(message, time.perf_counter() - started), booking)

    @contextmanager
    def _metered(self) -> Iterator[Ledger]:
        ledger = current_ledger()
        ledger.admit()
        try:
            yield ledger
        except BaseException:
            ledger.release()
            raise

    def _delivered(self, request: Request, reply: Reply, ledger: Ledger) -> Reply:
        """Enter the call in the ledger; a kept reply is told at once, as the model's was told piece by piece."""
        if reply.replayed and request.on_text is not None:
            request.on_text(reply.text)
        tokens = (reply.input_tokens, reply.output_tokens, reply.cached_tokens)
        ledger.record(Call(ledger.role, ledger.hop, self.name, *tokens, reply.seconds, reply.replayed))
        return reply

    def _place_of(self, request: Request) -> KeptReply:
        assert self._cache is not None
        return self._cache.place_of(sampling_parameters(self.model), request.turns)

    def _retry_options(self, deadline: Deadline) -> dict[str, Any]:
        policy = self.settings.retry
        knocked = 0

        def worth_it(error: BaseException) -> bool:
            nonlocal knocked
            knocked += bool(unreachable(error))
            in_time = (retry_after(error) or 0.0) < deadline.left()
            return in_time and knocked < UNREACHABLE_TRIES and policy.retries(error)

        def pause_everybody(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            self.limiter.pause((error and retry_after(error)) or 0.0)

        return {
            "stop": stop_after_attempt(policy.attempts),
            "retry": retry_if_exception(worth_it),
            "wait": lambda state: min(policy.wait(state), deadline.left()),
            "before_sleep": pause_everybody,
            "reraise": True,
        }

    @contextmanager
    def _errors_named(self, tries: Retrying | AsyncRetrying, deadline: Deadline) -> Iterator[None]:
        """Whatever a provider's client raises becomes a ModelCallError without credentials."""
        try:
            yield
        except BudgetExceeded:
            raise
        except TooLate:
            deadline.ledger.refuse("max_seconds")
        except Exception as error:
            told = without_secrets(str(error), self.model)
            status = getattr(error, "status_code", None)
            remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
            if missing := unreachable(error, self.endpoint):
                remedy = f": {missing}; start the server, or correct its address"
            count = tries.statistics.get("attempt_number", 1)
            where = self.name if self.name.endswith(self.endpoint) else f"{self.name} at {self.endpoint}"
            raise ModelCallError(
                f"{where} failed after {count} {'try' if count == 1 else 'tries'}: "
                f"{type(error).__name__}: {told[:300]}{remedy}"
            ) from (error if told == str(error) else None)


def as_chat(model: object, settings: ChatSettings | None = None) -> Chat:
    """A Chat from a spec string, a LangChain chat model, or a Chat (returned as it is)."""
    if isinstance(model, Chat):
        return model
    settings = settings or ChatSettings()
    if isinstance(model, str):
        built = build_chat_model(
            model, timeout=settings.timeout, temperature=settings.temperature, max_tokens=settings.max_tokens
        )
        return Chat(built, printable(model), settings)
    if not is_chat_model(model):
        raise TypeError(f"expected a LangChain chat model or a string like 'openai:gpt-4o-mini', got {type(model)}")
    return Chat(model, settings=settings)


def _booked(reply: Reply, booking: Booking) -> Reply:
    """The reply, its real number of tokens entered in the limiter's booking."""
    booking.tokens = reply.input_tokens + reply.output_tokens or booking.tokens
    return reply


def _read(kept: dict[str, Any] | None) -> Reply | None:
    return None if kept is None else Reply(**kept, replayed=True)


def _written(reply: Reply) -> dict[str, Any]:
    """A reply as it is kept: how long it took is no part of it."""
    return {name: value for name, value in asdict(reply).items() if name not in ("seconds", "replayed")}
