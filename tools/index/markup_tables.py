"""Converts the tables of reStructuredText and AsciiDoc to Markdown."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import dedent
from typing import NamedTuple

from ras_agent.tools.index.text_tables import written_table

_GRID = re.compile(r"\s*\+(?:[-=]{2,}\+)+\s*")
_SIMPLE = re.compile(r"\s*={2,}(?: +={2,})+\s*")
_DIRECTIVE = re.compile(r"(\s*)\.\. (table|csv-table|list-table):: ?(.*)")
_OPTION = re.compile(r"\s*:([\w-]+): ?(.*)")
_ITEM = re.compile(r"(?:\* +)?- ?(.*)")
_BLOCK = re.compile(r"([|,:!])={3,}\s*")
_ATTRIBUTES = re.compile(r"\[.*\]\s*")
_COLUMNS = re.compile(r"cols=(?:\"([^\"]*)\"|([^,\]]*))")
_TIMES = re.compile(r"\s*(\d+)\*.*")
_SEPARATOR = re.compile(r"separator=\"?([^\",\]])")
_CELL = re.compile(
    r"(?:(?<!\S)(?:(\d{1,3})?(?:\.(\d{1,3}))?(\+|\*))?[<^>.]{0,4}[adehlmsv]?)?(?<!\\)\|"
)
_MOST_CELLS = 100
_MOST_LINES = 1000
"""The maximum number of lines in a table that is drawn without lines between its rows."""

Rows = list[list[str]]


class _Found(NamedTuple):
    """Holds the number of the line after a table, and the table's rows, [] if there is no table."""

    end: int
    rows: Rows
    title: str = ""


def with_tables_of_rst(text: str) -> str:
    """Return a reStructuredText with its tables as Markdown: drawn ones, and those of csv-table and list-table."""
    lines = text.splitlines()

    def read(number: int, above: list[str]) -> _Found:
        directive = _DIRECTIVE.fullmatch(lines[number])
        if directive is None:
            return _drawn(lines, number)
        end = _end_of_indented(lines, number, len(directive[1]))
        rows = _rows_of_directive(directive[2], lines[number + 1 : end])
        return _Found(end, rows, directive[3].strip())

    return _with_tables(lines, read)


def _with_tables(lines: Sequence[str], read: Callable[[int, list[str]], _Found]) -> str:
    """Return lines with their tables as Markdown.

    Args:
        read: finds the table that begins at a line; it may take lines that belong to the table from those above.
    """
    made: list[str] = []
    number = 0
    while number < len(lines):
        table = read(number, made)
        if table.rows:
            made += _as_block(table.title, table.rows)
            number = table.end
        else:
            made.append(lines[number])
            number += 1
    return "\n".join(made) + "\n"


def _as_block(title: str, rows: Rows) -> list[str]:
    width = max(map(len, rows))
    even = []
    for row in rows:
        padding = [""] * (width - len(row))
        even.append([*row, *padding])
    table = written_table(even)
    if not title:
        return ["", table, ""]
    return ["", title, "", table, ""]


