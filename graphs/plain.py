"""Values from elsewhere as plain JSON, which is all that the state holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["plain"]


_SCALARS = frozenset((str, int, float, bool))


def plain(value: Any) -> Any:
    """`value` with mappings as dicts, sequences as lists, and what JSON does not know as text.

    >>> import datetime
    >>> plain({"year": 1921, "seen": datetime.date(2024, 5, 1), "tags": ("a", "b")})
    {'year': 1921, 'seen': '2024-05-01', 'tags': ['a', 'b']}
    """
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)
