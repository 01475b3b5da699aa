"""Splits a sentence of everyday papers into lines, without bullets, numbers and times, and finds the label of each.

- [08:03] Arne: he is on the ferry      "he is on the ferry", of the label "Arne"
Dunmere, 9 November 2022.               nothing
§ 3 The Tenant keeps quiet hours        "The Tenant keeps quiet hours"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ras_agent.text.sentences import ITEM
from ras_agent.tools.offline import english
from ras_agent.tools.offline.extractor.words import CLOCK, DATE

_WRAPPED = 50  # the length in characters from which a line may continue on the next
_STAMP = rf"\[?(?:\d{{4}}-\d\d-\d\d[T ])?\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?Z?)?\]?|{CLOCK}|\d\d\.\d\d(?=\s\s)"
# the number of a clause: "2.1 The Client", "(b) return it"
_CLAUSE = r"(?:\d{1,2}(?:\.\d{1,2})+\.?\s+(?=[A-Z])|\(?(?:[a-z]|\d{1,2})\)\s+)"
_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL|TRACE|NOTICE)\b:?"
_ORDER = re.compile(
    rf"\s*(?:{ITEM}\s*|{_CLAUSE}|§+\s?\d+\s+|[★☆>#]+\s*|(?:{_STAMP})\s+|{_LEVEL}\s+|\*\*(?=\w))"
)
_GREETING = re.compile(
    r"(?:Dear|Hi|Hello|Hey) [^,.!?\n]{1,40}[,!]\s*"
    r"|(?:(?:Kind|Best|Warm|With kind) regards|Yours (?:faithfully|sincerely|truly)|Sincerely|Regards|Cheers)\b.*",
    re.DOTALL,
)
_MOST_ORDERS = 4
_PLACE = r"[A-Z][\w.'’-]{1,30}(?: [A-Z][\w.'’-]{1,30}){0,3}"
_DATELINE = re.compile(
    rf"{_PLACE}, (?:{DATE})(?:\s*\([^()\n]{{0,60}}\))?\s*(?:[.:–—-]+\s*|$)"
    rf"|(?:{_PLACE}, {_PLACE}|[A-Z]{{3,30}})(?: \([^()\n]{{0,60}}\))? [–—-] "
)
_LABEL = re.compile(
    r"\**(?P<label>[A-Z][\w/'’-]{0,30}(?: [\w/'’-]{1,30}){0,3}|[a-z][\w.-]{1,20}):\**\s+(?P<rest>\S.*)",
    re.DOTALL,
)
_CELLS = re.compile(
    r"\|\s*(?P<label>[A-Z][^|\n]{0,40}?)\s*\|\s*(?P<rest>[^|\n]{1,200}?)\s*\|\s*"
)
"""A table row with two columns, read as a label and its value."""
_CAPITALS = re.compile(r"\b[A-Z][A-Z'’]+(?: (?:[A-Z][A-Z'’]+|A|I))*(?!\w)")
_SHOUTED = english.words("things")["shouted"]
_YEARS = re.compile(r"\s*\d{4}\s*[-–—]\s*(?:\d{2,4}|present|now|today)\b")
# the end of a line, or the space before the next label in a line with several: "Date: 2 April    Due: 16 April"
_BREAK = re.compile(r"\n| {3,}(?=[A-Z][\w ]{0,30}: )")


@dataclass(frozen=True, slots=True)
class Line:
    """Holds a line of a sentence."""

    text: str
    label: str = ""
    """The words before a colon at its beginning; "" without a label."""


def lines_of(sentence: str) -> Iterator[Line]:
    """Yield the lines of a sentence that state something, without questions and without the place and date of a
    letter.
    """
    for whole in _unwrapped(sentence):
        text = _bare(_CAPITALS.sub(_calm, whole))
        labelled = _CELLS.fullmatch(text) or _LABEL.match(text)
        label = ""
        if labelled:
            label = labelled["label"]
            text = _bare(labelled["rest"])
        if text and not _is_question(text):
            yield Line(text, label)


def _calm(capitals: re.Match[str]) -> str:
    """Return words in capitals in small letters if they are shouted: "DO NOT SMOKE", unlike "NATO HQ"."""
    words = capitals.group().lower()
    if _SHOUTED.isdisjoint(words.split()):
        return capitals.group()
    return words


def _is_question(text: str) -> bool:
    """Return whether a text asks: its question mark is not that of a title in brackets or quotation marks."""
    is_in_brackets = text.count("(") > text.count(")")
    is_quoted = text.count('"') % 2 == 1
    if is_in_brackets or is_quoted:
        return False
    bare = text.rstrip("*_) ")
    return bare.endswith("?")


def _unwrapped(sentence: str) -> list[str]:
    """Return the lines of a sentence, each joined with the lines that continue it."""
    lines: list[str] = []
    for line in _BREAK.split(sentence):
        begins = _ORDER.match(line) or _LABEL.match(line) or _YEARS.match(line)
        is_small = line.strip()[:1].islower() and not begins
        is_behind_long = bool(lines) and len(lines[-1]) >= _WRAPPED
        if lines and (is_small or (is_behind_long and not begins)):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines


def _bare(line: str) -> str:
    """Return a line without its bullet, number, log time, greeting, and the dateline of a letter or report."""
    for _ in range(_MOST_ORDERS):
        order = _ORDER.match(line)
        if order is None:
            break
        line = line[order.end() :]
    for lead in (_GREETING, _DATELINE):
        found = lead.match(line)
        if found:
            line = line[found.end() :]
    return line.strip()
