"""Several addresses or keys of one model: calls go to them in turn, and one that fails is set aside for a while."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

from pydantic import Field, SecretStr

from ras_agent.budget import current_ledger
from ras_agent.records import JSON
from ras_agent.tools.chat.http import Endpoint, NoConnection
from ras_agent.tools.chat.openai_chat import OpenAIChat
from ras_agent.tools.chat.waits import retry_after, status_of

_FIRST_PAUSE = 10.0  # seconds; doubled with each further failure
_LONGEST_PAUSE = 300.0
_REFUSES_NOW = frozenset((408, 425, 429))
_REMEDIES = {
    401: "refuses its key",
    403: "refuses its key",
    404: "does not know the model",
}


class BalancedChat(OpenAIChat):
    """Chat model behind several addresses, or one with several keys.

    places: an address, up to /v1, and its key each. To its callers it is one server: they share its rates, its window
    and its refusals.
    """

    places: tuple[tuple[str, SecretStr], ...] = Field(repr=False)

    def model_post_init(self, context: Any, /) -> None:
        """Prepare for the servers; nothing is asked."""
        super().model_post_init(context)
        endpoints = [
            Endpoint.with_key(url, key.get_secret_value(), **self.default_headers)
            for url, key in self.places
        ]
        self._endpoint = BalancedEndpoint(
            self.base_url, places=tuple(map(_Place, endpoints))
        )


@dataclass(slots=True, eq=False)
class _Place:
    """Address with its key, and how it has served."""

    endpoint: Endpoint
    asked: int = 0
    """The last call that it was asked, of all calls in their order."""
    failures: int = 0
    aside_until: float = -inf
    """When it is asked again, by the clock of its BalancedEndpoint."""


@dataclass(frozen=True)
class BalancedEndpoint(Endpoint):
    """Plays an endpoint: each call goes to the next of its places, and to another where that one fails.

    A place that fails is set aside: for as long as it asks to wait, else for 10 seconds, and longer each time. Where
    all are, the first to return is asked.
    """

    places: tuple[_Place, ...] = ()
    now: Callable[[], float] = time.monotonic
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _calls: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    async def about(self, model: str) -> JSON:
        """Return the model's entry in the first list that has one; {} without any."""
        for place in self.places:
            about = await place.endpoint.about(model)
            if about:
                return about
        return {}

    async def events(
        self, path: str, body: Any, seconds: float | None = None
    ) -> AsyncIterator[Any]:
        """Yield the events of the first place that begins a reply.

        If every place fails, raises the error of the one that is asked again first: its waiting time is the shortest.
        """
        failed: list[tuple[_Place, Exception]] = []
        for place in self._in_turn():
            events = place.endpoint.events(path, body, seconds)
            try:
                first = await anext(events, None)
            except asyncio.CancelledError:  # as where a try has had its time
                self._set_aside(place, None)
                raise
            except Exception as error:
                if not _is_of_the_place(error):
                    raise
                self._set_aside(place, error)
                failed.append((place, error))
                continue
            place.failures = 0
            place.aside_until = -inf
            if first is not None:
                yield first
            async for event in events:
                yield event
            return
        raise min(failed, key=lambda one: one[0].aside_until)[1]

    def _in_turn(self) -> Iterator[_Place]:
        """Yield the places to ask: of those that are not set aside, the one that has waited longest for a call first.

        Where all are set aside it is the one that is back first.
        """
        now = self.now()
        left = [place for place in self.places if place.aside_until <= now]
        if not left:
            left = [min(self.places, key=lambda place: place.aside_until)]
        while left:
            with self._lock:
                place = min(left, key=lambda one: one.asked)
                place.asked = next(self._calls)
            left.remove(place)
            yield place

    def _set_aside(self, place: _Place, error: Exception | None) -> None:
        pause = min(_FIRST_PAUSE * 2.0**place.failures, _LONGEST_PAUSE)
        if error is not None:
            asked = retry_after(error)
            pause = pause if asked is None else asked
            status = status_of(error)
            if status in _REMEDIES:
                pause = _LONGEST_PAUSE
                current_ledger().note(
                    f"{place.endpoint.url} {_REMEDIES[status]} ({status}) and is not asked for {pause:g} seconds; "
                    "correct its key or address, or leave it out"
                )
        place.failures = min(place.failures + 1, 10)
        place.aside_until = self.now() + pause


def _is_of_the_place(error: Exception) -> bool:
    """Return whether an error is that of an address or a key, and another one may reply."""
    status = status_of(error) or 0
    if status >= 500 or status in _REMEDIES or status in _REFUSES_NOW:
        return True
    return isinstance(error, NoConnection)
