"""How fast one endpoint may be called, by all agents, threads and event loops of this process together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

__all__ = ["Booking", "Clock", "Limiter", "Rates", "TooLate", "shared_limiter"]

MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, and how to let it pass; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests and tokens (input plus output) in any sixty seconds, and calls under way at once. None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    in_flight: int | None = 16

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "in_flight"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Rates.{name} must be positive or None, got {value!r}")


@dataclass(slots=True)
class Booking:
    """A call that may start at time `at`. Set `tokens`, an estimate so far, to what the call really used."""

    at: float
    tokens: int


class TooLate(Exception):
    """A call's turn would come later than its caller can wait."""


class Limiter:
    """Lets calls through in the order in which they ask. `rates` may be changed while calls wait."""

    def __init__(self, rates: Rates | None = None, clock: Clock | None = None) -> None:
        self.rates = rates or Rates()
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._last_minute: deque[Booking] = deque()
        self._not_before = float("-inf")
        self._slots = _Slots(lambda: self.rates.in_flight)

    @contextmanager
    def hold(self, tokens: int, within: float = float("inf")) -> Iterator[Booking]:
        """Wait for a slot and for the rates, then keep the slot for the block. `tokens` is an estimate.

        Raises TooLate, as soon as that is known, if the call may not start `within` so many seconds.
        """
        ticket, latest = self._slots.queue(), self.clock.now() + within
        try:
            try:
                ticket.result(None if within == float("inf") else within)
            except TimeoutError:
                raise TooLate from None
            booking = self._book(tokens, latest)
            if (wait := booking.at - self.clock.now()) > 0:
                self.clock.sleep(wait)
            yield booking
        finally:
            self._slots.give_back(ticket)

    @asynccontextmanager
    async def ahold(self, tokens: int, within: float = float("inf")) -> AsyncIterator[Booking]:
        """`hold` for coroutines."""
        ticket, latest = self._slots.queue(), self.clock.now() + within
        try:
            try:
                await asyncio.wait_for(asyncio.wrap_future(ticket), None if within == float("inf") else within)
            except TimeoutError:
                raise TooLate from None
            booking = self._book(tokens, latest)
            if (wait := booking.at - self.clock.now()) > 0:
                await self.clock.asleep(wait)
            yield booking
        finally:
            self._slots.give_back(ticket)

    def pause(self, seconds: float) -> None:
        """Start no call within the next `seconds`: the endpoint asked for quiet, whoever it told so."""
        with self._lock:
            self._not_before = max(self._not_before, self.clock.now() + seconds)

    def _book(self, tokens: int, latest: float = float("inf")) -> Booking:
        """Book the first time that keeps every window of sixty seconds within the rates; none after `latest`.

        More tokens than a minute's limit wait for an empty window, and then go.
        """
        with self._lock:
            at = max(self.clock.now(), self._not_before)
            booked = self._last_minute.copy()
            while booked and booked[0].at + MINUTE <= at:
                booked.popleft()
            spent = sum(earlier.tokens for earlier in booked)
            while booked and not self._allows(len(booked) + 1, spent + tokens):
                oldest = booked.popleft()
                spent -= oldest.tokens
                at = max(at, oldest.at + MINUTE)
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
    """A semaphore that threads and coroutines wait for in one queue."""

    def __init__(self, limit: Callable[[], int | None]) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._waiting: deque[Future[None]] = deque()

    def queue(self) -> Future[None]:
        """A ticket that is done once a slot is the caller's."""
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
    """The one limiter of an endpoint. Rates given later replace those given before; the first clock stays."""
    with _limiters_lock:
        limiter = _limiters.setdefault(endpoint, Limiter(clock=clock))
        if rates is not None:
            limiter.rates = rates
        return limiter
