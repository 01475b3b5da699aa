"""Reads tables in Markdown: a row is a record, and its cells are facts about the subject that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import is_value
from ras_agent.tools.index.line_ends import in_one_line
from ras_agent.tools.index.markdown import Line, lines_of_prose, plain_text

_DELIMITER = re.compile(r" {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_BAR = re.compile(r"(?<!\\)\|")
_COUNTER = re.compile(r"(?i)\W*(?:no|nr|num|number|row|rank|line|pos)?\W*")
"""Matches the name of a column that only numbers the rows."""
TABLE = "table"
"""The metadata key for the table of a passage: its place, its key column and its number of rows."""
_SHORT_NUMBER = 3  # digits
_DIGITS = re.compile(r"\d+")
_LONGEST_FACT = 200
"""The maximum number of characters in a cell that is a fact; a longer cell is prose."""


@dataclass(frozen=True, slots=True)
class TextRow:
    """Holds a row of a table: its cells, and its characters `start` to `end` in the text."""

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextTable:
    """Holds a table, at the characters `start` to `end` of a text; its header ends at `head_end`."""

    start: int
    head_end: int
    end: int
    columns: tuple[str, ...]
    rows: tuple[TextRow, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """Holds a row of a table as the facts that it states."""

    key_column: str
    """The column that names the subject of each row."""
    key: str
    """The subject of this row."""
    cells: tuple[tuple[str, str], ...]
    """The other columns that are not empty in this row, each with its cell."""
    number: int = 0
    """The number of the row, from 1; 0 if unknown."""

    @property
    def sentence(self) -> str:
        """Return the row as one sentence, in which it is searched."""
        named = f"{self.key_column} {self.key}".strip()
        said = "; ".join(f"{column} {cell}" for column, cell in self.cells)
        return f"{named}: {said}."

    def facts(self, place: str) -> list[list[str]]:
        """Return the facts of the row, each with its place. Long cells are prose, and dashes state nothing."""
        facts = []
        for column, cell in self.cells:
            if len(cell) <= _LONGEST_FACT and any(map(str.isalnum, cell)):
                where = f"{place} column {column}"
                facts.append([self._subject, column, cell, where])
        return facts

    @property
    def _subject(self) -> str:
        """The key, or "Lot 1" and "Departs 07:15" where a short number or a time is the key: it names nothing by itself."""
        digits = _DIGITS.findall(self.key)
        has_letters = any(map(str.isalpha, self.key))
        is_long = len(max(digits, key=len, default="")) > _SHORT_NUMBER
        if is_long or has_letters:
            return self.key
        return f"{self.key_column} {self.key}".strip()


def tables_in(text: str) -> list[TextTable]:
    """Return the tables of a Markdown text in order, without those in fenced code or without column names.

    Two columns of labels and values without column names are not a table: they are read as lines ("Weight: 1.4 kg").
    """
    if "|" not in text or "--" not in text:
        return []
    lines = list(lines_of_prose(text))
    tables: list[TextTable] = []
    number = 1
    while number < len(lines):
        table = _table_at(lines, number)
        if table is None:
            number += 1
            continue
        number += len(table.rows) + 1
        if not any(table.columns) and not _has_labels(table):
            table = _headed_by_first_row(table)
        if table.rows and any(table.columns[1:]):
            tables.append(table)
    return tables


def records_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Record]:
    """Return the records of the rows of a table; a row that has only its name states nothing, and has no record.

    The subject of a row is its cell in the first column whose cells are all filled and all different and name
    something; the first of all columns may have figures. If there is no such column, it is the first few cells together
    that distinguish the rows.
    """
    key = key_of(columns, rows)
    records = []
    for number, row in enumerate(rows, start=1):
        record = record_of(columns, row, key)
        if record is not None:
            records.append(replace(record, number=number))
    return records


def record_of(
    columns: Sequence[str], row: Sequence[str], key: Sequence[int]
) -> Record | None:
    """Return a row as a record: its subject, and its other filled cells with the names of their columns.

    It is None if the cells of the subject are empty, or if no other cell is filled.

    Args:
        key: the indexes, from 0, of the columns that name the subject.
    """
    about = [row[at] for at in key if row[at]]
    cells = []
    for at, column in enumerate(columns):
        cell = row[at]
        if column and cell and at not in key:
            cells.append((column, cell))
    if not about or not cells:
        return None
    named = [columns[at] for at in key]
    return Record(key_column=", ".join(named), key=", ".join(about), cells=tuple(cells))


def key_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return the numbers of the columns that name the subject of a row."""
    named = []
    for at, column in enumerate(columns):
        counts = _COUNTER.fullmatch(column) is not None
        is_first = at == 0 and column == ""
        if is_first or not counts:
            named.append(at)
    if not named:
        return (0,)
    unique = [at for at in named if _tell_apart(rows, (at,))]
    for at in unique:
        if at == named[0] or _speaks(rows, at):
            return _better_beside(at, columns, rows)
    for count in range(2, len(named)):
        first = tuple(named[:count])
        if _tell_apart(rows, first):
            return first
    return tuple(unique[:1]) or (named[0],)


