"""JSON Lines: an object a line, blank lines left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ras_agent.tools.index.load_document import Document, Fields, OnRead, Skipped
from ras_agent.tools.index.load_json import parse_line
from ras_agent.tools.index.load_record import document_from_record
from ras_agent.tools.index.load_text import not_unicode, read_lines

__all__ = ["load_jsonl"]


def load_jsonl(path: Path, label: str, fields: Fields, on_read: OnRead) -> Iterator[Document | Skipped]:
    """A document a line; a bad line is skipped alone."""
    for number, line in enumerate(read_lines(path, on_read), start=1):
        if line.strip():
            yield _parsed(line.strip(), number, label, fields)


def _parsed(line: str, number: int, label: str, fields: Fields) -> Document | Skipped:
    place = f"{label} line {number}"
    if reason := not_unicode(line):
        return Skipped(place, reason)
    try:
        record = parse_line(line)
    except ValueError as error:
        return Skipped(place, str(error))
    if not isinstance(record, dict):
        return Skipped(place, f'expected an object such as {{"text": "..."}}, got {line!r:.60}')
    # an escape such as \ud800 is JSON, but no character
    if reason := not_unicode(json.dumps(record, ensure_ascii=False)):
        return Skipped(place, reason)
    return document_from_record(record, fields, label, number)
