"""Equal requests that are under way at the same time become one call."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["UnderWay"]

T = TypeVar("T")


class UnderWay(Generic[T]):
    """Who is asking for what right now, over all threads and event loops.

    The first to come for a key leads: it makes the call and must `leave` with what came of it. The others wait for the
    future they are given. None out of it says that the leader failed, and that they should come again.
    """

    def __init__(self) -> None:
        self._futures: dict[str, Future[T | None]] = {}
        self._lock = threading.Lock()

    def come(self, key: str) -> Future[T | None] | None:
        """None for the one that leads."""
        with self._lock:
            waiting = self._futures.get(key)
            if waiting is None:
                self._futures[key] = Future()
            return waiting

    def leave(self, key: str, result: T | None) -> None:
        """Hand the leader's result to those that wait; None if there is none."""
        with self._lock:
            future = self._futures.pop(key)
        future.set_result(result)
