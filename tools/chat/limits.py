"""Decides when a model call may start: in order of arrival, within an endpoint's rates, and as fast as the server
keeps up.

All agents, threads and event loops of the process that use an endpoint share one Limiter.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from math import inf

from ras_agent.contracts.events import WaitingForModel, emit, streaming
from ras_agent.running.budget import Ledger
from ras_agent.running.calling import noted
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Clock, Deadline, Turn
from ras_agent.tools.chat.runnables import class_names
from ras_agent.tools.chat.window import USUAL_REPLY, estimate_turns

_MINUTE = 60.0
_SAY_EVERY = 2.0  # seconds before a call emits WaitingForModel, and between two
_REPLIES_TO_WIDEN = 20
_TOGETHER = 1.0  # seconds; of calls sent within this time, a server may begin with any
# recognised by class name, as the providers' clients share no base class
_TIMEOUTS = frozenset(
    ("TimeoutError", "Timeout", "TimeoutException", "APITimeoutError")
)


@dataclass(frozen=True, slots=True)
class Rates:
    """Sets limits of requests and of tokens (input plus output) in any sixty seconds, and of simultaneous calls.

    None means no limit.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    in_flight: int | None = 128

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value < 1:
                raise ValueError(
                    f"Rates.{name} must be positive or None, got {value!r}"
                )


@dataclass(slots=True)
class Booking:
    """Holds the time `at` from which a call may start. The caller replaces the estimated `tokens` by those actually
    used.
    """

    at: float
    tokens: int


class LastMinute:
    """Schedules calls so that every period of sixty seconds stays within the rates. Not thread safe."""

    def __init__(self) -> None:
        self._booked: deque[Booking] = deque()
        self._not_before = -inf

    def pause(self, until: float) -> None:
        """Allow no call before the time `until`."""
        self._not_before = max(self._not_before, until)

    def book(
        self, tokens: int, rates: Rates, deadline: Deadline, now: float
    ) -> Booking:
        """Book the earliest time that the rates allow. A call with more tokens than a minute allows waits for an idle
        minute.

        Raises BudgetExceeded, and books nothing, if that time is after the deadline.

        Args:
            tokens: the estimated tokens of the call.
            now: the present time, by the deadline's clock.
        """
        most_requests = rates.requests_per_minute or inf
        most_tokens = rates.tokens_per_minute or inf
        at = max(now, self._not_before)
        booked = deque(one for one in self._booked if one.at + _MINUTE > at)
        spent = sum(one.tokens for one in booked)
        while booked and (len(booked) >= most_requests or spent + tokens > most_tokens):
            oldest = booked.popleft()
            spent -= oldest.tokens
            at = max(at, oldest.at + _MINUTE)
        if at - now > deadline.left():
            deadline.ledger.refuse("max_seconds")
        booking = Booking(at, tokens)
        if min(most_requests, most_tokens) < inf:
            booked.append(booking)
            self._booked = booked
            self._not_before = at
        return booking


class ServerSilent(Exception):
    """Reports that a server let as many tries in a row time out as the call allows. The call is not retried."""


@dataclass(slots=True, eq=False)
class _Call:
    """Holds a call that waits until it may start, or that has been sent."""

    deadline: Deadline
    # a Future, as threads and coroutines wait in the same queue
    ticket: Future[None] = field(default_factory=Future)
    has_slot: bool = False

    @property
    def turn(self) -> Turn:
        return self.deadline.turn

    @property
    def silence(self) -> ServerSilent:
        remedy = "raise timeout if the server is slow, or lower in_flight; otherwise see the server's log"
        tries = self.deadline.tries
        return ServerSilent(
            f"the server let {tries} tries in a row time out without any reply: {remedy}"
        )


