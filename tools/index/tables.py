"""Rows of tables in text, however they are quoted: a quotation mark that is never closed costs its own row."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

SEPARATORS = ",;\t|"
_LONGEST_FIELD = 1 << 30  # csv's own limit, 128 KiB, is less than a long article
# Excel's first line, which names the separator of the others
_NAMES_SEPARATOR = re.compile(r"\A\s*\"?sep=(.)\"?\s*\Z", re.IGNORECASE)


class Rows:
    """Iterator over the rows of a table, each with the number of its first line.

    A row that cannot be read comes as the error that says why, and reading goes on with the line behind its first one.
    The header is the first row. Tab-separated values have no quotation marks with a meaning.
    """

    def __init__(self, lines: Iterator[str], *, is_tsv: bool = False) -> None:
        csv.field_size_limit(_LONGEST_FIELD)
        self._lines = lines
        self._again: deque[str] = deque()
        self._taken: list[str] = []
        self._number = 1
        self._dialect = self._dialect_of(is_tsv)
        self._reader = csv.reader(self._source(), **self._dialect)

    def __iter__(self) -> Iterator[tuple[int, list[str] | csv.Error]]:
        while True:
            self._taken.clear()
            try:
                row: list[str] | csv.Error | None = next(self._reader, None)
            except csv.Error as error:
                row = error
                self._again.extendleft(reversed(self._taken[1:]))
                del self._taken[1:]
                self._reader = csv.reader(self._source(), **self._dialect)
            if row is None:
                return
            number = self._number
            self._number += len(self._taken)
            yield number, row

    def _source(self) -> Iterator[str]:
        while True:
            line = self._again.popleft() if self._again else next(self._lines, None)
            if line is None:
                return
            self._taken.append(line)
            yield line

    def _dialect_of(self, is_tsv: bool) -> dict[str, Any]:
        """Return how the table is written. The separator is the one that its first line names or has most often."""
        head = next(self._lines, "")
        named = _NAMES_SEPARATOR.match(head)
        if named:
            self._number = 2
        else:
            self._again.append(head)
        if is_tsv:
            return {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "strict": True}
        return {
            "delimiter": named[1] if named else max(SEPARATORS, key=head.count),
            "strict": True,
        }
