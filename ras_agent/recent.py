"""A cache of the results used last, for many keys at once: what it lacks is computed in one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentResults(Generic[K, V]):
    """Holds the results used last, up to a total size; may be used from several threads at once.

    most: the total size. size: that of one result; each counts 1 without it.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most, self._size, self._lock = most, 0, Lock()
        self._size_of: Callable[[V], int] = lambda result: max(1, size(result))  # or empty ones would never go
        self._held: OrderedDict[K, V] = OrderedDict()

    def of(self, keys: Sequence[K], compute: Callable[[list[K]], Iterable[V]]) -> list[V]:
        """Return the result of each key. compute: called outside the lock with the keys that are not held, each once.

        Where two threads compute the same key, both get the result that was there first.
        """
        with self._lock:
            results = {key: self._held[key] for key in keys if key in self._held}
        new = [key for key in dict.fromkeys(keys) if key not in results]
        if new:
            results.update(zip(new, compute(new), strict=True))
        with self._lock:
            for key, result in results.items():
                if key not in self._held:
                    self._held[key] = result
                    self._size += self._size_of(result)
                results[key] = self._held[key]
                self._held.move_to_end(key)
            while self._size > self._most:
                self._size -= self._size_of(self._held.popitem(last=False)[1])
        return [results[key] for key in keys]
