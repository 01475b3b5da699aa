"""Defines the limits of a run, and the ledger that checks every model call against them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from math import inf
from numbers import Integral, Real
from time import monotonic
from typing import Any, NoReturn

from ras_agent.contracts.errors import BudgetExceeded, SettingsError
from ras_agent.contracts.records import JSON, Call, Failure
from ras_agent.contracts.scoped_value import ScopedValue

_ANSWERER = "answerer"
_OPTIONAL = frozenset(("max_llm_calls", "max_tokens", "max_seconds"))
_FOR_ANSWER = 0.25  # share of max_seconds and of max_tokens
_MOST_SECONDS_FOR_ANSWER = 60.0
_LEAST_REPLY = 64  # tokens; a shorter reply would be useless


@dataclass(frozen=True)
class Limits:
    """Limits a run. A run that reaches a limit still ends with an answer, and a `stop_reason`; no exception is
    raised.

    A limit of None is off. max_llm_calls, max_tokens and max_seconds apply to the whole run; one call, a
    quarter of the tokens and a quarter of the seconds (at most 60 seconds) of them are kept for the answer.
    When the time is over, the run no longer waits for the role that is working (planner, retriever, extractor):
    a Failure names the role, and its later result is dropped.
    """

    max_hops: int = 5
    """the largest number of searches; each search is a hop"""
    k: int = 5
    """passages per hop"""
    max_parallel: int = 3
    """the largest number of searches that one plan makes at the same time"""
    max_facts: int = 400
    """the largest number of facts of the question graph that prompts and searches use; the others are hidden"""
    max_llm_calls: int | None = None
    """the largest number of model calls"""
    max_tokens: int | None = None
    """The largest number of tokens, input and output together. A call is not made if its estimated prompt exceeds the
    rest.
    """
    max_seconds: float | None = None
    """the longest duration of the run, in seconds"""
    stop_on_repeat: bool = True
    """whether a repeated sub-query ends the loop; in the RAS paper it does not"""
    stop_on_no_new_facts: bool = True
    """whether a hop without new facts ends the loop; in the RAS paper it does not"""

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
        """Return after how many seconds of the run no further hop begins; the rest is kept for the answer."""
        if self.max_seconds is None:
            return None
        for_answer = min(self.max_seconds * _FOR_ANSWER, _MOST_SECONDS_FOR_ANSWER)
        return self.max_seconds - for_answer

    @property
    def loop_tokens(self) -> int | None:
        """Return the number of tokens that the hops may use; the rest of max_tokens is kept for the answer."""
        if self.max_tokens is None:
            return None
        return self.max_tokens - int(self.max_tokens * _FOR_ANSWER)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all limits, in the order of the fields."""
        return tuple(field.name for field in fields(cls))


@dataclass
class _Reserved:
    """Counts the calls that were admitted and have not ended, and their tokens."""

    calls: int = 0
    tokens: int = 0


