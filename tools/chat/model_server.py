"""Calls servers for models other than chat models (embedders, rerankers): retries calls and explains failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr
from tenacity import Retrying, retry_if_exception

from ras_agent.contracts.errors import (
    MissingExtra,
    ModelCallError,
    ModelRefused,
    RasError,
)
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.deadline import Clock
from ras_agent.tools.chat.http import Endpoint, run
from ras_agent.tools.chat.retry import RetryPolicy, diagnosis, unreachable
from ras_agent.tools.chat.secrets import printable, without_secrets

T = TypeVar("T")

SECONDS = 60.0
"""The maximum number of seconds that a request may take; a run or a search may allow less."""
_AT_LEAST = 0.1


class ModelServer:
    """Calls one model's server. Thread safe; nothing is sent before the first call."""

    def __init__(
        self,
        role: str,
        url: str,
        key: SecretStr,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        retry: RetryPolicy | None = None,
        clock: Clock | None = None,
        key_remedy: str,
        address_remedy: str = "",
    ) -> None:
        """Prepare to call a server. Raises MissingExtra if the package `aiohttp` is not installed.

        Args:
            role: the model's name in messages, such as "embedder 'openai:...'".
            url: the address, up to /v1.
            headers: further headers.
            seconds: the maximum duration of one request.
            retry: by default `RetryPolicy()`.
            key_remedy: advice for messages about a refused key.
            address_remedy: advice for messages about a server that cannot be reached.
        """
        if find_spec("aiohttp") is None:
            raise MissingExtra(role, "openai")
        self.key = key  # masked in messages
        self.url = url
        self._role = role
        self._seconds = seconds
        self._retry = retry or RetryPolicy()
        self._clock = clock or Clock()
        self._has_replied = False
        self._key_remedy = key_remedy
        self._address_remedy = address_remedy
        self._endpoint = Endpoint.with_key(
            url, key.get_secret_value(), **(headers or {})
        )

    @property
    def label(self) -> str:
        """Return the model's role and the server's address, for messages."""
        return f"{printable(self._role)} at {origin_of(self.url)}"

    def ask(
        self, path: str, body: Any, read: Callable[[Any], T], most: int | None = None
    ) -> T:
        """Post a body and return the reply, converted by `read`.

        Raises the errors of a failed call; `error_of` turns them into clear messages.

        Args:
            path: added to the server's address.
            most: the maximum number of bytes of the reply.
        """
        ledger = current_ledger()

        def once() -> T:
            left = min(self._seconds, ledger.seconds_left())
            seconds = max(left, _AT_LEAST)
            reply = run(self._endpoint.post(path, body, seconds, most))
            return read(reply)

        decide = self._retry.decides(has_replied=self._has_replied, now=self._clock.now)
        tries = Retrying(
            stop=lambda _: ledger.seconds_left() <= 0,
            wait=self._retry.wait,
            retry=retry_if_exception(decide),
            sleep=self._clock.sleep,
            reraise=True,
        )
        result = tries(once)
        self._has_replied = True
        return result

    def error_of(
        self, error: Exception, remedy_for: Callable[[str], str] = lambda _: ""
    ) -> RasError:
        """Return the error to raise for a failed call.

        It is ModelRefused if the server cannot be reached, refuses the key or does not know the model, and has
        never replied before; otherwise it is ModelCallError.

        Args:
            remedy_for: takes the server's message in lower case; returns advice, or "".
        """
        status = getattr(error, "status_code", None)
        is_unreachable = unreachable(error)
        # as in ras_agent.tools.chat.client
        refuses = is_unreachable or status in (401, 403, 404)
        unusable = refuses and not self._has_replied
        self._has_replied &= not is_unreachable
        message = without_secrets(str(error), self)
        why = diagnosis(error, origin_of(self.url)) or ""
        remedy = remedy_for(message.lower())
        if status in (401, 403):
            remedy = self._key_remedy
        elif status == 404:
            remedy = "check the model's name and the server's address, which usually ends with /v1"
        elif not remedy and (why or is_unreachable):
            remedy = self._address_remedy
        parts = [without_secrets(why, self), remedy]
        if not is_unreachable:
            parts.insert(0, f"{type(error).__name__}: {message}")
        kind = ModelRefused if unusable else ModelCallError
        return kind(f"{self.label} failed: {'; '.join(filter(None, parts))}")


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address, without its login."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
