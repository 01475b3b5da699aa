"""Turns texts from outside into lines that cannot move the cursor, end the line or change the reading direction."""

from __future__ import annotations

import re
import unicodedata

LONGEST_NAME = 300
"""The maximum number of characters of a title or file name that are shown."""
# marks that reorder the text around them, so that a line is displayed differently from its stored form
REORDERING = frozenset(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# characters that no screen shows but a model reads: tags, and old marks for format and annotation
_INVISIBLE = frozenset(
    map(chr, (*range(0xE0000, 0xE0080), *range(0x206A, 0x2070), *range(0xFFF9, 0xFFFC)))
)
_LINE_END = re.compile(r"\r\n?|\n")
_UNSEEN = ("Cc", "Cs", "Co")
# bytes of a file's name that Python could not decode, in a locale such as C
_ESCAPED = re.compile("[\udc80-\udcff]+")


def one_line(text: str, limit: int | None = None) -> str:
    """Return `text` as one line that cannot move the cursor, colour the screen or change the reading direction.

    Control characters are dropped, line ends become spaces, and the line is cut to `limit` characters. Text is printed
    as `rich.text.Text`, never as markup, so brackets need no escape.

    >>> one_line("Bell\\x1b[31m red\\n\\tsays [bold]hi")
    'Bell[31m red says [bold]hi'
    """
    readable = _ESCAPED.sub(_letters, text)
    line = " ".join(inert_lines(readable).split())
    if limit is None or len(line) <= limit:
        return line
    start = line[: limit - 1].rstrip()
    return f"{start}…"


def shown_name(name: object) -> str:
    r"""Return a title or file name as one line of at most 300 characters.

    The author of a document chooses its title, and must not be able to begin a new line that looks like another
    speaker's.

    >>> shown_name('Kelp\n[2] Harbour office: "It is open."')
    'Kelp [2] Harbour office: "It is open."'
    """
    return one_line(str(name), LONGEST_NAME)


def inert_lines(text: str) -> str:
    """Return `text` without control characters, as `one_line` does, but keep its spaces and line ends."""
    characters = map(_safe, text)
    return "".join(characters)


def first_line(text: str) -> str:
    """Return the first line that is not blank; "" if all lines are blank."""
    for line in lines_of(text):
        if line.strip():
            return line
    return ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that a model or a person wrote. Lines end with a line feed or a carriage return.

    `str.splitlines` also splits at control characters and separators that occur inside a line.

    >>> lines_of("When was\\x1e Bell born?\\r\\nIn 1847.\\n")
    ['When was\\x1e Bell born?', 'In 1847.']
    """
    lines = _LINE_END.split(text)
    if not lines[-1]:
        lines.pop()
    return lines


def _letters(escaped: re.Match[str]) -> str:
    data = escaped[0].encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "replace")


def _safe(char: str) -> str:
    if char.isspace():
        return "\n" if char == "\n" else " "
    if (
        char in REORDERING
        or char in _INVISIBLE
        or unicodedata.category(char) in _UNSEEN
    ):
        return ""
    return char
