"""Limits of a run, and the ledger that holds every model call against them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import NoReturn

from ras_agent.errors import BudgetExceeded
from ras_agent.records import Call

__all__ = ["Ledger", "Limits", "current_ledger", "metered"]


@dataclass(frozen=True)
class Limits:
    """What ends the loop. Each limit ends it in an answer with its `stop_reason`, never in an exception.

    max_hops and k are RAS's settings (5 hops, 5 passages). max_facts bounds the question graph. max_llm_calls,
    max_tokens (input plus output) and max_seconds are off where None; one call is kept back for the answer. A model
    call that is under way when max_seconds are over is given up; the answer's may take its own timeout beyond them.
    stop_on_repeat and stop_on_no_new_facts end a loop that has stopped learning; the paper's loop has neither.
    """

    max_hops: int = 5
    k: int = 5
    max_facts: int = 400
    max_llm_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    stop_on_repeat: bool = True
    stop_on_no_new_facts: bool = True

    def __post_init__(self) -> None:
        for name in ("max_hops", "k", "max_facts", "max_llm_calls", "max_tokens", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Limits.{name} must be positive, got {value!r}")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))


@dataclass
class Ledger:
    """The model calls of one run so far. Thread safe; made anew for each node, seeded with the calls of earlier ones.

    started: `time.monotonic()` at the run's start, later by the time it was paused. refused: the limit that a call was
    refused or given up for; it ends the loop, also where a role has caught the BudgetExceeded and returned what it had.
    """

    role: str = ""
    hop: int = 0
    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=time.monotonic)
    earlier: Sequence[Call] = ()
    calls: list[Call] = field(default_factory=list)
    refused: str | None = None
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def exceeded(self, *, keep_for_answer: int = 1) -> str | None:
        """The name of the limit that the next call would pass, or None. `keep_for_answer` calls are held back."""
        limits = self.limits
        made = len(self.earlier) + len(self.calls) + self._open
        if limits.max_llm_calls is not None and made >= limits.max_llm_calls - keep_for_answer:
            return "max_llm_calls"
        tokens = sum(call.input_tokens + call.output_tokens for call in (*self.earlier, *self.calls))
        if limits.max_tokens is not None and tokens >= limits.max_tokens and keep_for_answer:
            return "max_tokens"
        if self.seconds_left() <= 0 and keep_for_answer:
            return "max_seconds"
        return None

    def seconds_left(self) -> float:
        """Until max_seconds is used up; infinity without that limit."""
        limit = self.limits.max_seconds
        return float("inf") if limit is None else self.started + limit - time.monotonic()

    def admit(self) -> None:
        """Reserve a call. Raises BudgetExceeded if a limit forbids it; the answerer may use the call kept for it."""
        with self._lock:
            limit = self.exceeded(keep_for_answer=0 if self.role == "answerer" else 1)
            if limit:
                self.refuse(limit)
            self._open += 1

    def refuse(self, limit: str) -> NoReturn:
        """Raises BudgetExceeded: `limit` forbids a call, or its end."""
        self.refused = limit
        raise BudgetExceeded(limit, f"{limit} = {getattr(self.limits, limit)} is used up")

    def record(self, call: Call) -> None:
        """Close a reserved call with what it used."""
        with self._lock:
            self._open -= 1
            self.calls.append(call)

    def release(self) -> None:
        """Close a reserved call that was never made or came back with nothing."""
        with self._lock:
            self._open -= 1


_ledger: ContextVar[Ledger | None] = ContextVar("ras_agent_ledger", default=None)


def current_ledger() -> Ledger:
    """The ledger of the node that is running, or a fresh one without limits outside any run."""
    return _ledger.get() or Ledger()


@contextmanager
def metered(ledger: Ledger) -> Iterator[Ledger]:
    """Model calls made inside the block (also in threads that copy the context) are held against `ledger`."""
    token = _ledger.set(ledger)
    try:
        yield ledger
    finally:
        _ledger.reset(token)
