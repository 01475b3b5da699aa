"""Lines with a label on the left and text that hangs beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

__all__ = ["Hanging", "hang", "pack"]

_BREAK = re.compile(r"([ \n])")


def hang(console: Console, label: Text, body: Text, indent: int) -> None:
    """Print `label` padded to `indent` cells, and `body` to its right, wrapped there."""
    lines = body.wrap(console, max(console.width - indent, 20)) or [Text()]
    for number, line in enumerate(lines):
        head = label.copy() if number == 0 else Text()
        head.pad_right(max(indent - head.cell_len, 0))
        head.append_text(line)
        head.rstrip()
        console.print(head, soft_wrap=True)


def pack(items: Sequence[Text], width: int, separator: str, *, lines: int | None = None) -> Text:
    """`items` side by side, broken between items rather than inside; after `lines` lines, how many more there are."""
    packed, used, line = Text(), 0, 1
    for number, item in enumerate(items):
        rest = _rest(len(items) - number - 1) if line == lines else ""
        if used and used + len(separator) + item.cell_len + len(rest) > width:
            if line == lines:
                rest = _rest(len(items) - number)
                packed.append(rest if used + len(rest) <= width else f"\n{rest.lstrip()}", "dim")
                break
            packed.append("\n")
            used, line = 0, line + 1
        elif used:
            packed.append(separator)
            used += len(separator)
        packed.append_text(item)
        used += item.cell_len
    return packed


def _rest(count: int) -> str:
    return f" … {count} more" if count else ""


class Hanging:
    """Text that arrives piece by piece, wrapped between words as it comes."""

    def __init__(self, console: Console, label: Text, indent: int, style: str = "") -> None:
        self._console, self._indent, self._style = console, indent, style
        self._word = ""
        self._at = indent
        label.pad_right(max(indent - label.cell_len, 0))
        self._write(label)

    def add(self, text: str) -> None:
        """Print all whole words; the last stays until it is known to be whole."""
        *pieces, self._word = _BREAK.split(f"{self._word}{text}")
        for piece in pieces:
            if piece == "\n":
                self._next_line()
            else:
                self._put(piece)

    def close(self) -> None:
        """Print the rest and end the line."""
        self._put(self._word)
        self._write(Text("\n"))

    def _put(self, word: str) -> None:
        if not word.strip():
            return
        if self._at > self._indent and self._at + 1 + cell_len(word) > self._console.width:
            self._next_line()
        gap = " " if self._at > self._indent else ""
        self._write(Text(f"{gap}{word}", self._style))
        self._at += len(gap) + cell_len(word)

    def _next_line(self) -> None:
        self._write(Text("\n" + " " * self._indent))
        self._at = self._indent

    def _write(self, text: Text) -> None:
        self._console.print(text, end="", soft_wrap=True)
        self._console.file.flush()
