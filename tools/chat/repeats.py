"""Finds where a reply begins to repeat itself: small models may write one line over and over until a limit stops them."""

from __future__ import annotations

import re
from collections import Counter

from ras_agent.contracts.marks import FLAGS, THOUGHT_MARKS

_TIMES = 3
_LEAST_LETTERS = 12
"""A shorter line, such as a bracket or a truth value, may be repeated."""
_LEAST_WORDS = 4
"""A line with a name, a colon and fewer words than this, as in YAML, may be repeated too."""

# only marks that may stand anywhere in a line; the other marks stand at the beginning of a reply
_MARKS = [marks for marks in THOUGHT_MARKS if not marks.opening.startswith(r"\A")]
_OPENS = "|".join(marks.opening for marks in _MARKS)
_ENDS = "|".join(marks.closing for marks in _MARKS)
_THOUGHT = re.compile(rf"(?P<end>{_ENDS})|(?:{_OPENS})", FLAGS)
_KEY = re.compile(
    r"""[\s*-]*(?:(?P<quote>["'])[^"']*["']|\w+(?: \w+)?)\s*:(?P<value>.*)"""
)
_WORD = re.compile(r"\w+")


class Repeats:
    """Reads a growing text, and finds the first line that occurs for the third time.

    Only whole statements outside of thoughts count, because a thought may repeat itself, and JSON has the same keys
    and names in many objects.
    """

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._read = 0
        self._thinking = False

    def place_in(self, text: str) -> int | None:
        """Return the position of the line that occurs for the third time; None if no line does.

        `text` is the whole text so far; only lines after those of the last call are read.
        """
        while (end := text.find("\n", self._read)) >= 0:
            line = text[self._read : end].strip()
            if self._comes_too_often(line):
                return self._read
            self._read = end + 1
        return None

    def _comes_too_often(self, line: str) -> bool:
        for mark in _THOUGHT.finditer(line):
            self._thinking = mark["end"] is None
            self._times.clear()
        if self._thinking or not _is_statement(line):
            return False
        self._times[line] += 1
        return self._times[line] == _TIMES


def repeated_at(text: str) -> int | None:
    r"""Return the position at which a text begins to repeat itself; None if it does not (see `Repeats`).

    >>> repeated_at("Ada met Bob Inch.\nAda met Bob Inch.\nAda met Bob Inch.\nAda met")
    36
    """
    return Repeats().place_in(text)


def _is_statement(line: str) -> bool:
    """Return whether a line states something by itself, as a sentence, a fact or a row of a table does."""
    if sum(map(len, _WORD.findall(line))) < _LEAST_LETTERS:
        return False
    keyed = _KEY.match(line)
    if keyed is None:
        return True
    return not keyed["quote"] and len(_WORD.findall(keyed["value"])) >= _LEAST_WORDS