@dataclass
class Ledger:
    """Records the model calls of one node of a run, and admits or refuses its next call. Thread safe."""

    role: str = ""
    """the role whose calls are recorded, such as "planner\""""
    hop: int = 0
    """the number of the hop, from 1; 0 before the first hop"""
    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=monotonic)
    """`time.monotonic()` at the run's start, plus the time for which the run was paused"""
    earlier: Sequence[Call] = ()
    """the calls of the nodes that ran before this one"""
    reviews: Sequence[JSON] = ()
    """a person's decisions in this run (`ras_agent.running.review.Reviewed.to_dict()`), for the roles that read them"""
    calls: list[Call] = field(default_factory=list)
    """the calls of this node so far"""
    refused: str | None = None
    """The name of the limit for which a call was refused. The loop then ends, even if the role caught BudgetExceeded.
    """
    notes: list[Failure] = field(default_factory=list)
    """failures that a role could not put into its result, such as a planner that could not show all facts to its model
    """
    in_need: set[str] = field(default_factory=set)
    """roles whose last reply could not be parsed; their next prompts add worked examples and a form to fill
    in"""
    _reserved: _Reserved = field(default_factory=_Reserved)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def part(self, role: str, hop: int) -> Ledger:
        """Return a ledger for one of several calls that a node makes at the same time; all share the limits and
        the recorded calls.

        Each part collects its own failures, so that `join` can record them in the order of the calls, whichever
        ends first.
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
        """Add the failures and refusals of `parts` to this ledger, in the order of `parts`, and sort its calls by hop."""
        for part in parts:
            self.refused = self.refused or part.refused
            self.in_need |= part.in_need
            for noted in part.notes:
                self._add_note(noted)
        self.calls.sort(key=lambda call: call.hop)

    def exceeded(self, *, keep_for_answer: int = 1) -> str | None:
        """Return the name of the limit that one more call would exceed, or None if the call is possible.

        `keep_for_answer` is how many of max_llm_calls stay reserved for the answerer.
        """
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
        """Return the seconds that the running role may still take; infinity if max_seconds is off."""
        limit = self.limits.loop_seconds
        if self.role == _ANSWERER:
            limit = self.limits.max_seconds
        if limit is None:
            return inf
        return self.started + limit - monotonic()

    def tokens_left(self) -> float:
        """Return the tokens that the running role may still use, not counting those reserved for its open
        calls.

        The number is infinite if max_tokens is off.
        """
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
        """Reserve a model call, and return how many tokens its reply may have.

        Every reserved call must later be closed by `record` or `release`.

        Args:
            prompt: The estimated tokens of the prompt.
            reply: The tokens that the caller would like for the reply.

        Raises:
            BudgetExceeded: If a limit forbids the call. Only the answerer may use what is kept for the answer.
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
        """Raise BudgetExceeded, and record that the limit named `limit` stopped the run."""
        self.refused = limit
        raise BudgetExceeded(
            limit, f"{limit} = {getattr(self.limits, limit)} is used up"
        )

    def record(self, call: Call, reserved: int = 0) -> None:
        """Close a call that `admit` reserved, and record it. `reserved` is the number of tokens that it
        reserved.
        """
        with self._lock:
            self._reserved.calls -= 1
            self._reserved.tokens -= reserved
            self.calls.append(call)

    def add(self, call: Call) -> None:
        """Record a call that was made without `admit`."""
        with self._lock:
            self.calls.append(call)

    def note(
        self,
        message: str,
        detail: str = "",
        kind: type[Failure] = Failure,
        role: str = "",
    ) -> None:
        """Record a failure for the run's `failures`, unless the same role has recorded the same message before.

        Args:
            message: The problem and its remedy.
            detail: An excerpt of the text that could not be used.
            kind: The class of the failure.
            role: The role that failed; by default the running role.
        """
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
        """Tell whether the running role's last reply could not be parsed, so that its prompt should have more
        examples.
        """
        return self.role in self.in_need

    def ask_for_more(self) -> None:
        """Record that the running role's last reply could not be parsed (see `in_need`), and mark its call as unread."""
        with self._lock:
            self.in_need.add(self.role)
            for number, call in reversed(list(enumerate(self.calls))):
                if call.role == self.role and call.hop == self.hop:
                    self.calls[number] = replace(call, unread=True)
                    break

    def release(self, reserved: int = 0) -> None:
        """Close a reserved call that was not made or that returned nothing. `reserved` is the number of tokens
        that it reserved.
        """
        with self._lock:
            self._reserved.calls -= 1
            self._reserved.tokens -= reserved


_ledger: ContextVar[Ledger | None] = ContextVar("ras_agent_ledger", default=None)


def current_ledger() -> Ledger:
    """Return the ledger of the running node. Outside a run, return a new ledger without limits."""
    return _ledger.get() or Ledger()


def record_call(
    model: str, input_tokens: int = 0, output_tokens: int = 0, *, seconds: float = 0.0
) -> None:
    """Record a model call that a custom role made without LangChain. Calls through LangChain are recorded
    automatically.

    The call appears in `out["usage"]` with the running role and hop, and counts towards the limits, which can
    end the loop before the next step. Outside a run the function does nothing.
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
    """Return a context manager that records the model calls of its block in `ledger`.

    Threads that copy the block's context record there too.
    """
    return ScopedValue(_ledger, ledger)
