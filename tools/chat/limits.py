"""When a model call may start, and by when it must have ended.

A Limiter holds the rates of one endpoint for all agents, threads and event loops of this process, and asks a server
that is too slow for many calls at a time for fewer. A Deadline ends a call with its run, however long the model's
client would wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from math import inf
from typing import TypeVar

from ras_agent.budget import Ledger
from ras_agent.calling import noted
from ras_agent.events import WaitingForModel, emit, streaming

T = TypeVar("T")

_MINUTE = 60.0
_SAY_EVERY = 2.0  # seconds that a call waits before a stream of the run says so, and between two such events
_REPLIES_TO_WIDEN = 20
_TOGETHER = 1.0  # seconds; a server may begin with any of the calls that it was sent within so short a time
# by the names of their classes, as providers' clients share none
_TIMEOUTS = frozenset(("TimeoutError", "Timeout", "TimeoutException", "APITimeoutError"))


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


class ServerSilent(Exception):
    """Raised when a server let as many tries in a row time out as a call may have. No other try is made."""


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

    Work that has not ended by then is refused in the ledger, with BudgetExceeded, like a call that was never made. One
    try may take `a_try` seconds of it, from its turn at the server to the last byte of its reply.
    """

    ledger: Ledger
    clock: Clock
    at: float
    a_try: float = inf
    tries: int | None = None
    """Tries of the server in a row, by whichever calls, after which the call is not tried again; None: any number."""
    turn: Turn = field(default_factory=Turn)

    @classmethod
    def of(cls, ledger: Ledger, clock: Clock, a_try: float = inf, tries: int | None = None) -> Deadline:
        """Return the moment when the time of the ledger's running role is over."""
        at = clock.now() + ledger.seconds_left()
        return cls(ledger, clock, at, a_try, tries)

    def left(self) -> float:
        """Return the seconds that are left, 0 if the moment has passed."""
        return max(self.at - self.clock.now(), 0.0)

    @asynccontextmanager
    async def one_try(self) -> AsyncIterator[None]:
        """Cancel the block when the time of a try is over.

        Raises what the block raises, BudgetExceeded if the run is over, and TryTimedOut.
        """
        left = self.left()
        if not left:
            self.ledger.refuse("max_seconds")
        self.turn.began = time.monotonic()
        async with self._within(left, self.a_try):
            yield

    async def wait(self, work: Awaitable[T]) -> T:
        """Return what `work` comes to. Raises BudgetExceeded if that is nothing before the run is over."""
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
        return self.turn.began + a_try - time.monotonic() if a_try < inf else inf


@dataclass(slots=True, eq=False)
class _Call:
    """Call that waits for its slot, or that was sent."""

    turn: Turn
    deadline: Deadline | None
    ticket: Future[None] = field(default_factory=Future)  # threads and coroutines wait in one queue
    has_slot: bool = False

    @property
    def ledger(self) -> Ledger | None:
        return self.deadline.ledger if self.deadline else None


