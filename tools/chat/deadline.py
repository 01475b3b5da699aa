"""Enforces deadlines of model calls: a call ends with its run, however long the model's client would wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from ras_agent.running.budget import Ledger

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Clock:
    """Provides the time and waits. Tests pass their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class TryTimedOut(TimeoutError):
    """Reports that one try of a call has used all its time; another try may follow."""


@dataclass(slots=True, eq=False)
class Turn:
    """Records a call's place in the queue of a server."""

    began: float = -inf
    """The earliest time at which the server can have begun with the present try, by the machine's monotonic clock.

    This is when the try was sent, or later, when the server replied to a call that was sent earlier: a server that
    takes calls in order was busy with that call until then.
    """
    sent: float = inf
    """The time at which the present try was sent, by the same clock."""
    number: int = 0
    """The present try's position in the order in which calls were sent to the server; 0 before the first try."""
    overtaken: bool = False
    """Whether the server has replied to a call that was sent after this one."""
    rounds: int | None = None
    """The number of successive time-outs that the server already had when the call was first made."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Holds the time `at`, by `clock`, at which waiting for a call ends; infinity if the run has no time limit.

    A call that has not ended by then raises BudgetExceeded, like one that was refused before it was made.
    """

    ledger: Ledger
    clock: Clock
    at: float
    a_try: float = inf
    """The seconds that one try may take, from the moment the server can begin with it to the last byte of the reply."""
    tries: int | None = None
    """The number of successive time-outs of the server, over all calls, after which a call is not retried; None for no
    limit.
    """
    turn: Turn = field(default_factory=Turn)

    @classmethod
    def of(
        cls, ledger: Ledger, clock: Clock, a_try: float = inf, tries: int | None = None
    ) -> Deadline:
        """Return the deadline for calls of the role that runs now, given the time that the ledger leaves it."""
        at = clock.now() + ledger.seconds_left()
        return cls(ledger, clock, at, a_try, tries)

    def left(self) -> float:
        """Return the seconds that are left; 0 after the deadline."""
        left = self.at - self.clock.now()
        return max(left, 0.0)

    @asynccontextmanager
    async def one_try(self) -> AsyncIterator[None]:
        """Return a context manager that cancels its block when the time of one try is over.

        Raises TryTimedOut if the try took too long, BudgetExceeded if the run is over, and any error of the block.
        """
        left = self.left()
        if not left:
            self.ledger.refuse("max_seconds")
        self.turn.began = time.monotonic()
        async with self._within(left, self.a_try):
            yield

    async def wait(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. Raises BudgetExceeded if the run's time is over first."""
        async with self._within(self.left()):
            return await work
        raise AssertionError("a cancelled block ended without an error")

    @asynccontextmanager
    async def _within(self, left: float, a_try: float = inf) -> AsyncIterator[None]:
        limit = asyncio.timeout(left)
        try:
            async with limit:
                with self._ending_a_try(limit, a_try):
                    yield
            return
        except TimeoutError:
            if not limit.expired():
                raise
        if self._try_left(a_try) > 0:
            self.ledger.refuse("max_seconds")
        raise TryTimedOut(f"the reply was not complete within {a_try:g} seconds")

    @contextmanager
    def _ending_a_try(self, limit: asyncio.Timeout, a_try: float) -> Iterator[None]:
        """Make `limit` expire when the try has used its time.

        The time starts again if `turn.began` moves during the wait.
        """
        if a_try == inf:
            yield
            return
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            left = self._try_left(a_try)
            if left > 0:
                timer = loop.call_later(left, look)
            else:
                limit.reschedule(loop.time())

        look()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def _try_left(self, a_try: float) -> float:
        """Return the seconds that are left for the try."""
        if a_try == inf:
            return inf
        return self.turn.began + a_try - time.monotonic()
