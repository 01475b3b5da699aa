"""Asks a model again after a passing failure, and turns the last failure into a clear error without credentials.

A policy says which failures are worth another try, and when.
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

from ras_agent.errors import (
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
    return error or AssertionError("only a failure is waited after")


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


def _refuses(error: BaseException) -> bool:
    """Return whether the connection was refused, by all addresses of a host that has several."""
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


_SHOWN = 300  # characters of an error
_REMEDIES = {
    401: "check the API key",
    403: "check the API key's rights",
    404: "check the model's name and the server's address",
    429: "lower requests_per_minute or tokens_per_minute",
}
_UNUSABLE = frozenset((401, 403, 404))


class Tried:
    """Asks a model until it replies, as often as a policy allows. Each try is a call of the model inside.

    Raises ModelRefused if the server is not there, refuses the key or does not know the model, PromptTooLong if the
    prompt does not fit into the model's window, BudgetExceeded, and ModelCallError after the last try.
    """

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        limiter: Limiter,
        name: str,
        endpoint: str,
        secrets_of: Any,
    ) -> None:
        """Take who is asked, and how.

        limiter: the endpoint's; it holds all calls back for as long as one of them has to wait.
        name, endpoint: of the model, for messages.
        secrets_of: the object that holds the secrets which no message shows.
        """
        self._model = model
        self._policy = policy
        self._limiter = limiter
        self._where = name if name.endswith(endpoint) else f"{name} at {endpoint}"
        self._endpoint = endpoint
        self._secrets_of = secrets_of
        self._has_replied = False

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply, after as many tries as it takes."""
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
            in_time = (retry_after(error) or 0.0) < deadline.left()
            return in_time and not is_overflow(error) and decide(error)

        def wait(state: RetryCallState) -> float:
            return min(self._policy.wait(state), deadline.left())

        def pause_everybody(state: RetryCallState) -> None:
            self._limiter.pause(retry_after(_error_in(state)) or 0.0)

        return AsyncRetrying(
            sleep=clock.asleep,
            retry=retry_if_exception(worth_it),
            wait=wait,
            before_sleep=pause_everybody,
            reraise=True,
        )

    @contextmanager
    def _errors_named(self, tries: AsyncRetrying) -> Iterator[None]:
        """Turn whatever a provider's client raises into a RasError without credentials."""
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
            # a cause is shown with its traceback, and may hold the secret
            raise kind(message) from (error if shown == str(error) else None)

    def _kind_of(self, error: Exception) -> type[RasError]:
        """Return the class of the error that the caller gets."""
        gone = unreachable(error)
        status = getattr(error, "status_code", None)
        # once a model has replied, key and name are right, and a refusal has another reason
        unusable = (gone or status in _UNUSABLE) and not self._has_replied
        if gone:  # if the next call finds nobody either, no other will
            self._has_replied = False
        if is_overflow(error):
            return PromptTooLong
        return ModelRefused if unusable else ModelCallError

    def _story(self, error: Exception, shown: str) -> str:
        """Return the problem and its remedy."""
        why = without_secrets(diagnosis(error, self._endpoint), self._secrets_of)
        if unreachable(error):
            return why
        problem = f"{type(error).__name__}: {shown[:_SHOWN]}"
        if why:
            return f"{problem}: {why}"
        remedy = _REMEDIES.get(getattr(error, "status_code", None) or 0)
        return f"{problem}; {remedy}" if remedy else problem