class Limiter:
    """Lets calls start in the order in which they ask. `rates` may be changed while calls wait.

    Where a try times out and no call sent after it was replied to, the server has too much to do, or nothing works
    there: from then on half as many calls are in flight, down to one, before any is asked again. Replies in a row
    allow one more.
    """

    def __init__(self, rates: Rates | None = None, clock: Clock | None = None) -> None:
        self.rates = rates or Rates()
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._last_minute: deque[Booking] = deque()
        self._not_before = -inf
        self._in_flight = 0
        self._waiting: deque[_Call] = deque()
        self._sent: dict[_Call, None] = {}  # in the order in which they were sent
        self._sent_ever = 0
        self._width = inf
        self._narrowed = 0
        self._replies = 0
        self._rounds = 0
        self._round_ends = 0
        self._said: tuple[int, ...] = ()

    @property
    def most_in_flight(self) -> float:
        """Return how many calls may be in flight: what the rates allow, or what the server has kept up with."""
        return min(self.rates.in_flight or inf, self._width)

    @asynccontextmanager
    async def hold(self, tokens: int, deadline: Deadline | None = None) -> AsyncIterator[Booking]:
        """Wait for a slot and for the rates, then hold the slot during the block. `tokens` is an estimate.

        Raises BudgetExceeded if the call cannot start before the deadline, as soon as that is known, and ServerSilent
        if the server has let as many tries time out as the call may have.
        """
        call = _Call(deadline.turn if deadline else Turn(), deadline)
        self._enter(call)
        problem: BaseException | None = None
        try:
            with self._telling(call):
                with noted(waiting=1):
                    booking = await self._admitted(call, tokens, deadline)
                self._send(call)
                with noted(working=1):
                    yield booking
        except BaseException as error:
            problem = error
            raise
        finally:
            self._leave(call, problem)

    async def _admitted(self, call: _Call, tokens: int, deadline: Deadline | None) -> Booking:
        """Wait for a slot and for the rates."""
        if not call.ticket.done():
            slot = asyncio.wrap_future(call.ticket)
            await (deadline.wait(slot) if deadline else slot)
        call.ticket.result()
        booking = self._book(tokens, deadline)
        wait = booking.at - self.clock.now()
        if wait > 0:
            await self.clock.asleep(wait)
        return booking

    def _enter(self, call: _Call) -> None:
        with self._lock:
            if call.turn.rounds is None:
                call.turn.rounds = self._rounds
            if self._is_given_up(call):
                raise _silence(call)
            self._waiting.append(call)
            self._hand_out()

    def _send(self, call: _Call) -> None:
        with self._lock:
            self._sent_ever += 1
            call.turn.number = self._sent_ever
            call.turn.sent = time.monotonic()
            call.turn.overtaken = False
            self._sent[call] = None

    def _leave(self, call: _Call, problem: BaseException | None) -> None:
        call.ticket.cancel()
        with self._lock:
            if call in self._sent:
                del self._sent[call]
                if problem is None:
                    self._note_reply(call)
                elif _is_timeout(problem):
                    self._note_timeout(call)
                elif isinstance(problem, Exception):
                    self._rounds = 0
            self._in_flight -= call.has_slot
            self._hand_out()

    def _note_reply(self, call: _Call) -> None:
        """Begin the time of calls that were sent later, and let one more be in flight after many replies."""
        now = time.monotonic()
        for other in self._sent:
            if other.turn.sent >= call.turn.sent - _TOGETHER:
                other.turn.began = now
            else:
                other.turn.overtaken = True
        self._rounds = 0
        self._replies += 1
        if self._width < inf and self._replies >= _REPLIES_TO_WIDEN * self._narrowed:
            self._width += 1
            self._replies = 0

    def _note_timeout(self, call: _Call) -> None:
        """Halve what is in flight, once for all calls that were in flight then."""
        turn = call.turn
        if turn.overtaken or turn.number <= self._round_ends:
            return
        self._rounds += 1
        self._round_ends = self._sent_ever
        self._replies = 0
        in_flight = len(self._sent) + 1
        if in_flight > 1:
            self._width = in_flight // 2
            self._narrowed += 1
        for waiting in self._waiting:
            if self._is_given_up(waiting) and waiting.ticket.set_running_or_notify_cancel():
                waiting.ticket.set_exception(_silence(waiting))

    def _is_given_up(self, call: _Call) -> bool:
        """Return whether a call that was tried is not to be tried again, as the server lets every try time out."""
        tries = call.deadline.tries if call.deadline else None
        if tries is None or not call.turn.number:
            return False
        before = min(call.turn.rounds or 0, self._rounds)
        return self._rounds - before >= tries

    @contextmanager
    def _telling(self, call: _Call) -> Iterator[None]:
        """Emit, where a call waits for long, how many calls of its run do."""
        if call.ledger is None or not streaming():
            yield
            return
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def say() -> None:
            nonlocal timer
            timer = loop.call_later(_SAY_EVERY, say)
            self._say(call)

        timer = loop.call_later(_SAY_EVERY, say)
        try:
            yield
        finally:
            timer.cancel()

    def _say(self, call: _Call) -> None:
        """Emit how many calls of a run wait, unless that was the last that was said."""
        ledger = call.ledger
        if ledger is None:
            return
        with self._lock:
            sent = sum(1 for other in self._sent if other.ledger is ledger)
            waiting = sum(1 for other in self._waiting if other.ledger is ledger and not other.ticket.done())
            replied = len(ledger.calls)
            news = (id(ledger), sent, waiting, replied)
            if news == self._said:
                return
            self._said = news
        emit(WaitingForModel(replied + sent, replied + sent + waiting, replied))

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
        while self._waiting and self._in_flight < self.most_in_flight:
            call = self._waiting.popleft()
            if not call.ticket.done() and call.ticket.set_running_or_notify_cancel():
                self._in_flight += 1
                call.has_slot = True
                call.ticket.set_result(None)


def _is_timeout(error: BaseException) -> bool:
    """Return whether a client has waited in vain."""
    return any(base.__name__ in _TIMEOUTS for base in type(error).__mro__)


def _silence(call: _Call) -> ServerSilent:
    tries = call.deadline.tries if call.deadline else 0
    remedy = "raise timeout if it is slow, or lower in_flight; else look what it is doing"
    return ServerSilent(f"the server let {tries} tries in a row time out and replied to none; {remedy}")


_limiters: dict[str, Limiter] = {}


def shared_limiter(endpoint: str, rates: Rates | None = None, clock: Clock | None = None) -> Limiter:
    """Return the one limiter of an endpoint. Later rates replace earlier ones; the first clock stays."""
    limiter = _limiters.setdefault(endpoint, Limiter(clock=clock))
    if rates is not None:
        limiter.rates = rates
    return limiter
