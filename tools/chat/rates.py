"""The rates of an endpoint: requests and tokens in any minute, and when the next call may start."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from math import inf

from ras_agent.tools.chat.deadline import Deadline

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Limits requests and tokens (input plus output) in any sixty seconds, and simultaneous calls. None: no limit."""

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
    """Records a call that may start at time `at`. The caller replaces the estimated `tokens` by those that it used."""

    at: float
    tokens: int


class LastMinute:
    """Books calls so that every window of sixty seconds stays within the rates. Not thread safe."""

    def __init__(self) -> None:
        self._booked: deque[Booking] = deque()
        self._not_before = -inf

    def pause(self, until: float) -> None:
        """Book no call before a time."""
        self._not_before = max(self._not_before, until)

    def book(
        self, tokens: int, rates: Rates, deadline: Deadline, now: float
    ) -> Booking:
        """Book the first time that the rates allow. A call of more tokens than a minute's waits for an empty window.

        Raises BudgetExceeded, and books nothing, where that is after the deadline.
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
