"""The limits of a run, and the ledger that checks every model call against them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from math import inf
from numbers import Integral, Real
from time import monotonic
from typing import Any, NoReturn

from ras_agent.errors import BudgetExceeded, SettingsError
from ras_agent.records import JSON, Call, Failure
from ras_agent.scoped_value import ScopedValue

_ANSWERER = "answerer"
_OPTIONAL = frozenset(("max_llm_calls", "max_tokens", "max_seconds"))
_FOR_ANSWER = 0.25  # share of max_seconds and of max_tokens
_MOST_SECONDS_FOR_ANSWER = 60.0
_LEAST_REPLY = 64  # tokens; a shorter reply would be useless


@dataclass(frozen=True)
class Limits:
    """Limits of a run. A limit ends the loop with an answer and its `stop_reason`, never with an exception.

    max_llm_calls, max_tokens and max_seconds are off if they are None. They bound the whole run including the answer,
    for which one call, a quarter of the tokens and a quarter of the seconds (at most 60) are reserved. When the time is
    over, the loop waits for no role: a failure names the role that was still running, and its later result is dropped.
    """

    max_hops: int = 5
    """the largest number of searches; each search is a hop"""
    k: int = 5
    """passages per hop"""
    max_parallel: int = 3
    """the largest number of searches that one plan makes at the same time"""
    max_facts: int = 400
    """the largest number of visible facts in the question graph"""
    max_llm_calls: int | None = None
    """the largest number of model calls"""
    max_tokens: int | None = None
    """The largest number of input and output tokens together. A call is not made if the estimate of its prompt would
    pass it."""
    max_seconds: float | None = None
    """the longest duration of the run, in seconds"""
    stop_on_repeat: bool = True
    """whether a repeated sub-query ends the loop; the paper's loop goes on"""
    stop_on_no_new_facts: bool = True
    """whether a hop without new facts ends the loop; the paper's loop goes on"""

    def __post_init__(self) -> None:
        for name in (
            "max_hops",
            "k",
            "max_parallel",
            "max_facts",
            "max_llm_calls",
            "max_tokens",
            "max_seconds",
        ):
            value: Any = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            kind: Any = Real if name == "max_seconds" else Integral
            if value is None or isinstance(value, bool) or not isinstance(value, kind):
                raise SettingsError(
                    f"Limits.{name} must be a whole number, got {value!r}"
                )
            if not value > 0:
                raise SettingsError(f"Limits.{name} must be positive, got {value!r}")

    @property
    def loop_seconds(self) -> float | None:
        """Return the seconds after which the loop ends, so that an answer can still be made within max_seconds."""
        if self.max_seconds is None:
            return None
        for_answer = min(self.max_seconds * _FOR_ANSWER, _MOST_SECONDS_FOR_ANSWER)
        return self.max_seconds - for_answer

    @property
    def loop_tokens(self) -> int | None:
        """Return the tokens that may be used before the answer."""
        if self.max_tokens is None:
            return None
        return self.max_tokens - int(self.max_tokens * _FOR_ANSWER)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))


@dataclass
class _Reserved:
    """Number of calls that were admitted and have not ended, and their tokens."""

    calls: int = 0
    tokens: int = 0


