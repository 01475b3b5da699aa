"""Which failures of a model call are worth another try, when, and which say that no server is there at all."""

from __future__ import annotations

import json
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from urllib.parse import urlsplit

from tenacity import RetryCallState

from ras_agent.tools.chat.http import BrokenReply, NoConnection, RefusedReply
from ras_agent.tools.chat.runnables import class_names
from ras_agent.tools.chat.waits import retry_after, status_of

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
# the replies of a proxy without its server, and of a server that is still loading its model
_GONE_STATUS = frozenset({502, 503})
# Clients of different providers share no base class; these names cover httpx, the SDKs built on it, and requests.
_TRANSIENT_NAMES = frozenset(
    {"APIConnectionError", "APITimeoutError", "TransportError", "Timeout"}
)
_FINAL = (RefusedReply, ssl.SSLError, OverflowError)
_PASSING = (TimeoutError, ConnectionError, json.JSONDecodeError)
_TRIES_OF_AN_ABSENT_SERVER = 2
_LOOK_EVERY = 5.0  # seconds at most between tries of a server that is gone
_RATE_LIMITED = 429
# times as long as after other failures, as most rates are those of a minute
_LONGER_AT_A_LIMIT = 8.0
_IN_A_STREAM = "APIError"  # the base class of OpenAI's errors, raised itself where a stream holds an error
_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


@dataclass(frozen=True)
class RetryPolicy:
    """Allows `attempts` tries. Waits double from `first_wait` seconds, jittered, and never exceed `max_wait` seconds.

    After a rate limit they are eight times as long. Where the endpoint names a waiting time
    (`ras_agent.tools.chat.waits`), that time is waited instead; one longer than `max_wait` ends the call at once.

    patience: seconds for which a server that has replied before is waited for when nobody is there: it may be loading
    its model again. Looking for it does not count as a try.
    """

    attempts: int = 5
    first_wait: float = 0.5
    max_wait: float = 60.0
    jitter: Callable[[], float] = random.random
    patience: float = 120.0

    def retries(self, error: BaseException) -> bool:
        """Return whether the call is worth another try after `error`."""
        return is_transient(error) and (retry_after(error) or 0) <= self.max_wait

    def decides(
        self, *, has_replied: bool, now: Callable[[], float]
    ) -> Callable[[BaseException], bool]:
        """Return a function that decides after each failure of a call whether it is worth another try.

        has_replied: whether the server has replied to an earlier call. If not, nothing is there where nothing listens
        for the second time; after the first, the server may be starting. now: a clock, in seconds.
        """
        tries = absences = failures = 0
        gone_since = inf

        def worth_another_try(error: BaseException) -> bool:
            nonlocal tries, absences, failures, gone_since
            tries += 1
            if not self.retries(error):
                return False
            if unreachable(error) and not has_replied:
                absences += 1
                return absences < _TRIES_OF_AN_ABSENT_SERVER and tries < self.attempts
            if is_gone(error) and has_replied:
                gone_since = min(gone_since, now())
                return now() - gone_since < self.patience or tries < self.attempts
            failures += 1
            return failures < self.attempts

        return worth_another_try

    def wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next try: tenacity's wait function."""
        error = state.outcome.exception() if state.outcome else None
        asked = retry_after(error) if error else None
        if asked is not None:
            return asked
        longest = _LOOK_EVERY if error and is_gone(error) else self.max_wait
        first = self.first_wait
        if error and status_of(error) == _RATE_LIMITED:
            first *= _LONGER_AT_A_LIMIT
        doubled = first * 2.0 ** min(state.attempt_number - 1, 30)
        ceiling = min(longest, self.max_wait, doubled)
        return float(ceiling * (0.5 + 0.5 * self.jitter()))


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later: after a rate limit, server error, timeout or broken reply."""
    # comes as a 429, but waiting does not refill an account
    if getattr(error, "code", None) == "insufficient_quota":
        return False
    chain = list(causes(error))
    if any(isinstance(link, _FINAL) for link in chain):
        return False
    if any(isinstance(link, BrokenReply) for link in chain):
        return True
    if isinstance(error, _PASSING) or type(error).__name__ == _IN_A_STREAM:
        return True
    status = status_of(error)
    if status is not None:
        return status in _TRANSIENT_STATUS
    if getattr(error, "is_retryable", False):
        return True
    return not _TRANSIENT_NAMES.isdisjoint(class_names(error))


def is_gone(error: BaseException) -> bool:
    """Return whether a server, if it was there before, is not there now: it or its proxy says so, or nobody does."""
    return unreachable(error) or (
        status_of(error) in _GONE_STATUS and retry_after(error) is None
    )


def unreachable(error: BaseException) -> bool:
    """Return whether a call failed because no server is there.

    Waiting does not help then, so such calls fail sooner than those to which a server replies badly.
    """
    return any(_refuses(link) or _has_no_host(link) for link in causes(error))


def diagnosis(error: BaseException, endpoint: str = "") -> str:
    """Explain a failed call and its remedy if the client only says "Connection error."; else return "".

    The providers' clients wrap the socket's error in errors of their own, so the chain of causes is searched.
    `endpoint` is shown where no error of the chain holds the address.
    """
    chain = list(causes(error))
    where = _address(chain) or endpoint
    for link in chain:
        if _refuses(link):
            return (
                f"nothing listens at {where}; start the server, or correct its address"
            )
        if _has_no_host(link):
            return f"there is no host of that name: {where}; start the server, or correct its address"
        if isinstance(link, ssl.SSLCertVerificationError):
            return (
                f"TLS: the certificate of {where} is not trusted ({link.verify_message}); put the one that signed it "
                "into a file that SSL_CERT_FILE names, or correct the address"
            )
        if isinstance(link, ssl.SSLError):
            why = getattr(link, "reason", None) or link.strerror or link
            remedy = "write http:// for a server without TLS, or correct the address"
            return f"TLS: {where} does not speak it ({why}); {remedy}"
    for link in chain[1:]:  # the first is shown in any case
        if isinstance(link, (BrokenReply, RefusedReply)):
            return str(link)
    return ""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, also where it was raised `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _refuses(error: BaseException, inside: frozenset[int] = frozenset()) -> bool:
    """Return whether the connection was refused, by all addresses of a host that has several.

    inside: the groups that hold the error; one of them may be its cause, too.
    """
    if not isinstance(error, BaseExceptionGroup):
        return isinstance(error, ConnectionRefusedError)
    if id(error) in inside:
        return False
    groups = inside | {id(error)}
    refused = [
        any(_refuses(link, groups) for link in causes(one)) for one in error.exceptions
    ]
    return all(refused)


def _has_no_host(error: BaseException) -> bool:
    return isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST


def _address(chain: list[BaseException]) -> str:
    """Return scheme, host and port of the failed request, "" if no error of the chain holds them."""
    for error in chain:
        try:
            if isinstance(error, NoConnection):
                address = error.url
            else:
                address = error.request.url  # type: ignore[attr-defined]
            url = urlsplit(str(address))
            port = f":{url.port}" if url.port else ""
        except (AttributeError, RuntimeError, ValueError):
            # httpx raises RuntimeError where it has no request
            continue
        if url.hostname:
            return f"{url.scheme}://{url.hostname}{port}"
    return ""
