"""By when a model call must have ended: with its run, however long the model's client would wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from ras_agent.budget import Ledger

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the time and waits. Tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    asleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class TryTimedOut(TimeoutError):
    """Raised when one try of a call has taken its whole time; another try may be made."""


@dataclass(slots=True, eq=False)
class Turn:
    """Place of a call among those that a server was sent and has not replied to."""

    began: float = -inf
    """When the server can have begun with the present try, by the machine's clock.

    That is when it was sent, or when the server replied to a call that was sent earlier: one that takes its calls in
    order has been busy with that one.
    """
    sent: float = inf
    """When the present try was sent, by the same clock."""
    number: int = 0
    """The present try's place in the order in which the server was sent calls; 0 before the first."""
    overtaken: bool = False
    """Whether the server has replied to a call that was sent later."""
    rounds: int | None = None
    """Time-outs in a row that the server had behind it when the call was first made."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Holds the moment `at`, by `clock`, after which nobody waits for a call; infinity where the run has no limit.

    Work that has not ended by then is refused in the ledger, with BudgetExceeded, like a call that was never made.
    """

    ledger: Ledger
    clock: Clock
    at: float
    a_try: float = inf
    """Seconds that one try may take, from its turn at the server to the last byte of its reply."""
    tries: int | None = None
    """Tries of the server in a row, by whichever calls, after which the call is not tried again; None: any number."""
    turn: Turn = field(default_factory=Turn)

    @classmethod
    def of(
        cls, ledger: Ledger, clock: Clock, a_try: float = inf, tries: int | None = None
    ) -> Deadline:
        """Return the moment when the time of the ledger's running role is over."""
        at = clock.now() + ledger.seconds_left()
        return cls(ledger, clock, at, a_try, tries)

    def left(self) -> float:
        """Return the seconds that are left, 0 if the moment has passed."""
        return max(self.at - self.clock.now(), 0.0)

    @asynccontextmanager
    async def one_try(self) -> AsyncIterator[None]:
        """Cancel the block when the time of a try is over.

        Raises an error of the block, BudgetExceeded if the run is over, and TryTimedOut.
        """
        left = self.left()
        if not left:
            self.ledger.refuse("max_seconds")
        self.turn.began = time.monotonic()
        async with self._within(left, self.a_try):
            yield

    async def wait(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. Raises BudgetExceeded if the run ends first."""
        async with self._within(self.left()):
            return await work
        raise AssertionError("a block that is cancelled raises")

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
        raise TryTimedOut(f"no whole reply within {a_try:g} seconds")

    @contextmanager
    def _ending_a_try(self, limit: asyncio.Timeout, a_try: float) -> Iterator[None]:
        """Let `limit` expire when the try has had its time, which may begin again while it waits."""
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
        """Return the seconds that are left of a try."""
        if a_try == inf:
            return inf
        return self.turn.began + a_try - time.monotonic()