@dataclass
class Ledger:
    """Record of the model calls of one run, which admits or refuses the next call. Each node has its own ledger. Thread
    safe."""

    role: str = ""
    hop: int = 0
    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=monotonic)
    """`time.monotonic()` at the run's start, plus the time for which the run was paused"""
    earlier: Sequence[Call] = ()
    """the calls of the nodes that ran before this one"""
    reviews: Sequence[JSON] = ()
    """a person's decisions in this run (`ras_agent.review.Reviewed.to_dict()`), for the roles that read them"""
    calls: list[Call] = field(default_factory=list)
    refused: str | None = None
    """The limit for which a call was refused or cancelled. It ends the loop, even if a role has caught the
    BudgetExceeded and returned a result."""
    notes: list[Failure] = field(default_factory=list)
    """failures of roles that cannot return failures in their result, such as a planner that could not show all facts to
    its model"""
    in_need: set[str] = field(default_factory=set)
    """roles with a last reply that could not be read, which therefore add examples and a form to their prompts"""
    _reserved: _Reserved = field(default_factory=_Reserved)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def part(self, role: str, hop: int) -> Ledger:
        """Return the ledger for one of several calls that a node makes at the same time. All parts share the limits.

        Each part has its own notes, so that `join` can record them in the order of the calls, whichever call ends
        first.
        """
        return replace(
            self,
            role=role,
            hop=hop,
            refused=None,
            notes=[],
            in_need=set(self.in_need),
        )

    def join(self, parts: Iterable[Ledger]) -> None:
        """Take over the notes and refusals of `parts` in their order, and sort the calls by hop."""
        for part in parts:
            self.refused = self.refused or part.refused
            self.in_need |= part.in_need
            for noted in part.notes:
                self._add_note(noted)
        self.calls.sort(key=lambda call: call.hop)

    def exceeded(self, *, keep_for_answer: int = 1) -> str | None:
        """Return the name of the limit that the next call would pass, or None. `keep_for_answer` calls are reserved."""
        limits = self.limits
        calls = len(self.earlier) + len(self.calls) + self._reserved.calls
        if (
            limits.max_llm_calls is not None
            and calls >= limits.max_llm_calls - keep_for_answer
        ):
            return "max_llm_calls"
        if self.tokens_left() <= 0:
            return "max_tokens"
        if self.seconds_left() <= 0 and keep_for_answer:
            return "max_seconds"
        return None

    def seconds_left(self) -> float:
        """Return the seconds that the running role may take; infinity without max_seconds."""
        limit = self.limits.loop_seconds
        if self.role == _ANSWERER:
            limit = self.limits.max_seconds
        if limit is None:
            return inf
        return self.started + limit - monotonic()

    def tokens_left(self) -> float:
        """Return the tokens that the running role may still use, minus those of its open calls; infinity without
        max_tokens."""
        limit = self.limits.loop_tokens
        if self.role == _ANSWERER:
            limit = self.limits.max_tokens
        if limit is None:
            return inf
        used = sum(
            call.input_tokens + call.output_tokens
            for call in (*self.earlier, *self.calls)
        )
        return limit - used - self._reserved.tokens

    def admit(self, prompt: int = 0, reply: int = 0) -> int:
        """Reserve a call with a prompt of `prompt` tokens, and return how many of the `reply` tokens it may use for its
        reply.

        Close it by `record` or `release`, with all tokens that were reserved. Raises BudgetExceeded if a limit forbids
        the call; only the answerer may use the calls that are reserved for it.
        """
        with self._lock:
            limit = self.exceeded(keep_for_answer=0 if self.role == _ANSWERER else 1)
            if limit:
                self.refuse(limit)
            granted = int(min(reply, self.tokens_left() - prompt))
            if granted < min(reply, _LEAST_REPLY):
                self.refuse("max_tokens")
            self._reserved.calls += 1
            self._reserved.tokens += prompt + granted
            return granted

    def refuse(self, limit: str) -> NoReturn:
        """Raise BudgetExceeded, and note that `limit` forbids a call or its completion."""
        self.refused = limit
        raise BudgetExceeded(
            limit, f"{limit} = {getattr(self.limits, limit)} is used up"
        )

    def record(self, call: Call, reserved: int = 0) -> None:
        """Close a reserved call of `reserved` tokens, and record it with the tokens that it used."""
        with self._lock:
            self._reserved.calls -= 1
            self._reserved.tokens -= reserved
            self.calls.append(call)

    def add(self, call: Call) -> None:
        """Record a call that was not reserved before."""
        with self._lock:
            self.calls.append(call)

    def note(
        self,
        message: str,
        detail: str = "",
        kind: type[Failure] = Failure,
        role: str = "",
    ) -> None:
        """Record a problem of `role`, by default the running role. The same message is recorded only once."""
        noted = kind(role or self.role, message, self.hop, detail)
        with self._lock:
            self._add_note(noted)

    def _add_note(self, new: Failure) -> None:
        for noted in self.notes:
            if noted.message == new.message and noted.role == new.role:
                return
        self.notes.append(new)

    @property
    def needs_more(self) -> bool:
        """Return whether a reply of the running role could not be read in this run."""
        return self.role in self.in_need

    def ask_for_more(self) -> None:
        """Record that the last reply of the running role could not be read, and mark its call as unread."""
        with self._lock:
            self.in_need.add(self.role)
            for number, call in reversed(list(enumerate(self.calls))):
                if call.role == self.role and call.hop == self.hop:
                    self.calls[number] = replace(call, unread=True)
                    break

    def release(self, reserved: int = 0) -> None:
        """Close a reserved call that was never made or returned nothing."""
        with self._lock:
            self._reserved.calls -= 1
            self._reserved.tokens -= reserved


_ledger: ContextVar[Ledger | None] = ContextVar("ras_agent_ledger", default=None)


def current_ledger() -> Ledger:
    """Return the ledger of the running node, or a new one without limits outside any run."""
    return _ledger.get() or Ledger()


def record_call(
    model: str, input_tokens: int = 0, output_tokens: int = 0, *, seconds: float = 0.0
) -> None:
    """Count a model call that a custom role made without LangChain. Calls through LangChain are counted automatically.

    The call enters `out["usage"]` with the running role and hop. The limits of the run count it, and end the loop
    before the next step. Outside a run the function does nothing.
    """
    ledger = _ledger.get()
    if ledger is None:
        return
    call = Call(
        role=ledger.role,
        hop=ledger.hop,
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=seconds,
    )
    ledger.add(call)


def metered(ledger: Ledger) -> ScopedValue[Ledger]:
    """Count the model calls made inside the block in `ledger`, also those in threads that copy the context."""
    return ScopedValue(_ledger, ledger)