def _better_beside(
    at: int, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[int]:
    """Return a key column, or the one after it if that names the rows better: "Talk" after "Time"."""
    after = at + 1
    has_numbers = all(row[at].isdigit() for row in rows)  # of rooms, for example
    if has_numbers or _speaks(rows, at) or after == len(columns):
        return (at,)
    is_better = _speaks(rows, after) and _tell_apart(rows, (after,))
    return (after,) if is_better else (at,)


def _speaks(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a column names something in each row: no cell is a date, a time, a price or a number."""
    return not any(is_value(row[at]) for row in rows)


def _tell_apart(rows: Sequence[Sequence[str]], key: Sequence[int]) -> bool:
    names = set()
    for row in rows:
        cells = [row[at] for at in key]
        if not cells[0]:
            return False
        name = canonical_key(", ".join(cells))
        names.add(name)
    return len(names) == len(rows)


def headings_above(text: str, first: int, start: int) -> int:
    """Return where the headings begin that stand directly above `start` and after `first`; `start` without any."""
    begin = start
    while begin > first:
        at = max(text.rfind("\n", 0, begin - 1) + 1, first)
        line = text[at:begin].strip()
        if not _HEADING.match(line) and line:
            break
        begin = at
        if line:
            start = at
    return start


def written_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table, with the first row as the header.

    >>> print(written_table([["Part", "Price"], ["Lid | rim", "5"]]))
    | Part | Price |
    | --- | --- |
    | Lid \\| rim | 5 |
    """
    if not rows:
        return ""
    lines = [_written_row(row) for row in rows]
    under = ["---"] * len(rows[0])
    lines.insert(1, _written_row(under))
    return "\n".join(lines)


def _written_row(cells: Sequence[str]) -> str:
    written: list[str] = []
    for cell in cells:
        line = in_one_line(cell)
        written.append(line.replace("|", "\\|"))
    return f"| {' | '.join(written)} |"


def _table_at(lines: Sequence[Line], number: int) -> TextTable | None:
    """Return the table whose delimiter line, below the header, has this number, or None."""
    head = lines[number - 1]
    under = lines[number].text
    if "|" not in head.text or not _DELIMITER.fullmatch(under):
        return None
    columns = _cells(head.text)
    if len(columns) < 2 or len(_cells(under)) != len(columns):
        return None
    rows = []
    for at in range(number + 1, len(lines)):
        line = lines[at]
        if "|" not in line.text:
            break
        cells = _cells(line.text)[: len(columns)]
        missing = len(columns) - len(cells)
        rows.append(TextRow(line.start, line.end, (*cells, *[""] * missing)))
    end = rows[-1].end if rows else lines[number].end
    return TextTable(head.start, lines[number].end, end, tuple(columns), tuple(rows))


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    if bare.endswith("|") and not bare.endswith("\\|"):
        bare = bare[:-1]
    cells = []
    for cell in _BAR.split(bare):
        written = cell.replace("\\|", "|")
        cells.append(plain_text(written))
    return cells


def _has_labels(table: TextTable) -> bool:
    """Return whether the first of two columns has labels: the first row has a colon or a figure, unlike any header."""
    if len(table.columns) != 2 or not table.rows:
        return False
    label, value = table.rows[0].cells
    return label.endswith(":") or any(map(str.isdigit, value))


def _headed_by_first_row(table: TextTable) -> TextTable:
    """Return a table with a blank header, which Word writes if no header is marked, with its first row as the
    header."""
    if not table.rows:
        return table
    first = table.rows[0]
    return replace(table, columns=first.cells, head_end=first.end, rows=table.rows[1:])
