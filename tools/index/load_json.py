"""A line of JSON from a file of unknown origin."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_line"]

_DEEPEST = 100  # what is kept is read again, with more of Python's stack in use than now


def parse_line(line: str) -> Any:
    """The value that `line` holds. Raises ValueError saying why there is none, or none that could be kept."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        around = line[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}: {around!r}") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise ValueError(f"cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply to be read") from error
    if line.count("[") + line.count("{") > _DEEPEST and _is_deep(value):
        raise ValueError("nested too deeply to be read")
    return value


def _is_deep(value: object, levels: int = _DEEPEST) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not levels or any(_is_deep(item, levels - 1) for item in inner)
