"""Finds the columns of a PDF page that is drawn in lines across the columns, so that each column can be read
separately.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median

_FEWEST_LINES = 4
"""The minimum number of lines that begin at a place for it to be the left edge of a column."""
_LEAST_OF_MOST = 0.12
"""The minimum number of lines at an edge, as a share of those at the edge with most lines."""
_MOST_COLUMNS = 12
_MOST_PARTS = 24
"""The maximum number of parts: the page is read once for each, and pages of prose have fewer."""
# the minimum mean length in characters; shorter lines are cells of a table
_SHORTEST_LINE = 15
_LEAST_GOING_ON = 0.4  # the minimum share of lines that continue a sentence
_INDENT = 40.0  # the largest indent in points; no column is narrower
_SAME_PLACE = 1.5
_NEAR_EDGE = 15.0
_NEXT_LINE = 1.25  # the largest distance of consecutive lines, in multiples of the usual distance
_SAME_ROW = 0.6
ACROSS = -1
"""The number of a part that is not a column: lines across all columns."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Holds where a text is drawn, and its number of characters."""

    x: float
    y: float
    length: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Holds the part of a page to which each of its texts belongs, in the order in which the texts are drawn."""

    of_texts: list[int]
    columns: list[int]
    """The column of each part, from 0, or ACROSS."""


@dataclass(slots=True)
class _Row:
    """Holds the texts at one height, by the columns in which they begin."""

    y: float
    columns: dict[int, list[int]] = field(default_factory=dict)
    is_across: bool = False


def parts_of_page(shown: Sequence[Shown]) -> Parts | None:
    """Return the parts of a page that draws its lines across columns; None for a page without such columns.

    Columns end at a line that crosses them, and begin again below it.
    """
    starts = _starts_of_columns(shown)
    if not 2 <= len(starts) <= _MOST_COLUMNS:
        return None
    columns = [_column_of(text, starts) for text in shown]
    steps_back = sum(later < earlier for earlier, later in pairwise(columns))
    if steps_back < _FEWEST_LINES - 1:
        return None
    distance = _distance_of_lines(shown, columns)
    rows = _rows_of(shown, columns, distance)
    _find_rows_across(rows, shown, starts, distance)
    if _mean_length(rows, shown) < _SHORTEST_LINE:
        return None
    parts = _numbered(rows, len(shown), len(starts))
    if len(parts.columns) > _MOST_PARTS:
        return None
    return parts


def _starts_of_columns(shown: Sequence[Shown]) -> list[int]:
    """Return the horizontal positions at which the texts of many lines begin, without indents."""
    places = {(round(text.x), round(text.y)) for text in shown}
    counts = Counter(x for x, _ in places)
    most = max(counts.values(), default=0)
    least = max(_FEWEST_LINES, _LEAST_OF_MOST * most)
    starts: list[int] = []
    for place in sorted(counts):
        is_indent = starts != [] and place - starts[-1] <= _INDENT
        if counts[place] >= least and not is_indent:
            starts.append(place)
    return starts


def _column_of(text: Shown, starts: Sequence[int]) -> int:
    begun = bisect_right(starts, text.x + _SAME_PLACE)
    return max(begun - 1, 0)


def _rows_of(
    shown: Sequence[Shown], columns: Sequence[int], distance: float
) -> list[_Row]:
    """Return the rows of a page from the top; lines of two columns at nearly the same height are one row.

    Args:
        distance: the usual distance of two lines.
    """
    numbers = sorted(range(len(shown)), key=lambda number: -round(shown[number].y))
    rows: list[_Row] = []
    for number in numbers:
        text = shown[number]
        column = columns[number]
        is_next = not rows or rows[-1].y - text.y > _SAME_ROW * distance
        if not is_next and column in rows[-1].columns:
            last = rows[-1].columns[column][-1]
            is_next = round(shown[last].y) != round(text.y)
        if is_next:
            rows.append(_Row(text.y))
        rows[-1].columns.setdefault(column, []).append(number)
    return rows


def _distance_of_lines(shown: Sequence[Shown], columns: Sequence[int]) -> float:
    """Return the usual distance of two lines in the first column."""
    heights = set()
    for text, column in zip(shown, columns, strict=True):
        if column == 0:
            heights.add(text.y)
    distances = []
    for below, above in pairwise(sorted(heights)):
        distances.append(above - below)
    if not distances:
        return 0.0
    return median(distances)


def _find_rows_across(
    rows: Sequence[_Row],
    shown: Sequence[Shown],
    starts: Sequence[int],
    distance: float,
) -> None:
    """Mark the rows that are not lines of columns: rows that cross the space between two columns, and rows below the
    columns."""
    edges = _Edges(rows, shown, starts)
    for row in rows:
        row.is_across = edges.are_crossed_by(row)
    for place in range(len(rows) - 1, 0, -1):
        row = rows[place]
        if not row.is_across and set(row.columns) != {0}:
            return
        if rows[place - 1].y - row.y > _NEXT_LINE * distance:
            for below in rows[place:]:
                below.is_across = True


class _Edges:
    """Holds the left edges of columns, and the maximum width of a character, from the longest lines that end before the
    next edge.
    """

    def __init__(
        self, rows: Sequence[_Row], shown: Sequence[Shown], starts: Sequence[int]
    ) -> None:
        self._shown = shown
        self._starts = starts
        self._begun = Counter[int]()
        longest = [1] * len(starts)
        for row in rows:
            for column, texts in row.columns.items():
                self._begun[round(self._left(texts))] += 1
                if column + 1 in row.columns:
                    longest[column] = max(longest[column], self._length(texts))
        edges = zip(pairwise(starts), longest, strict=False)
        self._widths = [(right - left) / length for (left, right), length in edges]

    def _left(self, texts: Sequence[int]) -> float:
        return min(self._shown[number].x for number in texts)

    def _length(self, texts: Sequence[int]) -> int:
        return sum(self._shown[number].length for number in texts)

    def are_crossed_by(self, row: _Row) -> bool:
        """Return whether a row has a text that is not at the edge of its column, or that reaches into the next
        column."""
        begins = min(row.columns)
        for column, texts in row.columns.items():
            left = self._left(texts)
            if column > begins and not self._is_at_edge(left, column, texts):
                return True
            is_last = column + 1 == len(self._starts)
            if not is_last and column + 1 not in row.columns:
                end = left + self._length(texts) * self._widths[column]
                is_indented = left > self._starts[column] + _INDENT
                spare = -_NEAR_EDGE if is_indented else _NEAR_EDGE
                if end > self._starts[column + 1] + spare:
                    return True
        return False

    def _is_at_edge(self, left: float, column: int, texts: Sequence[int]) -> bool:
        indent = left - self._starts[column]
        if indent <= _SAME_PLACE:
            return True
        if indent > _INDENT:
            return False
        first = min(texts, key=lambda number: self._shown[number].x)
        is_whole_line = self._shown[first].length >= _SHORTEST_LINE
        return is_whole_line or self._begun[round(left)] > 1


def _mean_length(rows: Sequence[_Row], shown: Sequence[Shown]) -> float:
    """Return the mean number of characters of a line in a column."""
    characters = 0
    lines = 0
    for row in rows:
        if not row.is_across:
            lines += len(row.columns)
            numbers = chain.from_iterable(row.columns.values())
            characters += sum(shown[number].length for number in numbers)
    return characters / max(lines, 1)


def _numbered(rows: Sequence[_Row], texts: int, columns: int) -> Parts:
    """Return the parts in the order in which they are read: lines across the page, and the columns between them."""
    of_texts = [0] * texts
    parts: list[int] = []
    first = 0
    was_across: bool | None = None
    for row in rows:
        if row.is_across != was_across:
            first = len(parts)
            parts += [ACROSS] if row.is_across else range(columns)
            was_across = row.is_across
        for column, numbers in row.columns.items():
            for number in numbers:
                of_texts[number] = first if row.is_across else first + column
    return Parts(of_texts, parts)


def is_prose(column: str) -> bool:
    """Return whether the lines of a column continue each other's sentences, unlike cells of a table."""
    lines = 0
    going_on = 0
    for line in column.splitlines():
        begin = line.lstrip()[:1]
        lines += begin != ""
        going_on += begin.islower()
    return going_on >= _LEAST_GOING_ON * lines