def _end_of_indented(lines: Sequence[str], number: int, indent: int) -> int:
    """Return the number of the first line after those that are indented below a line."""
    end = number + 1
    while end < len(lines):
        line = lines[end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        end += 1
    return end


def _rows_of_directive(kind: str, block: Sequence[str]) -> Rows:
    options: dict[str, str] = {}
    first = 0
    for first, line in enumerate(block):  # noqa: B007
        option = _OPTION.fullmatch(line)
        if option is None:
            break
        options[option[1]] = option[2]
    body = dedent("\n".join(block[first:])).strip("\n").split("\n")
    if kind == "table":
        rows = _drawn(body, 0).rows
    elif kind == "csv-table":
        rows = _rows_of_csv(body, options.get("delim", ","))
        if options.get("header"):
            rows[:0] = _rows_of_csv([options["header"]], ",")
    else:
        rows = _rows_of_list(body)
    return rows


def _rows_of_csv(lines: Sequence[str], separator: str) -> Rows:
    """Return the rows in lines of CSV, [] if they are not CSV."""
    sign = {"tab": "\t", "space": " "}.get(separator, separator[:1] or ",")
    written = [f"{line}\n" for line in lines]
    try:
        rows = list(csv.reader(written, delimiter=sign, skipinitialspace=True))
    except (csv.Error, TypeError, ValueError):
        return []
    return list(filter(None, rows))


def _rows_of_list(lines: Sequence[str]) -> Rows:
    rows: Rows = []
    for line in lines:
        bare = line.strip()
        item = _ITEM.fullmatch(bare)
        if item and bare.startswith("*"):
            rows.append([item[1]])
        elif item and rows:
            rows[-1].append(item[1])
        elif bare and rows:
            rows[-1][-1] = f"{rows[-1][-1]} {bare}"
    return rows


def _drawn(lines: Sequence[str], number: int) -> _Found:
    """Return the drawn table that begins at a line."""
    if number >= len(lines):
        return _Found(number, [])
    if _GRID.fullmatch(lines[number]):
        end = number
        while end < len(lines) and lines[end].lstrip().startswith(("+", "|")):
            end += 1
        return _Found(end, _rows_of_grid(lines[number:end]))
    if _SIMPLE.fullmatch(lines[number]):
        borders = _borders(lines, number)
        if len(borders) > 1:
            end = borders[min(len(borders), 3) - 1] + 1
            return _Found(end, _rows_of_simple(lines[number:end]))
    return _Found(number, [])


def _borders(lines: Sequence[str], number: int) -> list[int]:
    """Return the numbers of the lines that border a table: on top, perhaps below its header, and at the bottom."""
    borders: list[int] = []
    end = min(len(lines), number + _MOST_LINES)
    for at in range(number, end):
        if lines[at].strip() == lines[number].strip():
            borders.append(at)
            is_end = at + 1 == len(lines) or not lines[at + 1].strip()
            if len(borders) == 3 or (len(borders) == 2 and is_end):
                break
    return borders


def _rows_of_grid(lines: Sequence[str]) -> Rows:
    """Return the rows of a table that is drawn with lines around its cells."""
    marks = {
        at
        for line in lines
        if _GRID.fullmatch(line)
        for at, sign in enumerate(line)
        if sign == "+"
    }
    places = sorted(marks)
    columns = list(pairwise(places))
    if len(columns) > _MOST_CELLS:
        return []
    rows: Rows = []
    cells = [""] * len(columns)
    for line in lines:
        drawn = [line[left + 1 : right] for left, right in columns]
        if not line.lstrip().startswith("+") and "--" not in line:
            _add_line(cells, line, columns)
            continue
        if any(cells):
            rows.append([" ".join(cell.split()) for cell in cells])
        ends = [set(part) <= {"-", "=", "+"} for part in drawn]
        cells = ["" if end else cell for end, cell in zip(ends, cells, strict=True)]
    return rows


def _add_line(cells: list[str], line: str, columns: Sequence[tuple[int, int]]) -> None:
    """Add a line of a row to its cells; the words of a cell that spans columns go to the first of these."""
    first = 0
    for column, (left, right) in enumerate(columns):
        is_begun = line[left : left + 1] in ("|", "+")
        if is_begun:
            first = column
        part = line[left + is_begun : right]
        joint = " " if is_begun else ""
        cells[first] += joint + part


def _rows_of_simple(lines: Sequence[str]) -> Rows:
    """Return the rows of a table whose columns are drawn as `===== =====`."""
    starts = [match.start() for match in re.finditer("=+", lines[0])]
    columns = list(zip(starts, [*starts[1:], None], strict=True))
    rows: Rows = []
    for line in lines[1:]:
        if not line.strip(" =-"):
            continue
        cells = [line[begin:end].strip() for begin, end in columns]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            above = zip(rows[-1], cells, strict=True)
            rows[-1] = [f"{upper} {lower}".strip() for upper, lower in above]
    return rows


def with_tables_of_asciidoc(text: str) -> str:
    """Return an AsciiDoc text with its tables as Markdown, whose cells begin with bars or are CSV."""
    lines = text.splitlines()
    last = {line.strip(): at for at, line in enumerate(lines)}

    def read(number: int, above: list[str]) -> _Found:
        mark = lines[number].strip()
        begin = _BLOCK.fullmatch(lines[number])
        if begin is None or last[mark] == number:  # a block without an end
            return _Found(number, [])
        end = number + 1
        while lines[end].strip() != mark:
            end += 1
        attributes = ""
        if above and _ATTRIBUTES.fullmatch(above[-1]):
            attributes = above.pop()
        rows = _rows_of_block(begin[1], attributes, lines[number + 1 : end])
        title = ""
        if rows and above and above[-1][:1] == "." and above[-1][1:2].strip(". "):
            title = above.pop()[1:]
        return _Found(end + 1, rows, title)

    return _with_tables(lines, read)


def _rows_of_block(sign: str, attributes: str, lines: Sequence[str]) -> Rows:
    if sign in ",:" or "format=csv" in attributes or "format=tsv" in attributes:
        named = _SEPARATOR.search(attributes)
        separator = "\t" if "format=tsv" in attributes else sign
        if separator not in ",:\t":
            separator = ","
        return _rows_of_csv(lines, named[1] if named else separator)
    text = "\n".join(lines).replace("!", "|") if sign == "!" else "\n".join(lines)
    cells = list(_cells_of(text))
    width = _width_of(attributes) or _cells_in_first_line(lines)
    return _placed(cells, width)


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    across: int = 1
    down: int = 1


def _cells_of(text: str) -> Iterator[_Cell]:
    """Yield the cells of a table. Each begins with a bar, before which may stand how many columns and rows it spans, or
    how often it is repeated.
    """
    begins = list(_CELL.finditer(text))
    ends = [match.start() for match in begins] + [len(text)]
    for match, end in zip(begins, ends[1:], strict=True):
        words = text[match.end() : end].replace("\\|", "|")
        said = " ".join(words.split())
        across = min(int(match[1] or 1), _MOST_CELLS)
        down = min(int(match[2] or 1), _MOST_CELLS)
        if match[3] == "*":
            for _ in range(across):
                yield _Cell(said)
        else:
            yield _Cell(said, across, down)


def _width_of(attributes: str) -> int:
    """Return the number of columns stated in a table's attributes, or 0."""
    match = _COLUMNS.search(attributes)
    if match is None:
        return 0
    written = match[1] or match[2] or ""
    times = _TIMES.fullmatch(written)
    if times:
        return min(int(times[1][:3]), _MOST_CELLS)
    return written.count(",") + 1


def _cells_in_first_line(lines: Sequence[str]) -> int:
    first = next(filter(str.strip, lines), "")
    return sum(cell.across for cell in _cells_of(first))


@dataclass(slots=True)
class _Grid:
    width: int
    rows: Rows = field(default_factory=lambda: [[]])
    reaching: dict[int, tuple[int, str]] = field(default_factory=dict)
    """For each column, the number of further rows that a cell spans, and its text."""

    def add(self, text: str) -> int:
        """Add a cell at the next free place, and return its column."""
        if len(self.rows[-1]) >= self.width:
            self.rows.append([])
        row = self.rows[-1]
        while len(row) in self.reaching:
            column = len(row)
            left, above = self.reaching.pop(column)
            if left > 1:
                self.reaching[column] = (left - 1, above)
            row.append(above)
            if len(row) >= self.width:
                return self.add(text)
        row.append(text)
        return len(row) - 1


def _placed(cells: Sequence[_Cell], width: int) -> Rows:
    """Return the rows that cells fill one after another; the text of a cell that spans rows is repeated in each."""
    grid = _Grid(width)
    if not width:
        return []
    for cell in cells:
        for place in range(cell.across):
            text = "" if place else cell.text
            column = grid.add(text)
            if cell.down > 1:
                grid.reaching[column] = (cell.down - 1, text)
    return [row for row in grid.rows if any(row)]
