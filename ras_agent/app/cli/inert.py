"""Text from elsewhere, made safe to print: nothing in it can move the cursor, colour the screen or turn the line."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["inert", "inert_json", "inert_lines"]

# marks that reorder what stands around them, so that a line reads otherwise than it is stored
_REORDERING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{''.join(sorted(_REORDERING))}]")


def inert(text: str, *, limit: int | None = None) -> str:
    """One line without control characters, line ends as spaces, cut to `limit` characters.

    Text goes to the terminal as `rich.text.Text`, never as markup, so brackets need no escape.

    >>> inert("Bell\\x1b[31m red\\n\\tsays [bold]hi")
    'Bell[31m red says [bold]hi'
    """
    line = " ".join(inert_lines(text).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def inert_lines(text: str) -> str:
    """The same with its spaces and line ends as they are."""
    return "".join(map(_kept, text))


def inert_json(json: str) -> str:
    """A JSON document, which escapes most control characters itself, with the others escaped too."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", json)


def _kept(char: str) -> str:
    if char.isspace():
        return "\n" if char == "\n" else " "
    return "" if unicodedata.category(char) in ("Cc", "Cs", "Co") or char in _REORDERING else char
