"""Functions that numba compiles at their first use, for the processor at hand and without a compiler installed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["compiled", "has_numba"]

FAST = {"reassoc", "nsz", "contract"}  # sums may be taken in another order; what is not a number stays so


@lru_cache(maxsize=1)
def has_numba() -> bool:
    """Can numba be used? It refuses to load beside a numpy that is too new for it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def compiled(function: Callable[..., Any], *, reorder: bool = False) -> Callable[..., Any]:
    """`function` as machine code that lets other threads run, kept on disk for the next process where there is a place.

    reorder: its sums may be taken in another order.
    """
    from numba import njit

    options: dict[str, Any] = {"nogil": True, **({"fastmath": FAST} if reorder else {})}
    try:
        found = njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written to
        found = njit(**options)(function)
    made: Callable[..., Any] = found
    return made
