"""Which failures of a model call are worth another try, when, and which say that no server is there at all."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from tenacity import RetryCallState

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
# Clients of different providers share no base class; these names cover httpx, the SDKs built on it, and requests.
_TRANSIENT_NAMES = frozenset({"APIConnectionError", "APITimeoutError", "TransportError", "Timeout"})
_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


@dataclass(frozen=True)
class RetryPolicy:
    """Allows `attempts` tries. Waits double from `first_wait` seconds, jittered, and never exceed `max_wait` seconds.

    Where the endpoint names a waiting time (Retry-After), that time is waited instead; if it is longer than `max_wait`,
    the call fails at once.
    """

    attempts: int = 5
    first_wait: float = 0.5
    max_wait: float = 60.0
    jitter: Callable[[], float] = random.random

    def retries(self, error: BaseException) -> bool:
        """Return whether the call is worth another try after `error`."""
        return is_transient(error) and (retry_after(error) or 0) <= self.max_wait

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next try: tenacity's wait function."""
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        if asked is not None:
            return asked
        ceiling = min(self.max_wait, self.first_wait * 2.0 ** (state.attempt_number - 1))
        return float(ceiling * (0.5 + 0.5 * self.jitter()))


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later: after a rate limit, server error, timeout or broken reply."""
    if getattr(error, "code", None) == "insufficient_quota":  # comes as a 429, but waiting does not refill an account
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
    """Return the seconds that the endpoint asked to wait in its Retry-After header (seconds or a date), or None."""
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


def unreachable(error: BaseException, endpoint: str = "") -> str:
    """Describe the missing server if that is why a call failed: "nothing listens at http://127.0.0.1:9"; else "".

    Waiting does not help then, so such calls fail sooner than those to which a server replies badly. The providers'
    clients wrap the socket's error in errors of their own, so the chain of causes is searched. `endpoint` is shown
    where no error of the chain holds the address.
    """
    chain = list(causes(error))
    if any(map(_refuses, chain)):
        return f"nothing listens at {_address(chain) or endpoint}"
    if any(isinstance(link, socket.gaierror) and link.errno in _NO_SUCH_HOST for link in chain):
        return f"there is no host of that name: {_address(chain) or endpoint}"
    return ""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, also where it was raised `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _refuses(error: BaseException) -> bool:
    """Return whether the connection was refused, by all addresses of a host that has several."""
    if isinstance(error, BaseExceptionGroup):
        return all(any(map(_refuses, causes(one))) for one in error.exceptions)
    return isinstance(error, ConnectionRefusedError)


def _address(chain: list[BaseException]) -> str:
    """Return scheme, host and port of the failed request, "" if no error of the chain holds them."""
    for error in chain:
        try:
            url = urlsplit(str(error.request.url))  # type: ignore[attr-defined]
            port = f":{url.port}" if url.port else ""
        except (AttributeError, RuntimeError, ValueError):  # httpx raises RuntimeError where it has no request
            continue
        if url.hostname:
            return f"{url.scheme}://{url.hostname}{port}"
    return ""
