"""Retries a model call after a temporary failure, and turns the last failure into a clear error without credentials.

A policy decides which failures are worth another try, and how long to wait.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from ras_agent.contracts.errors import (
    BudgetExceeded,
    ModelCallError,
    ModelRefused,
    PromptTooLong,
    RasError,
)
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.http import BrokenReply, NoConnection, RefusedReply
from ras_agent.tools.chat.limits import Limiter
from ras_agent.tools.chat.runnables import class_names
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.chat.waits import causes, retry_after, status_of
from ras_agent.tools.chat.window import is_overflow

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429, *range(500, 600)})
# status codes of a proxy whose server is down, and of a server that is still loading its model
_GONE_STATUS = frozenset({502, 503})
# Clients of different providers share no base class; these names cover httpx, the SDKs built on it, and requests.
_TRANSIENT_NAMES = frozenset(
    {"APIConnectionError", "APITimeoutError", "TransportError", "Timeout"}
)
_FINAL = (RefusedReply, ssl.SSLError, OverflowError)
_PASSING = (TimeoutError, ConnectionError, json.JSONDecodeError)
_TRIES_OF_AN_ABSENT_SERVER = 2
_LOOK_EVERY = 5.0  # most seconds between tries of a server that is gone
_RATE_LIMITED = 429
# factor of the waiting time after a rate limit, since most rates are counted per minute
_LONGER_AT_A_LIMIT = 8.0
_IN_A_STREAM = "APIError"  # the base class of OpenAI's errors, which is raised itself for an error inside a stream
_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


@dataclass(frozen=True)
class RetryPolicy:
    """Sets how often a failed call is tried again. Waits double from `first_wait` seconds, with jitter, up to
    `max_wait`.

    After a rate limit, waits are eight times as long. If the endpoint asks to wait for some time
    (`ras_agent.tools.chat.waits`), that time is used instead; if it is longer than `max_wait`, the call fails at
    once.
    """

    attempts: int = 5
    """The maximum number of tries."""
    first_wait: float = 0.5
    """The longest first wait, in seconds."""
    max_wait: float = 60.0
    """The longest wait, in seconds."""
    jitter: Callable[[], float] = random.random
    """Returns a random number from 0 to 1."""
    patience: float = 120.0
    """The seconds to wait for a server that has replied before and now cannot be reached, since it may be loading its
    model again.

    These tries do not count as attempts.
    """

    def retries(self, error: BaseException) -> bool:
        """Return whether another try is worthwhile after `error`."""
        asked = retry_after(error) or 0.0
        return asked <= self.max_wait and is_transient(error)

    def decides(
        self, *, has_replied: bool, now: Callable[[], float]
    ) -> Callable[[BaseException], bool]:
        """Return a function that decides, after each failure of one call, whether to try again.

        Args:
            has_replied: whether the server has replied to an earlier call. If not, the call fails the second time
                that nothing listens at the address; after the first time, the server may still be starting.
            now: returns the time in seconds.
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
        """Return the seconds to wait before the next try. This is a wait function for tenacity."""
        error = _error_in(state)
        asked = retry_after(error)
        if asked is not None:
            return asked
        longest = _LOOK_EVERY if is_gone(error) else self.max_wait
        first = self.first_wait
        if status_of(error) == _RATE_LIMITED:
            first *= _LONGER_AT_A_LIMIT
        doubled = first * 2.0 ** min(state.attempt_number - 1, 30)
        ceiling = min(longest, self.max_wait, doubled)
        return float(ceiling * (0.5 + 0.5 * self.jitter()))


