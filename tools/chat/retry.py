"""Which failures of a model call are worth another try, and when."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tenacity import RetryCallState

__all__ = ["RetryPolicy", "is_transient", "retry_after"]

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
# Clients of different providers share no base class; these names cover httpx, the SDKs built on it, and requests.
_TRANSIENT_NAMES = frozenset({"APIConnectionError", "APITimeoutError", "TransportError", "Timeout"})


@dataclass(frozen=True)
class RetryPolicy:
    """Up to `attempts` tries. Waits double from `first_wait` seconds, jittered, and never pass `max_wait` seconds.

    An endpoint that names its own waiting time (Retry-After) is obeyed; one that asks for more than `max_wait` is given
    up at once.
    """

    attempts: int = 5
    first_wait: float = 0.5
    max_wait: float = 60.0
    jitter: Callable[[], float] = random.random

    def retries(self, error: BaseException) -> bool:
        return is_transient(error) and (retry_after(error) or 0) <= self.max_wait

    def wait(self, state: RetryCallState) -> float:
        """Seconds before the next try: tenacity's wait function."""
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        if asked is not None:
            return asked
        ceiling = min(self.max_wait, self.first_wait * 2.0 ** (state.attempt_number - 1))
        return float(ceiling * (0.5 + 0.5 * self.jitter()))


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: after a rate limit, a server error, a timeout, a broken reply."""
    if getattr(error, "code", None) == "insufficient_quota":  # comes as a 429, and no waiting refills an account
        return False
    if isinstance(error, (TimeoutError, ConnectionError, json.JSONDecodeError)):
        return True
    status = _status(error)
    if status is not None:
        return status in _TRANSIENT_STATUS
    return bool(getattr(error, "is_retryable", False)) or any(
        base.__name__ in _TRANSIENT_NAMES for base in type(error).__mro__
    )


def retry_after(error: BaseException) -> float | None:
    """Seconds that the endpoint asked to wait, from its Retry-After header (seconds or a date), or None."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(value)) if value else None
    except ValueError:
        return _seconds_until(value)


def _seconds_until(date: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None
