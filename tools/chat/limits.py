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
from dataclasses import asdict, dataclass
from math import inf
from typing import TypeVar

from ras_agent.budget import Ledger

T = TypeVar("T")

_MINUTE = 60.0


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

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value < 1:
                raise ValueError(f"Rates.{name} must be positive or None, got {value!r}")


@dataclass(slots=True)
class Booking:
    """Records a call that may start at time `at`. The caller replaces the estimated `tokens` by what the call used."""

    at: float
    tokens: int


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
        return cls(ledger, clock, clock.now() + ledger.seconds_left(), a_try)

    def left(self) -> float:
        """Return the seconds that are left, 0 if the moment has passed."""
        return max(self.at - self.clock.now(), 0.0)

    @asynccontextmanager
    async def one_try(self) -> AsyncIterator[None]:
        """Cancel the block when the time of a try is over.

        Raises what the block raises, BudgetExceeded if the run is over, and TryTimedOut.
        """
        if not (left := self.left()):
            self.ledger.refuse("max_seconds")
        async with self._within(left, self.a_try):
            yield

    async def wait(self, work: Awaitable[T]) -> T:
        """Return what `work` comes to. Raises BudgetExceeded if that is nothing before the run is over."""
        async with self._within(self.left()):
            return await work
        raise AssertionError("a block that is cancelled raises")

    @asynccontextmanager
    async def _within(self, left: float, a_try: float = inf) -> AsyncIterator[None]:
        limit = asyncio.timeout(min(left, a_try))
        try:
            async with limit:
                yield
            return
        except TimeoutError:
            if not limit.expired():
                raise
        if left <= a_try:
            self.ledger.refuse("max_seconds")
        raise TryTimedOut(f"no whole reply within {a_try:g} seconds")


class Limiter:
    """Lets calls start in the order in which they ask. `rates` may be changed while calls wait."""

    def __init__(self, rates: Rates | None = None, clock: Clock | None = None) -> None:
        self.rates = rates or Rates()
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._last_minute: deque[Booking] = deque()
        self._not_before = -inf
        self._in_flight = 0
        self._waiting: deque[Future[None]] = deque()

    @asynccontextmanager
    async def hold(self, tokens: int, deadline: Deadline | None = None) -> AsyncIterator[Booking]:
        """Wait for a slot and for the rates, then hold the slot during the block. `tokens` is an estimate.

        Raises BudgetExceeded if the call cannot start before the deadline, as soon as that is known.
        """
        ticket: Future[None] = Future()  # threads and coroutines wait in one queue
        with self._lock:
            self._waiting.append(ticket)
            self._hand_out()
        try:
            if not ticket.done():
                turn = asyncio.wrap_future(ticket)
                await (deadline.wait(turn) if deadline else turn)
            booking = self._book(tokens, deadline)
            if (wait := booking.at - self.clock.now()) > 0:
                await self.clock.asleep(wait)
            yield booking
        finally:
            never_served = ticket.cancel()
            with self._lock:
                self._in_flight -= not never_served
                self._hand_out()

    def pause(self, seconds: float) -> None:
        """Start no call within the next `seconds`: an endpoint that asks one caller to wait means all of them."""
        with self._lock:
            self._not_before = max(self._not_before, self.clock.now() + seconds)

    def _book(self, tokens: int, deadline: Deadline | None = None) -> Booking:
        """Book the first time at which every window of sixty seconds stays within the rates.

        A call of more tokens than the limit of a minute waits for an empty window.
        """
        most_requests, most_tokens = self.rates.requests_per_minute or inf, self.rates.tokens_per_minute or inf
        with self._lock:
            at, booked = max(self.clock.now(), self._not_before), self._last_minute.copy()
            while booked and booked[0].at + _MINUTE <= at:
                booked.popleft()
            spent = sum(earlier.tokens for earlier in booked)
            while booked and (len(booked) >= most_requests or spent + tokens > most_tokens):
                oldest = booked.popleft()
                spent -= oldest.tokens
                at = max(at, oldest.at + _MINUTE)
            if deadline and at - self.clock.now() > deadline.left():
                deadline.ledger.refuse("max_seconds")
            booking = Booking(at, tokens)
            if min(most_requests, most_tokens) < inf:
                self._not_before, self._last_minute = at, booked
                booked.append(booking)
            return booking

    def _hand_out(self) -> None:
        while self._waiting and self._in_flight < (self.rates.in_flight or inf):
            ticket = self._waiting.popleft()
            if ticket.set_running_or_notify_cancel():
                self._in_flight += 1
                ticket.set_result(None)


_limiters: dict[str, Limiter] = {}


def shared_limiter(endpoint: str, rates: Rates | None = None, clock: Clock | None = None) -> Limiter:
    """Return the one limiter of an endpoint. Later rates replace earlier ones; the first clock stays."""
    limiter = _limiters.setdefault(endpoint, Limiter(clock=clock))
    if rates is not None:
        limiter.rates = rates
    return limiter
