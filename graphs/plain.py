"""Values from elsewhere as plain JSON, which is all that the state holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from operator import index
from typing import Any

__all__ = ["place_in", "plain", "whole"]

_SCALARS = frozenset((bool, type(None)))
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> Any:
    """`value` with mappings as dicts, sequences as lists, and what JSON or a checkpointer does not know as text.

    >>> import datetime
    >>> plain({"year": 1921, "seen": datetime.date(2024, 5, 1), "tags": ("a", "b"), "ratio": float("inf")})
    {'year': 1921, 'seen': '2024-05-01', 'tags': ['a', 'b'], 'ratio': 'inf'}
    """
    kind = type(value)
    if kind is str:
        return whole(value)
    if kind in _SCALARS or (kind is float and isfinite(value)) or (kind is int and -(1 << 63) <= value < 1 << 64):
        return value
    if isinstance(value, Mapping):
        return {whole(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return whole(str(value))


def whole(text: str) -> str:
    """`text` with U+FFFD for each half of a character, which no request, checkpoint or file can hold.

    They come from replies and records that were cut inside a character, and from undecodable bytes.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def place_in(text: str, start: Any, end: Any) -> tuple[int, int] | None:
    """`start` and `end` as plain integers, or None where `text` has no such characters."""
    try:
        start, end = index(start), index(end)  # numpy's integers are no JSON
    except TypeError:
        return None
    return (start, end) if 0 <= start <= end <= len(text) else None
