"""Balances the calls of one model over several addresses or keys: they take turns, and a failing one is paused."""

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

from ras_agent.contracts.records import JSON
from ras_agent.running.budget import current_ledger
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
    """Calls a chat model that is served at several addresses or with several keys."""

    places: tuple[tuple[str, SecretStr], ...] = Field(repr=False)
    """Pairs of an address, up to /v1, and its key. They share rates, one context window and refusals, as if they were
    one server.
    """

    def model_post_init(self, context: Any, /) -> None:
        """Prepare the endpoints; no request is sent."""
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
    """Holds an address with its key, and the record of its calls and failures."""

    endpoint: Endpoint
    asked: int = 0
    """The number of the last call that was sent to this place, counted over all places."""
    failures: int = 0
    aside_until: float = -inf
    """The time until which the place is paused, by the clock of its BalancedEndpoint."""


@dataclass(frozen=True)
class BalancedEndpoint(Endpoint):
    """Sends each call to the next of several places (an address with a key), and to another one if that fails.

    A failing place is paused for as long as it asks to wait, else for 10 seconds, doubled with each further
    failure. If all are paused, the one whose pause ends first is called.
    """

    places: tuple[_Place, ...] = ()
    now: Callable[[], float] = time.monotonic
    _lock: Any = field(default_factory=threading.Lock, repr=False)
    _calls: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    async def about(self, model: str) -> JSON:
        """Return the model's entry in the list of models of the first place that has one; {} if no list has."""
        for place in self.places:
            about = await place.endpoint.about(model)
            if about:
                return about
        return {}

    async def events(
        self, path: str, body: Any, seconds: float | None = None
    ) -> AsyncIterator[Any]:
        """Yield the events of the first place that begins a reply.

        If every place fails, raises the error of the place whose pause ends first.
        """
        failed: list[tuple[_Place, Exception]] = []
        for place in self._in_turn():
            events = place.endpoint.events(path, body, seconds)
            try:
                first = await anext(events, None)
            except asyncio.CancelledError:  # such as a try that timed out
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
        """Yield the places to ask: those that are not paused, the one that was asked longest ago first.

        If all are paused, only the one whose pause ends first is yielded.
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
                    "correct its key or address, or take it out of the model's addresses"
                )
        place.failures = min(place.failures + 1, 10)
        place.aside_until = self.now() + pause


def _is_of_the_place(error: Exception) -> bool:
    """Return whether an error concerns one address or key, so that another place may reply."""
    status = status_of(error) or 0
    if status >= 500 or status in _REMEDIES or status in _REFUSES_NOW:
        return True
    return isinstance(error, NoConnection)
