"""Caches results for short texts, so that no long texts stay in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

LONGEST_CACHED = 500
"""The maximum number of characters of a cached text. Names, predicates, words and nearly all sentences are
shorter."""


def cached_if_short(size: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Return a decorator that caches the `size` most recent results of a function of one text, except for long texts."""

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        cached = lru_cache(size)(function)

        @wraps(function)
        def of_text(text: str) -> T:
            if len(text) <= LONGEST_CACHED:
                return cached(text)
            return function(text)

        return of_text

    return decorate
