"""Reads the fields of forms in a PDF: the values that were filled in, for each page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    annotations = _object(page.get("/Annots"))
    if not isinstance(annotations, list):
        return
    for reference in annotations:
        field = _object(reference)
        if not isinstance(field, dict) or field.get("/Subtype") != "/Widget":
            continue
        flags = _object(field.get("/F", 0))
        if isinstance(flags, int) and flags & _HIDDEN:
            continue
        kind = _inherited(field, "/Ff")
        if isinstance(kind, int) and kind & _PASSWORD:
            continue
        name = _name(field)
        value = _value(_inherited(field, "/V"))
        if name and value not in _OFF:
            yield f"{name}: {value.removeprefix('/')}"


def _object(value: Any) -> Any:
    """Return the object that a reference leads to."""
    resolve = getattr(value, "get_object", None)
    return value if resolve is None else resolve()


def _lineage(field: Any) -> Iterator[Any]:
    """Yield a field, and the fields that contain it."""
    for _ in range(_DEEPEST):
        if not isinstance(field, dict):
            return
        yield field
        field = _object(field.get("/Parent"))


def _name(field: Any) -> str:
    """Return the description of a field that readers see, or otherwise its name."""
    shown = _object(_inherited(field, "/TU"))
    if shown:
        return _one_line(shown)
    parts = [str(one["/T"]) for one in _lineage(field) if "/T" in one]
    return _one_line(".".join(reversed(parts)))


def _inherited(field: Any, key: str) -> Any:
    for one in _lineage(field):
        if key in one:
            return one[key]
    return None


def _value(value: Any) -> str:
    found = _object(value)
    if isinstance(found, list):
        return ", ".join(map(_one_line, found))
    return "" if found is None else _one_line(found)


def _one_line(value: Any) -> str:
    return " ".join(str(value).split())
