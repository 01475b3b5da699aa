"""When a model call may start, and by when it must have ended.

A Limiter holds the rates of one endpoint for all agents, threads and event loops of this process. A Deadline ends a
call with its run, however long the model's client would wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from math import inf
from typing import TypeVar

from ras_agent.budget import Ledger

T = TypeVar("T")

_MINUTE = 60.0
# Python's locks take no longer timeout
_ENDLESS = threading.TIMEOUT_MAX / 2


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the time and waits. Tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Rates:
    """Limits requests and tokens (input plus output) in any sixty seconds, and simultaneous calls. None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    in_flight: int | None = 128

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    def __post_init__(self) -> None:
        for name in self.names():
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Rates.{name} must be positive or None, got {value!r}")


@dataclass(slots=True)
class Booking:
    """Records a call that may start at time `at`. The caller replaces the estimated `tokens` by what the call used."""

    at: float
    tokens: int


class TooLate(Exception):
    """Raised when a call's turn would come later than its caller can wait."""


class Limiter:
    """Lets calls start in the order in which they ask. `rates` may be changed while calls wait."""

    def __init__(self, rates: Rates | None = None, clock: Clock | None = None) -> None:
        self.rates = rates or Rates()
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._last_minute: deque[Booking] = deque()
        self._not_before = -inf
        self._slots = _Slots(lambda: self.rates.in_flight)

    @asynccontextmanager
    async def hold(self, tokens: int, within: float = inf) -> AsyncIterator[Booking]:
        """Wait for a slot and for the rates, then hold the slot during the block. `tokens` is an estimate.

        Raises TooLate if the call cannot start within `within` seconds, as soon as that is known.
        """
        ticket, latest = self._slots.queue(), self.clock.now() + within
        try:
            if not ticket.done():
                try:
                    await asyncio.wait_for(asyncio.wrap_future(ticket), None if within == inf else within)
                except TimeoutError:
                    raise TooLate from None
            booking = self._book(tokens, latest)
            if (wait := booking.at - self.clock.now()) > 0:
                await self.clock.asleep(wait)
            yield booking
        finally:
            self._slots.give_back(ticket)

    @property
    def counts_tokens(self) -> bool:
        """Return whether a call's number of tokens matters."""
        return self.rates.tokens_per_minute is not None

    def pause(self, seconds: float) -> None:
        """Start no call within the next `seconds`: an endpoint that asks one caller to wait means all of them."""
        with self._lock:
            self._not_before = max(self._not_before, self.clock.now() + seconds)

    def _book(self, tokens: int, latest: float = inf) -> Booking:
        """Book the first time at which every window of sixty seconds stays within the rates.

        A call of more tokens than the limit of a minute waits for an empty window. Raises TooLate if the time is after
        `latest`.
        """
        rates = self.rates
        with self._lock:
            at = max(self.clock.now(), self._not_before)
            if rates.requests_per_minute is None and rates.tokens_per_minute is None:
                if at > latest:
                    raise TooLate
                return Booking(at, tokens)
            booked = self._last_minute.copy()
            while booked and booked[0].at + _MINUTE <= at:
                booked.popleft()
            spent = sum(earlier.tokens for earlier in booked)
            while booked and not self._allows(len(booked) + 1, spent + tokens):
                oldest = booked.popleft()
                spent -= oldest.tokens
                at = max(at, oldest.at + _MINUTE)
            if at > latest:
                raise TooLate
            self._not_before, self._last_minute = at, booked
            booked.append(Booking(at, tokens))
            return booked[-1]

    def _allows(self, requests: int, tokens: int) -> bool:
        rates = self.rates
        return (rates.requests_per_minute is None or requests <= rates.requests_per_minute) and (
            rates.tokens_per_minute is None or tokens <= rates.tokens_per_minute
        )


class _Slots:
    """Counts calls in progress, like a semaphore for which threads and coroutines wait in one queue."""

    def __init__(self, limit: Callable[[], int | None]) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._waiting: deque[Future[None]] = deque()

    def queue(self) -> Future[None]:
        """Return a ticket that is done once the caller has a slot."""
        ticket: Future[None] = Future()
        with self._lock:
            self._waiting.append(ticket)
            self._hand_out()
        return ticket

    def give_back(self, ticket: Future[None]) -> None:
        """Free the ticket's slot, or its place in the queue if it is still waiting."""
        never_served = ticket.cancel()
        with self._lock:
            self._used -= not never_served
            self._hand_out()

    def _hand_out(self) -> None:
        limit = self._limit()
        while self._waiting and (limit is None or self._used < limit):
            ticket = self._waiting.popleft()
            if ticket.set_running_or_notify_cancel():
                self._used += 1
                ticket.set_result(None)


_limiters: dict[str, Limiter] = {}
_limiters_lock = threading.Lock()


def shared_limiter(endpoint: str, rates: Rates | None = None, clock: Clock | None = None) -> Limiter:
    """Return the one limiter of an endpoint. Later rates replace earlier ones; the first clock stays."""
    with _limiters_lock:
        limiter = _limiters.setdefault(endpoint, Limiter(clock=clock))
        if rates is not None:
            limiter.rates = rates
        return limiter


class TryTimedOut(TimeoutError):
    """Raised when one try of a call has taken its whole time; another try may be made."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Holds the moment `at`, by `clock`, after which nobody waits for a call; infinity where the run has no limit.

    Work that has not ended by then is refused in the ledger, with BudgetExceeded, like a call that was never made. One
    try may take `a_try` seconds of it, from its beginning to the last byte of its reply.
    """

    ledger: Ledger
    clock: Clock
    at: float
    a_try: float = inf

    @classmethod
    def of(cls, ledger: Ledger, clock: Clock, a_try: float = inf) -> Deadline:
        """Return the moment when the time of the ledger's running role is over."""
        left = ledger.seconds_left()
        return cls(ledger, clock, clock.now() + left if left < _ENDLESS else inf, a_try if a_try < _ENDLESS else inf)

    def left(self) -> float:
        """Return the seconds that are left, 0 if the moment has passed."""
        return max(self.at - self.clock.now(), 0.0)

    @asynccontextmanager
    async def one_try(self) -> AsyncIterator[None]:
        """Cancel the block when the time of a try is over.

        Raises what the block raises, BudgetExceeded if the run is over, and TryTimedOut.
        """
        left = self.left()
        seconds = min(left, self.a_try)
        if not seconds:
            self.ledger.refuse("max_seconds")
        limit = asyncio.timeout(None if seconds == inf else seconds)
        try:
            async with limit:
                yield
            return
        except TimeoutError:
            if not limit.expired():
                raise
        if seconds == left:
            self.ledger.refuse("max_seconds")
        raise TryTimedOut(f"no whole reply within {self.a_try:g} seconds")

    async def wait(self, work: Awaitable[T]) -> T:
        """Return what `work` comes to. Raises BudgetExceeded if that is nothing before the run is over."""
        left = self.left()
        limit = asyncio.timeout(None if left == inf else left)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        self.ledger.refuse("max_seconds")
