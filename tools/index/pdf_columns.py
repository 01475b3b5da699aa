"""Finds columns of a PDF's page that are drawn line by line, across them, so that each can be read by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_FEWEST_LINES = 5
"""Lines that begin at the same places, from which these are columns."""
_SHORTEST_LINE = 15  # characters, on the average: shorter ones are cells of a table
_LEAST_GOING_ON = 0.4  # share of the lines that go on with a sentence


@dataclass(frozen=True, slots=True)
class Shown:
    """Holds where a text is drawn, and how many characters it has."""

    x: float
    y: float
    length: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Holds the part of a page that each of its texts belongs to, in the order in which they are drawn.

    0 is above the columns, then come the columns from 1 on, and last what is below them.
    """

    of_texts: list[int]
    columns: int


def parts_of_page(shown: Sequence[Shown]) -> Parts | None:
    """Return the parts of a page whose lines are drawn across columns, None for one without columns."""
    rows = [list(row) for _, row in groupby(shown, lambda text: round(text.y))]
    starts = _common_starts(rows)
    if len(starts) < 2:
        return None
    lines = [list(_cells(row, starts)) for row in rows]
    full = [
        number
        for number, line in enumerate(lines)
        if [column for column, _ in line] == list(range(len(starts)))
    ]
    if len(full) < _FEWEST_LINES:
        return None
    columns = range(full[0], full[-1] + 1)
    characters = sum(text.length for number in full for text in rows[number])
    if characters < _SHORTEST_LINE * len(full) * len(starts):
        return None
    below = len(starts) + 1
    parts: list[int] = []
    for number, line in enumerate(lines):
        for column, size in line:
            part = column + 1
            if number not in columns:
                part = 0 if number < columns.start else below
            parts += [part] * size
    return Parts(of_texts=parts, columns=len(starts))


def _common_starts(rows: Sequence[Sequence[Shown]]) -> list[int]:
    """Return the places across the page at which many lines have a text begin."""
    counts = Counter[int]()
    for row in rows:
        counts.update({round(text.x) for text in row})
    return sorted(place for place, count in counts.items() if count >= _FEWEST_LINES)


def _cells(row: Sequence[Shown], starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the columns that a line has, with how many texts it has there."""
    column = 0
    size = 0
    for text in row:
        place = round(text.x)
        if place in starts and size:
            yield column, size
            size = 0
        if place in starts:
            column = starts.index(place)
        size += 1
    if size:
        yield column, size


def is_prose(column: str) -> bool:
    """Return whether the lines of a column go on with each other's sentences, as cells of a table do not."""
    lines = [line.strip() for line in column.splitlines() if line.strip()]
    going_on = [line for line in lines if line[0].islower()]
    return len(going_on) >= _LEAST_GOING_ON * len(lines)
