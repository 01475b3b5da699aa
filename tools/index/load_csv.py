"""Tables with a header line: comma, semicolon, tab or bar between columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from ras_agent.tools.index.load_document import Document, Fields, OnRead, Skipped
from ras_agent.tools.index.load_record import document_from_record
from ras_agent.tools.index.load_text import not_unicode, read_lines

__all__ = ["load_csv"]

_SEPARATORS = ",;\t|"
_LONGEST_FIELD = 1 << 30  # csv's own limit, 128 KiB, is less than a long article


def load_csv(path: Path, label: str, fields: Fields, on_read: OnRead) -> Iterator[Document | Skipped]:
    """A document a row; a bad row is skipped alone. The separator is the one that the header holds most often."""
    csv.field_size_limit(_LONGEST_FIELD)
    lines = read_lines(path, on_read)
    head = next(lines, "")
    if reason := not_unicode(head):
        yield Skipped(f"{label} line 1", reason)
        return
    separator = max(_SEPARATORS, key=head.count)
    rows = csv.reader(_chained(head, lines), delimiter=separator, strict=True)
    try:
        columns = next(rows, [])
    except csv.Error as error:
        yield Skipped(f"{label} line 1", f"the header is not CSV: {error}")
        return
    if fields.text not in columns or len(set(columns)) < len(columns):
        there = ", ".join(map(repr, columns)) or "nothing"
        problem = (
            f"repeats a column: {there}; rename one"
            if fields.text in columns
            else f"has no column {fields.text!r}, but {there}; name the right one with --text-field"
        )
        yield Skipped(f"{label} line 1", f"the header {problem}")
        return
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield Skipped(f"{label} line {line}", f"not CSV: {error}")
            continue
        if row is None:
            return
        if row:
            yield _parsed(row, columns, label, line, fields)


def _parsed(row: list[str], columns: list[str], label: str, line: int, fields: Fields) -> Document | Skipped:
    place = f"{label} line {line}"
    if reason := not_unicode("\n".join(row)):
        return Skipped(place, reason)
    if len(row) != len(columns):
        return Skipped(place, f"expected {len(columns)} columns, got {len(row)}: {row!r:.80}")
    return document_from_record(dict(zip(columns, row, strict=True)), fields, label, line, what="column")


def _chained(head: str, lines: Iterator[str]) -> Iterator[str]:
    yield head
    yield from lines
