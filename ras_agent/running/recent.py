"""Caches recent results by key, and computes the missing results of many keys in one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentResults(Generic[K, V]):
    """Caches the most recently used results. Thread safe.

    Args:
        most: The largest total size of the results that are kept.
        size: Returns the size of a result; by default each result counts 1.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most = most
        self._size = 0
        self._size_of = size
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()
        _caches.add(self)

    def forget(self) -> None:
        """Drop all results."""
        with self._lock:
            self._held.clear()
            self._size = 0

    def of(
        self, keys: Sequence[K], compute: Callable[[list[K]], Iterable[V]]
    ) -> list[V]:
        """Return the result of each key, in the order of `keys`.

        `compute` returns the results of a list of keys; it is called once, outside the lock, with the distinct keys
        that are not cached. If two threads compute the same key, both get the result that was stored first.
        """
        with self._lock:
            results = {key: self._held[key] for key in keys if key in self._held}
        missing = dict.fromkeys(keys).keys() - results.keys()
        new = [key for key in dict.fromkeys(keys) if key in missing]
        if new:
            computed = compute(new)
            results.update(zip(new, computed, strict=True))
        with self._lock:
            for key, result in results.items():
                results[key] = self._hold(key, result)
            while self._size > self._most:
                _, oldest = self._held.popitem(last=False)
                self._size -= self._counted(oldest)
        return [results[key] for key in keys]

    def _hold(self, key: K, result: V) -> V:
        """Store `result` under `key`, unless there is one already. Mark it as most recently used, and return
        the stored result.
        """
        if key not in self._held:
            self._held[key] = result
            self._size += self._counted(result)
        self._held.move_to_end(key)
        return self._held[key]

    def _counted(self, result: V) -> int:
        return max(1, self._size_of(result))  # results of size 0 would never be evicted


_caches: WeakSet[RecentResults[Any, Any]] = WeakSet()


def forget_recent_results() -> None:
    """Empty all caches of recent results, so that a measurement is not faster because of earlier work."""
    for cache in list(_caches):
        cache.forget()
