"""Reads forms in passages: lines such as "Clerk: Bo Tellis", which are read like the rows of a table.

Ticket 5521           the heading of a record
Reporter: Jana Holt   a field: its label and its value
Priority: high
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ras_agent.tools.offline.extractor.lines import Line, lines_of

_LONGEST_VALUE = 8
"""The maximum number of words of a value; a line with more is read as prose."""
_LONGEST_HEADING = 12
_STOPS = (".", "?", "!", ":")


@dataclass
class Record:
    """Holds a record of a form, such as one ticket or one entry of a list: its headings, and its labelled values."""

    headings: list[str] = field(default_factory=list)
    """The lines above its fields."""
    fields: dict[str, str] = field(default_factory=dict)
    """The value of each label."""
    lines: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The line of each label, after its offset."""


def records_of(text: str) -> Iterator[Record]:
    """Yield the records of a text. A heading after fields, or a label that occurs again, begins the next record."""
    record = Record()
    end = 0
    for written in text.split("\n"):
        start = end
        end = start + len(written) + 1
        for line in lines_of(written):
            if is_heading(line):
                if record.fields:
                    yield record
                    record = Record()
                record.headings.append(line.text)
            elif _is_field(line):
                if line.label in record.fields:
                    yield record
                    record = Record(list(record.headings))
                record.fields[line.label] = line.text
                record.lines[line.label] = (start, written)
    if record.fields:
        yield record


def is_heading(line: Line) -> bool:
    """Return whether a line is short, without label or final stop, so that it may be a heading of later lines."""
    if line.label or ":" in line.text or line.text[0].islower():
        return False
    return _is_short(line, _LONGEST_HEADING)


def _is_field(line: Line) -> bool:
    if not line.label:
        return False
    return _is_short(line, _LONGEST_VALUE)


def _is_short(line: Line, most: int) -> bool:
    if line.text.endswith(_STOPS):
        return False
    words = line.text.split()
    return len(words) <= most