class Limiter:
    """Starts calls in the order in which they arrive, within `rates`, which may be changed while calls wait.

    If a try times out and no later call has been answered, the server is overloaded or hangs. Then half as many
    calls are allowed in flight, at least one, before any other is sent. After 20 replies, one more is allowed.
    """

    def __init__(self, rates: Rates | None = None, clock: Clock | None = None) -> None:
        self.rates = rates or Rates()
        self.clock = clock or Clock()
        self._lock = threading.Lock()
        self._minute = LastMinute()
        self._waiting: deque[_Call] = deque()
        self._in_flight = 0
        self._sent: dict[_Call, None] = {}  # ordered by the time of sending
        self._sent_ever = 0
        self._width = inf
        self._narrowed = 0
        self._replies = 0
        self._rounds = 0
        self._round_ends = 0
        self._said: tuple[int, ...] = ()

    @property
    def most_in_flight(self) -> float:
        """Return how many calls may be in flight, given the rates and how well the server keeps up."""
        return min(self.rates.in_flight or inf, self._width)

    @asynccontextmanager
    async def hold(
        self, tokens: int, deadline: Deadline | None = None
    ) -> AsyncIterator[Booking]:
        """Return a context manager that waits until a call may start, and counts it as in flight during the block.

        Raises BudgetExceeded as soon as it is known that the call cannot start before the deadline, and
        ServerSilent if as many tries as the call allows have timed out.

        Args:
            tokens: the estimated tokens of the call.
            deadline: by default there is no deadline.
        """
        call = _Call(deadline or Deadline.of(Ledger(), self.clock))
        self._enter(call)
        problem: BaseException | None = None
        try:
            with self._telling(call):
                with noted(waiting=1):
                    booking = await self._admitted(call, tokens)
                self._send(call)
                with noted(working=1):
                    yield booking
        except BaseException as error:
            problem = error
            raise
        finally:
            self._leave(call, problem)

    async def _admitted(self, call: _Call, tokens: int) -> Booking:
        """Wait for a slot and for the rates, and return the booking."""
        if not call.ticket.done():
            await call.deadline.wait(asyncio.wrap_future(call.ticket))
        call.ticket.result()
        booking = self._book(tokens, call.deadline)
        wait = booking.at - self.clock.now()
        if wait > 0:
            await self.clock.asleep(wait)
        return booking

    def pause(self, seconds: float) -> None:
        """Start no call within the next `seconds`. If an endpoint asks one caller to wait, all callers wait."""
        with self._lock:
            self._minute.pause(self.clock.now() + seconds)

    def _book(self, tokens: int, deadline: Deadline) -> Booking:
        with self._lock:
            now = self.clock.now()
            return self._minute.book(tokens, self.rates, deadline, now)

    def _enter(self, call: _Call) -> None:
        with self._lock:
            if call.turn.rounds is None:
                call.turn.rounds = self._rounds
            if self._is_given_up(call):
                raise call.silence
            self._waiting.append(call)
            self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._in_flight < self.most_in_flight:
            call = self._waiting.popleft()
            if not call.ticket.done() and call.ticket.set_running_or_notify_cancel():
                self._in_flight += 1
                call.has_slot = True
                call.ticket.set_result(None)

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
                self._note_end(call, problem)
            self._in_flight -= call.has_slot
            self._hand_out()

    def _note_end(self, call: _Call, problem: BaseException | None) -> None:
        if problem is None:
            self._note_reply(call)
        elif _is_timeout(problem):
            self._note_timeout(call)
        elif isinstance(problem, Exception):
            self._rounds = 0

    def _note_reply(self, call: _Call) -> None:
        """Restart the timeouts of calls that were sent later, and allow one more call in flight after many replies."""
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
        """Halve the allowed calls in flight, once for all calls that were in flight together."""
        if call.turn.overtaken or call.turn.number <= self._round_ends:
            return
        self._rounds += 1
        self._round_ends = self._sent_ever
        self._replies = 0
        in_flight = len(self._sent) + 1
        if in_flight > 1:
            self._width = in_flight // 2
            self._narrowed += 1
        for waiting in self._waiting:
            if (
                self._is_given_up(waiting)
                and waiting.ticket.set_running_or_notify_cancel()
            ):
                waiting.ticket.set_exception(waiting.silence)

    def _is_given_up(self, call: _Call) -> bool:
        """Return whether a call that was tried before is given up, as the server has let every recent try time out."""
        tries = call.deadline.tries
        if tries is None or not call.turn.number:
            return False
        before = min(call.turn.rounds or 0, self._rounds)
        return self._rounds - before >= tries

    @contextmanager
    def _telling(self, call: _Call) -> Iterator[None]:
        """Emit events while a call waits for long: how many calls of its run are waiting."""
        if not streaming():
            yield
            return
        saying = asyncio.create_task(self._say_often(call.deadline.ledger))
        try:
            yield
        finally:
            saying.cancel()

    async def _say_often(self, ledger: Ledger) -> None:
        while True:
            await asyncio.sleep(_SAY_EVERY)
            self._say(ledger)

    def _say(self, ledger: Ledger) -> None:
        """Emit how many calls of a run wait, unless the last event said the same."""
        with self._lock:
            # each search of a plan has its own ledger, but all share the list of calls
            calls = ledger.calls
            sent = sum(other.deadline.ledger.calls is calls for other in self._sent)
            waiting = sum(
                other.deadline.ledger.calls is calls and not other.ticket.done()
                for other in self._waiting
            )
            replied = len(calls)
            news = (id(calls), sent, waiting, replied)
            if news == self._said:
                return
            self._said = news
        emit(WaitingForModel(replied + sent, replied + sent + waiting, replied))


def _is_timeout(error: BaseException) -> bool:
    """Return whether an error is a client's time-out."""
    return not _TIMEOUTS.isdisjoint(class_names(error))


_limiters: dict[str, Limiter] = {}


def shared_limiter(
    endpoint: str, rates: Rates | None = None, clock: Clock | None = None
) -> Limiter:
    """Return the limiter that all users of an endpoint share. New rates replace earlier ones; the first clock stays."""
    limiter = _limiters.setdefault(endpoint, Limiter(clock=clock))
    if rates is not None:
        limiter.rates = rates
    return limiter


class Slotted:
    """Wraps a model and calls it when the endpoint's limiter lets the call start."""

    def __init__(self, model: Model, limiter: Limiter) -> None:
        self._model = model
        self._limiter = limiter

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply.

        Raises ServerSilent if the server lets all tries time out, and BudgetExceeded if the call cannot start in
        time.
        """
        tokens = 0
        if self._limiter.rates.tokens_per_minute:
            tokens = estimate_turns(request.turns) + (request.max_tokens or USUAL_REPLY)
        async with self._limiter.hold(tokens, deadline) as booking:
            reply = await self._model.ask(request, deadline)
            booking.tokens = reply.input_tokens + reply.output_tokens or booking.tokens
            return reply
