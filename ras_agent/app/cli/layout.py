"""Lines with a label on the left and text that hangs beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

__all__ = ["Hanging", "hang", "pack"]

_UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
_WORD = re.compile(f"[^ \n{_UNSPACED}]+")
_PIECE = re.compile(f"[ \n{_UNSPACED}]|[^ \n{_UNSPACED}]+")


def hang(console: Console, label: Text, body: Text, indent: int) -> None:
    """Print `label` padded to `indent` cells, and `body` to its right, wrapped there."""
    lines = body.wrap(console, max(console.width - indent, 20)) or [Text()]
    for number, line in enumerate(lines):
        head = Text.assemble(label if number == 0 else "")
        head.pad_right(max(indent - head.cell_len, 0))
        head.append_text(line)
        head.rstrip()
        console.print(head, soft_wrap=True)


def pack(items: Sequence[Text], width: int, separator: str, *, lines: int | None = None) -> Text:
    """`items` side by side, broken between items rather than inside; after `lines` lines, how many more there are."""
    packed, used, line, gap = Text(), 0, 1, cell_len(separator)
    for number, item in enumerate(items):
        still_to_come = items[number:]
        rest = ""
        if line == lines and used + sum(gap + other.cell_len for other in still_to_come) > width:
            rest = _rest(len(still_to_come) - 1)
        if used and used + gap + item.cell_len + len(rest) > width:
            if line == lines:
                rest = _rest(len(still_to_come))
                packed.append(rest if used + len(rest) <= width else f"\n{rest.lstrip()}", "dim")
                break
            packed.append("\n")
            used, line = 0, line + 1
        elif used:
            packed.append(separator)
            used += gap
        packed.append_text(item)
        used += item.cell_len
    return packed


def _rest(count: int) -> str:
    return f" … {count} more" if count else ""


class Hanging:
    """Text that arrives piece by piece, wrapped between words as it comes; scripts without spaces between any two."""

    def __init__(self, console: Console, label: Text, indent: int, style: str = "") -> None:
        self._console, self._indent, self._style = console, indent, style
        self._unfinished, self._gap = "", ""
        self._at = indent
        label.pad_right(max(indent - label.cell_len, 0))
        self._write(label)

    def add(self, text: str) -> None:
        """Print what is whole; a last word stays until it is known to be."""
        pieces = _PIECE.findall(f"{self._unfinished}{text}")
        self._unfinished = pieces.pop() if pieces and _WORD.match(pieces[-1]) else ""
        for piece in pieces:
            self._put(piece)

    def close(self) -> None:
        """Print the rest and end the line."""
        if self._unfinished:
            self._put(self._unfinished)
        self._write(Text("\n"))

    def _put(self, piece: str) -> None:
        if piece == "\n":
            self._next_line()
        elif piece == " ":
            self._gap = " " if self._at > self._indent else ""
        else:
            if self._at > self._indent and self._at + cell_len(self._gap + piece) > self._console.width:
                self._next_line()
            self._write(Text(f"{self._gap}{piece}", self._style))
            self._at += cell_len(self._gap + piece)
            self._gap = ""

    def _next_line(self) -> None:
        self._write(Text("\n" + " " * self._indent))
        self._at, self._gap = self._indent, ""

    def _write(self, text: Text) -> None:
        self._console.print(text, end="", soft_wrap=True)
        self._console.file.flush()
