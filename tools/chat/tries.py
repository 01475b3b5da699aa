"""Asks a model again after a passing failure, and turns the last failure into a clear error without credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from ras_agent.errors import (
    BudgetExceeded,
    ModelCallError,
    ModelRefused,
    PromptTooLong,
    RasError,
)
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Clock, Deadline
from ras_agent.tools.chat.retry import RetryPolicy, diagnosis, unreachable
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.chat.waits import retry_after
from ras_agent.tools.chat.window import is_overflow

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
        clock: Clock,
        pause: Callable[[float], None],
        name: str,
        endpoint: str,
        secrets_of: Any,
    ) -> None:
        """Take who is asked, and how.

        pause: holds all calls of the endpoint back, for so many seconds.
        name, endpoint: of the model, for messages.
        secrets_of: the object that holds the secrets which no message shows.
        """
        self._model = model
        self._policy = policy
        self._clock = clock
        self._pause = pause
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
        decide = self._policy.decides(
            has_replied=self._has_replied, now=self._clock.now
        )

        def worth_it(error: BaseException) -> bool:
            in_time = (retry_after(error) or 0.0) < deadline.left()
            return in_time and not is_overflow(error) and decide(error)

        def wait(state: RetryCallState) -> float:
            return min(self._policy.wait(state), deadline.left())

        def pause_everybody(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if error is not None:
                self._pause(retry_after(error) or 0.0)

        return AsyncRetrying(
            sleep=self._clock.asleep,
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
