"""Values from elsewhere as plain JSON, which is all that the state holds."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

__all__ = ["plain"]

_SCALARS = frozenset((str, bool, type(None)))


def plain(value: Any) -> Any:
    """`value` with mappings as dicts, sequences as lists, and what JSON or a checkpointer does not know as text.

    >>> import datetime
    >>> plain({"year": 1921, "seen": datetime.date(2024, 5, 1), "tags": ("a", "b"), "ratio": float("inf")})
    {'year': 1921, 'seen': '2024-05-01', 'tags': ['a', 'b'], 'ratio': 'inf'}
    """
    kind = type(value)
    if kind in _SCALARS or (kind is float and isfinite(value)) or (kind is int and -(1 << 63) <= value < 1 << 64):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
