"""Which options a factory takes, its own and those that it hands on: a wrong one is told with the names of all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ras_agent.errors import UnknownName

__all__ = ["check_options", "hands_on_to", "options_of"]

Factory = TypeVar("Factory", bound=Callable[..., Any])
_HANDED_ON: dict[Callable[..., Any], Callable[..., Any]] = {}


def hands_on_to(inner: Callable[..., Any]) -> Callable[[Factory], Factory]:
    """Marks a factory that hands its further options, `**options`, on to `inner`."""

    def mark(outer: Factory) -> Factory:
        _HANDED_ON[outer] = inner
        return outer

    return mark


def options_of(factory: Callable[..., Any]) -> frozenset[str] | None:
    """The names of all that a factory takes beside what it is made over; None where that cannot be told."""
    given = list(inspect.signature(factory).parameters.values())
    named = frozenset(one.name for one in given[1:] if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD))
    if not any(one.kind is one.VAR_KEYWORD for one in given):
        return named
    more = options_of(_HANDED_ON[factory]) if factory in _HANDED_ON else None
    return None if more is None else named | more


def check_options(kind: str, name: str, factory: Callable[..., Any], options: Iterable[str]) -> None:
    """Raises UnknownName for an option that the factory of `name` does not take."""
    known = options_of(factory)
    for option in options:
        if known is not None and option not in known:
            raise UnknownName(f"option of {kind} {name!r}", option, tuple(known) or ("none",))
