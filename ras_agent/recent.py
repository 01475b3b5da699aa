"""A cache of the results used last, for many keys at once: missing results are computed in one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentResults(Generic[K, V]):
    """Holds the results used last, up to a total size; may be used from several threads at once.

    most: the total size. size: that of one result; each counts 1 without it.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._most = most
        self._size = 0
        self._size_of = size
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()
        _caches.add(self)

    def forget(self) -> None:
        """Let go of all results."""
        with self._lock:
            self._held.clear()
            self._size = 0

    def of(
        self, keys: Sequence[K], compute: Callable[[list[K]], Iterable[V]]
    ) -> list[V]:
        """Return the result of each key. compute: called outside the lock with the keys that are not held, each once.

        Where two threads compute the same key, both get the result that was there first.
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
        """Return the result that is held under `key` and is now the one used last: an earlier one, or `result`."""
        if key not in self._held:
            self._held[key] = result
            self._size += self._counted(result)
        self._held.move_to_end(key)
        return self._held[key]

    def _counted(self, result: V) -> int:
        return max(1, self._size_of(result))  # an empty result would never go


_caches: WeakSet[RecentResults[Any, Any]] = WeakSet()


def forget_recent_results() -> None:
    """Let go of the results of all caches, so that what is measured next does not profit from what was before."""
    for cache in list(_caches):
        cache.forget()
