"""That a strategy draws the cases that a test is meant to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import Phase, find, settings
from hypothesis.strategies import SearchStrategy

_Example = TypeVar("_Example")
_FIRST = settings(max_examples=2000, phases=[Phase.generate])


def find_any(
    strategy: SearchStrategy[_Example], wanted: Callable[[_Example], bool]
) -> _Example:
    """Return the first example that is wanted: the smallest, which `hypothesis.find` looks for, takes seconds.

    Raises hypothesis.errors.NoSuchExample.
    """
    return find(strategy, wanted, settings=_FIRST)
