"""Reads rows of tables in text, with any quotation; a quotation mark that is never closed affects only its own row."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

SEPARATORS = ",;\t|"
_MOST_TITLES = 10
"""The maximum number of lines above the header."""
_LONGEST_FIELD = 1 << 30  # csv's own limit, 128 KiB, is less than a long article
# Excel's first line, which names the separator of the others
_NAMES_SEPARATOR = re.compile(r"\A\s*\"?sep=(.)\"?\s*\Z", re.IGNORECASE)


class Rows:
    """Iterates over the rows of a table, each with the number of its first line.

    A row that cannot be read is returned as the csv.Error, and reading continues with the line after the row's
    first. The header is the first row. In tab-separated values, quotation marks have no meaning.
    """

    def __init__(self, lines: Iterator[str], *, is_tsv: bool = False) -> None:
        """Take the lines of the file."""
        csv.field_size_limit(_LONGEST_FIELD)
        self._lines = lines
        self._again: deque[str] = deque()
        self._taken: list[str] = []
        self._number = 1
        self.has_titles = False
        """Whether other lines stand above the header"""
        self._dialect = self._dialect_of(is_tsv)
        self._reader = csv.reader(self._source(), **self._dialect)

    def __iter__(self) -> Iterator[tuple[int, list[str] | csv.Error]]:
        while True:
            self._taken.clear()
            try:
                row: list[str] | csv.Error | None = next(self._reader, None)
            except csv.Error as error:
                row = self._with_backslashes() or error
                if row is error:
                    self._begin_again_at(1)
                self._reader = csv.reader(self._source(), **self._dialect)
            if row is None:
                return
            number = self._number
            self._number += len(self._taken)
            yield number, row

    def _begin_again_at(self, line: int) -> None:
        """Put back the lines that were taken for a row, from line `line` of them on."""
        self._again.extendleft(reversed(self._taken[line:]))
        del self._taken[line:]

    def _with_backslashes(self) -> list[str] | None:
        """Return the row read with a backslash before each inner quotation mark, or None if it is not written so."""
        if not any('\\"' in line for line in self._taken):
            return None
        self._begin_again_at(0)
        escaped = {**self._dialect, "escapechar": "\\", "doublequote": False}
        with suppress(csv.Error):
            return next(csv.reader(self._source(), **escaped))
        return None

    def _source(self) -> Iterator[str]:
        while True:
            line = self._again.popleft() if self._again else next(self._lines, None)
            if line is None:
                return
            self._taken.append(line)
            yield line

    def _dialect_of(self, is_tsv: bool) -> dict[str, Any]:
        """Return the csv settings of the table. The separator is the one named in the first line, or the most frequent
        one."""
        head = next(self._lines, "")
        named = _NAMES_SEPARATOR.match(head)
        if named:
            self._number = 2
        else:
            self._again.append(head)
        if is_tsv:
            return {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "strict": True}
        if not named:
            head = self._header_below(head)
        separator = named[1] if named else max(SEPARATORS, key=head.count)
        is_single = head.startswith("'") and f"'{separator}'" in head
        return {
            "delimiter": separator,
            "quotechar": "'" if is_single else '"',
            "skipinitialspace": f"{separator} " in head,
            "strict": True,
        }

    def _header_below(self, first: str) -> str:
        """Return the header below titles, comments and empty lines, or the first line if no table follows."""
        head = first
        while _is_title(head) and len(self._again) < _MOST_TITLES:
            head = next(self._lines, "")
            self._again.append(head)
        if head is first:
            return first
        below = next(self._lines, "")
        self._again.append(below)
        separator = max(SEPARATORS, key=head.count)
        is_table = 0 < head.count(separator) == below.count(separator)
        self.has_titles = is_table
        return head if is_table else first


def _is_title(line: str) -> bool:
    """Return whether a line above a table is empty, a comment, or words without a separator."""
    bare = line.strip()
    if not bare or bare.startswith("# "):
        return line != ""
    return " " in bare and not any(map(bare.count, SEPARATORS))
