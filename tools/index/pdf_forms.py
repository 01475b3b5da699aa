"""Reads the fields of forms in a PDF: the values that were filled in, for each page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ras_agent.tools.index.line_ends import in_one_line
from ras_agent.tools.index.pdf_drawing import entry_of

_DEEPEST = 20
"""The maximum depth of fields within fields, whose names are joined."""
_HIDDEN = 2
"""The flag of a field that is not shown."""
_PASSWORD = 1 << 13
_OFF = ("", "/Off")


def fields_of_page(page: Any) -> str:
    """Return the filled fields of a page, one "name: value" per line."""
    lines = dict.fromkeys(_filled(page))
    return "\n".join(lines)


def _filled(page: Any) -> Iterator[str]:
    annotations = entry_of(page, "/Annots")
    if not isinstance(annotations, list):
        return
    for reference in annotations:
        field = reference.get_object()
        if entry_of(field, "/Subtype") != "/Widget":
            continue
        flags = entry_of(field, "/F")
        if isinstance(flags, int) and flags & _HIDDEN:
            continue
        kind = _inherited(field, "/Ff")
        if isinstance(kind, int) and kind & _PASSWORD:
            continue
        name = _name(field)
        value = _value(_inherited(field, "/V"))
        if name and value not in _OFF:
            yield f"{name}: {value.removeprefix('/')}"


def _lineage(field: Any) -> Iterator[Any]:
    """Yield a field, and the fields that contain it."""
    for _ in range(_DEEPEST):
        if not isinstance(field, dict):
            return
        yield field
        field = entry_of(field, "/Parent")


def _name(field: Any) -> str:
    """Return the description of a field that readers see, or otherwise its name."""
    shown = _inherited(field, "/TU")
    if shown:
        return in_one_line(str(shown))
    parts = [str(one["/T"]) for one in _lineage(field) if "/T" in one]
    return in_one_line(".".join(reversed(parts)))


def _inherited(field: Any, key: str) -> Any:
    for one in _lineage(field):
        if key in one:
            return one[key]
    return None


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(in_one_line(str(item)) for item in value)
    return "" if value is None else in_one_line(str(value))