def _error_in(state: RetryCallState) -> BaseException:
    """Return the error of the last try."""
    error = state.outcome.exception() if state.outcome else None
    return error or AssertionError("a wait was asked for although no try failed")


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later, as after a rate limit, a server error or a timeout."""
    # has status 429, but waiting does not refill an account
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
    """Return whether a server that has replied before may be down: it cannot be reached, or a proxy says so."""
    return unreachable(error) or (
        status_of(error) in _GONE_STATUS and retry_after(error) is None
    )


def unreachable(error: BaseException) -> bool:
    """Return whether a call failed because there is no server at the address.

    Waiting rarely helps then, so such calls are given up sooner than those that a server rejects.
    """
    return any(_refuses(link) or _has_no_host(link) for link in causes(error))


def diagnosis(error: BaseException, endpoint: str = "") -> str:
    """Explain a failed call, with advice, if the client's own message is as vague as "Connection error."; otherwise
    return "".

    The clients of providers wrap the socket's error in errors of their own, so the whole chain of causes is
    searched.

    Args:
        endpoint: the address to show if no error in the chain has it.
    """
    chain = list(causes(error))
    where = _address(chain) or endpoint
    for link in chain:
        if _refuses(link):
            return (
                f"nothing listens at {where}; start the server, or correct its address"
            )
        if _has_no_host(link):
            return f"there is no host with the name in {where}: correct the address"
        if isinstance(link, ssl.SSLCertVerificationError):
            return (
                f"TLS: the certificate of {where} is not trusted ({link.verify_message}): put the certificate that "
                "signed it into a file, and set SSL_CERT_FILE to that file; or correct the address"
            )
        if isinstance(link, ssl.SSLError):
            why = getattr(link, "reason", None) or link.strerror or link
            remedy = "write http:// for a server without TLS, or correct the address"
            return f"TLS: {where} does not use TLS ({why}): {remedy}"
    for link in chain[1:]:  # the message of the first error is shown anyway
        if isinstance(link, (BrokenReply, RefusedReply)):
            return str(link)
    return ""


def _refuses(error: BaseException) -> bool:
    """Return whether the connection was refused; for a host with several addresses, by all of them."""
    if not isinstance(error, BaseExceptionGroup):
        return isinstance(error, ConnectionRefusedError)
    _, others = error.split(
        lambda one: any(
            isinstance(link, ConnectionRefusedError) for link in causes(one)
        )
    )
    return others is None


def _has_no_host(error: BaseException) -> bool:
    return isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_HOST


def _address(chain: list[BaseException]) -> str:
    """Return the scheme, host and port of the failed request; "" if no error in the chain has them."""
    for error in chain:
        try:
            if isinstance(error, NoConnection):
                address = error.url
            else:
                address = error.request.url  # type: ignore[attr-defined]
            url = urlsplit(str(address))
            port = f":{url.port}" if url.port else ""
        except (AttributeError, RuntimeError, ValueError):
            # httpx raises RuntimeError if the error has no request
            continue
        if url.hostname:
            return f"{url.scheme}://{url.hostname}{port}"
    return ""


_SHOWN = 300  # characters of an error
_REMEDIES = {
    401: "check the API key",
    403: "check the API key's rights",
    404: "check the model's name and the server's address",
    429: "lower requests_per_minute or tokens_per_minute",
}
_UNUSABLE = frozenset((401, 403, 404))


class Tried:
    """Wraps a model and calls it until it replies, as often as a policy allows."""

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        limiter: Limiter,
        name: str,
        endpoint: str,
        secrets_of: Any,
    ) -> None:
        """Take the model, the policy, and the names for messages.

        Args:
            limiter: the endpoint's limiter; if one call has to wait, all calls wait.
            name, endpoint: of the model, for messages.
            secrets_of: the object whose secrets are masked in messages.
        """
        self._model = model
        self._policy = policy
        self._limiter = limiter
        self._where = name if name.endswith(endpoint) else f"{name} at {endpoint}"
        self._endpoint = endpoint
        self._secrets_of = secrets_of
        self._has_replied = False

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply, after as many tries as necessary.

        Raises:
            ModelRefused: if the server cannot be reached, refuses the key or does not know the model.
            PromptTooLong: if the prompt does not fit into the model's window.
            BudgetExceeded: if the run's budget is used up.
            ModelCallError: after the last try.
        """
        tries = self._retrying(deadline)
        with self._errors_named(tries):
            async for attempt in tries:
                with attempt:
                    reply = await self._model.ask(request, deadline)
                    self._has_replied = True
                    return reply
        raise AssertionError("a call either returns or raises")

    def _retrying(self, deadline: Deadline) -> AsyncRetrying:
        clock = deadline.clock
        decide = self._policy.decides(has_replied=self._has_replied, now=clock.now)

        def worth_it(error: BaseException) -> bool:
            asked = retry_after(error) or 0.0
            if asked >= deadline.left() or is_overflow(error):
                return False
            return decide(error)

        def wait(state: RetryCallState) -> float:
            seconds = self._policy.wait(state)
            return min(seconds, deadline.left())

        def pause_everybody(state: RetryCallState) -> None:
            asked = retry_after(_error_in(state))
            self._limiter.pause(asked or 0.0)

        return AsyncRetrying(
            sleep=clock.asleep,
            retry=retry_if_exception(worth_it),
            wait=wait,
            before_sleep=pause_everybody,
            reraise=True,
        )

    @contextmanager
    def _errors_named(self, tries: AsyncRetrying) -> Iterator[None]:
        """Turn any error of a provider's client into a RasError without credentials."""
        try:
            yield
        except (BudgetExceeded, ModelRefused):
            raise
        except Exception as error:
            shown = without_secrets(str(error), self._secrets_of)
            kind = self._kind_of(error)
            count = tries.statistics.get("attempt_number", 1)
            times = "1 try" if count == 1 else f"{count} tries"
            message = f"{self._where} failed after {times}: {self._story(error, shown)}"
            # a cause is shown in tracebacks, so it is dropped if its message contains a secret
            raise kind(message) from (error if shown == str(error) else None)

    def _kind_of(self, error: Exception) -> type[RasError]:
        """Return the class of error to raise for `error`."""
        gone = unreachable(error)
        status = getattr(error, "status_code", None)
        # once a model has replied, its key and name are known to be right, so a refusal has another reason
        unusable = (gone or status in _UNUSABLE) and not self._has_replied
        if gone:  # a second unreachable call makes the server unusable
            self._has_replied = False
        if is_overflow(error):
            return PromptTooLong
        return ModelRefused if unusable else ModelCallError

    def _story(self, error: Exception, shown: str) -> str:
        """Return a description of the problem, with advice if there is any."""
        why = without_secrets(diagnosis(error, self._endpoint), self._secrets_of)
        if unreachable(error):
            return why
        problem = f"{type(error).__name__}: {shown[:_SHOWN]}"
        if why:
            return f"{problem}: {why}"
        remedy = _REMEDIES.get(getattr(error, "status_code", None) or 0)
        return f"{problem}; {remedy}" if remedy else problem
