"""From a record, a JSON object or a table's row, to a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ras_agent.tools.index.load_document import USUAL_FIELDS, Document, Fields, Skipped

__all__ = ["document_from_record"]


def document_from_record(
    record: Mapping[str, Any], fields: Fields, label: str, line: int, what: str = "key"
) -> Document | Skipped:
    """The record's document; a record without an id is called `label:line`. `what` a field is called in messages."""
    place = f"{label} line {line}"
    for role, name, usual in (
        ("text", fields.text, None),
        ("title", fields.title, USUAL_FIELDS.title),
        ("id", fields.id, USUAL_FIELDS.id),
    ):
        if name is not None and name != usual and name not in record:
            there = ", ".join(map(repr, record)) or "nothing"
            return Skipped(place, f"no {what} {name!r}, it has {there}; name the right one with --{role}-field")

    text, title, own = record[fields.text], record.get(fields.title), record.get(fields.id) if fields.id else None
    if not isinstance(text, str):
        return Skipped(place, f"{what} {fields.text!r} must hold a text, got {_kind(text)}: {text!r:.60}")
    if not text.strip():
        return Skipped(place, f"{what} {fields.text!r} is empty", error=False)
    if title is not None and not isinstance(title, str | int | float):
        return Skipped(place, f"{what} {fields.title!r} must hold a text, got {_kind(title)}: {title!r:.60}")
    if own is not None and (isinstance(own, bool) or not isinstance(own, str | int) or not str(own).strip()):
        return Skipped(place, f"{what} {fields.id!r} must hold a name or a whole number, got {own!r:.60}")
    return Document(
        id=f"{label}:{line}" if own is None else str(own),
        text=text,
        title="" if title is None else str(title),
        metadata={key: value for key, value in record.items() if key not in (fields.text, fields.title, fields.id)},
        place=place,
    )


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
