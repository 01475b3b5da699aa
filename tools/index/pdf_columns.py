"""Finds columns of a PDF's page that are drawn line by line, across them, so that each can be read by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

_FEWEST_LINES = 5
"""Lines that begin at the same places, from which these are columns."""
_MOST_COLUMNS = 12
"""The page is read once for each, and pages of prose have fewer."""
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

    Part 0 is above the columns, then come the columns from 1 on, and the last part is below them.
    """

    of_texts: list[int]
    columns: int


def parts_of_page(shown: Sequence[Shown]) -> Parts | None:
    """Return the parts of a page that draws its lines across columns, or None for a page without columns."""
    rows: list[list[Shown]] = []
    for _, of_row in groupby(shown, _height):
        rows.append(list(of_row))
    starts = _common_starts(rows)
    if not 2 <= len(starts) <= _MOST_COLUMNS:
        return None
    lines: list[list[int]] = []
    full: list[int] = []
    for number, row in enumerate(rows):
        columns = _columns_of(row, starts)
        lines.append(columns)
        if len(set(columns)) == len(starts):
            full.append(number)
    if len(full) < _FEWEST_LINES:
        return None
    characters = 0
    for number in full:
        characters += sum(text.length for text in rows[number])
    cells = len(full) * len(starts)
    if characters < _SHORTEST_LINE * cells:
        return None
    parts: list[int] = []
    for number, columns in enumerate(lines):
        if number < full[0]:
            columns = [-1] * len(columns)
        elif number > full[-1]:
            columns = [len(starts)] * len(columns)
        parts += columns
    of_texts = [part + 1 for part in parts]
    return Parts(of_texts, columns=len(starts))


def _height(text: Shown) -> int:
    return round(text.y)


def _common_starts(rows: Sequence[Sequence[Shown]]) -> list[int]:
    """Return the places across the page at which many lines have a text begin."""
    counts = Counter[int]()
    for row in rows:
        places = {round(text.x) for text in row}
        counts.update(places)
    common = [place for place in counts if counts[place] >= _FEWEST_LINES]
    return sorted(common)


def _columns_of(row: Sequence[Shown], starts: Sequence[int]) -> list[int]:
    """Return for each text of a line the number of the column that it is in, from 0."""
    columns: list[int] = []
    column = 0
    for text in row:
        place = round(text.x)
        if place in starts:
            column = starts.index(place)
        columns.append(column)
    return columns


def is_prose(column: str) -> bool:
    """Return whether the lines of a column go on with each other's sentences, as cells of a table do not."""
    lines = 0
    going_on = 0
    for line in column.splitlines():
        begin = line.lstrip()[:1]
        lines += begin != ""
        going_on += begin.islower()
    return going_on >= _LEAST_GOING_ON * lines
