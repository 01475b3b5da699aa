"""Caches of what short texts give, which keep no long text in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

LONGEST_CACHED = 500
"""Characters of a text that is cached; names, predicates, words and nearly all sentences are shorter."""


def cached_if_short(size: int) -> Callable[[F], F]:
    """Decorate a function of one text, or of three, with a cache of its last `size` results.

    Results for long texts are not cached.
    """

    def decorate(function: F) -> F:
        cached = lru_cache(size)(function)

        @wraps(function)
        def of_one(text: str) -> Any:  # the usual case, without the sum
            return cached(text) if len(text) <= LONGEST_CACHED else function(text)

        @wraps(function)
        def of_three(one: str, two: str, three: str) -> Any:
            short = len(one) + len(two) + len(three) <= LONGEST_CACHED
            return cached(one, two, three) if short else function(one, two, three)

        return cast(F, of_one if function.__code__.co_argcount == 1 else of_three)

    return decorate
