"""A model call that must have ended with its run, however long the model's client would wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

from ras_agent.budget import Ledger
from ras_agent.tools.chat.limits import Clock

__all__ = ["Deadline"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment `at`, by `clock`, after which nobody waits for a call; infinity where the run has no limit.

    Work that is given up is refused in the ledger, with BudgetExceeded, like a call that was never made.
    """

    ledger: Ledger
    clock: Clock
    at: float

    @classmethod
    def of(cls, ledger: Ledger, clock: Clock, timeout: float) -> Deadline:
        """The end of the ledger's run. The answer, for which a call is kept, may take `timeout` seconds beyond it."""
        left = ledger.seconds_left()
        if ledger.role == "answerer":
            left = max(left, 0.0) + timeout
        # no lock waits for centuries
        return cls(ledger, clock, clock.now() + left if left < threading.TIMEOUT_MAX / 2 else float("inf"))

    def left(self) -> float:
        """Seconds until then, 0 if it has passed."""
        return max(self.at - self.clock.now(), 0.0)

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises. Raises BudgetExceeded if it has not ended by then.

        Python cannot end a thread, so work that is given up goes on in one of its own, until its client's timeout.
        """
        if self.at == float("inf"):
            return work()
        if not self.left():
            self.ledger.refuse("max_seconds")
        ended: Future[T] = Future()

        def run() -> None:
            try:
                ended.set_result(work())
            except BaseException as error:
                ended.set_exception(error)

        context = copy_context()  # of the ledger, and of LangChain's callbacks
        threading.Thread(target=context.run, args=(run,), name="ras-agent-model", daemon=True).start()
        return self.wait(ended)

    def wait(self, future: Future[T]) -> T:
        """The future's result. Raises BudgetExceeded if there is none by then."""
        try:
            return future.result(None if self.at == float("inf") else self.left())
        except TimeoutError:
            if future.done():  # the work's own error, or just in time
                return future.result()
            self.ledger.refuse("max_seconds")

    async def arun(self, work: Awaitable[T]) -> T:
        """`wait` for coroutines, which are cancelled when they are given up."""
        try:
            async with asyncio.timeout(None if self.at == float("inf") else self.left()) as limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
        self.ledger.refuse("max_seconds")
