"""Prints on a terminal: foreign text made safe, lines with a label, a spinner, progress bars."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ras_agent.text.lines import REORDERING, one_line
from ras_agent.text.lines import inert_lines as inert_lines

if TYPE_CHECKING:
    from rich.progress import ProgressColumn
    from rich.status import Status

# ---- the console


def screen(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a rich Console that interprets no markup, emoji codes or patterns in texts. It respects NO_COLOR
    and COLUMNS.
    """
    return Console(
        stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False
    )


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a text as one line, which only the terminal may break."""
    console.print(text, style=style, soft_wrap=True)


@contextmanager
def busy(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a spinner with a text, `doing("planning")`, or hides it, `doing("")`.

    Nothing is shown if the console is not a terminal.
    """
    status: Status | None = None

    def doing(what: str) -> None:
        nonlocal status
        if status is not None and not what:
            status.stop()
            status = None
        elif status is not None:
            status.update(what)
        elif what and console.file.isatty() and not console.quiet:
            status = console.status(what, spinner_style="cyan")
            status.start()

    try:
        yield doing
    finally:
        doing("")


@contextmanager
def progress_bar(
    console: Console,
    *columns: ProgressColumn,
    total: float | None = None,
    **values: Any,
) -> Iterator[Callable[..., None]]:
    """Show a progress bar with these columns, and yield the function that updates it.

    `values` are further fields of the task that the columns show, such as `file`. Nothing is shown if the console is
    not a terminal.
    """
    from rich.progress import Progress

    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield partial(bar.update, bar.add_task("", total=total, **values))


# ---- safe text

_UNSAFE_IN_JSON = re.compile(f"[\x7f-\x9f{''.join(sorted(REORDERING))}]")
inert = one_line


def inert_json(document: str) -> str:
    """Escape all control characters in a JSON document. JSON writers escape only some of them."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def print_json(data: Any, indent: int | None = None) -> None:
    """Print data as a JSON document without control characters."""
    document = json.dumps(data, ensure_ascii=False, indent=indent)
    typer.echo(inert_json(document))


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as "1 hop" or "1,204 facts".

    `plural` is needed only if the plural is not formed with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def name_list(names: Sequence[str]) -> str:
    """Return the first five names on one line, with "…" if there are more."""
    return inert(f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}")


# ---- lines with a label on the left and text to its right

MARGIN = 7
"""The width, in cells, of the labels of a run on screen: a hop, the answer, a review."""

_UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"  # scripts without spaces between words
_WORD = re.compile(f"[^ \n{_UNSPACED}]+")
_PIECE = re.compile(f"[ \n{_UNSPACED}]|[^ \n{_UNSPACED}]+")


def hang(console: Console, label: Text, body: Text, indent: int) -> None:
    """Print `label` padded to `indent` cells, and to its right `body`, wrapped there.

    A label that takes more than half a line, such as an address, gets its own line, with the body below.
    """
    if indent > console.width // 2:
        alone = label.copy()
        alone.rstrip()
        console.print(alone, soft_wrap=True)
        label = Text()
        indent = MARGIN
    lines = body.wrap(console, max(console.width - indent, 20)) or [Text()]
    for number, line in enumerate(lines):
        head = Text.assemble(label if number == 0 else "")
        head.pad_right(max(indent - head.cell_len, 0))
        head.append_text(line)
        head.rstrip()
        console.print(head, soft_wrap=True)


def print_skipped(items: Iterable[object]) -> None:
    """Print each item that was not read, in full, so that users can search for it."""
    for item in items:
        typer.echo(f"skipped  {inert(str(item))}", err=True)


def print_outcome(
    console: Console, place: object, content: Sequence[str], counts: Sequence[str]
) -> None:
    """Print a place, such as an index, and to its right its content, and the counts that are not 0."""
    changes = [count for count in counts if not count.startswith("0 ")]
    label = Text(f"{inert(str(place))} ", "bold")
    parts = [*content, *changes]
    body = Text(" · ".join(parts))
    indent = len(str(place)) + 1
    hang(console, label, body, indent)


def fact_line(
    subject: str, predicate: str, target: str, *, limit: int | None = None
) -> Text:
    """Return a fact as "(subject | predicate | object)". Each part is cut to `limit` characters."""
    bar = (" | ", "dim")
    words = [inert(part, limit=limit) for part in (subject, predicate, target)]
    return Text.assemble(
        ("(", "dim"), words[0], bar, (words[1], "magenta"), bar, words[2], (")", "dim")
    )


def pack(
    items: Sequence[Text], width: int, separator: str, *, lines: int | None = None
) -> Text:
    """Return `items` in lines of `width` cells, separated by `separator` and broken only between items.

    After `lines` lines, the number of further items follows.
    """
    packed = Text()
    used = 0
    line = 1
    gap = cell_len(separator)
    for number, item in enumerate(items):
        still_to_come = items[number:]
        rest = ""
        if (
            line == lines
            and used + sum(gap + other.cell_len for other in still_to_come) > width
        ):
            rest = _rest(len(still_to_come) - 1)
        if used and used + gap + item.cell_len + len(rest) > width:
            if line == lines:
                rest = _rest(len(still_to_come))
                packed.append(
                    rest if used + len(rest) <= width else f"\n{rest.lstrip()}", "dim"
                )
                break
            packed.append("\n")
            used = 0
            line = line + 1
        elif used:
            packed.append(separator)
            used += gap
        packed.append_text(item)
        used += item.cell_len
    return packed


def _rest(count: int) -> str:
    return f" … {count} more" if count else ""


class Hanging:
    """Prints text to the right of a label, piece by piece as it arrives, and wraps it there.

    Lines break between words; in scripts without spaces, between any two characters.
    """

    def __init__(
        self, console: Console, label: Text, indent: int, style: str = ""
    ) -> None:
        self._console = console
        self._indent = indent
        self._style = style
        self._unfinished = ""
        self._gap = ""
        self._at = indent
        label.pad_right(max(indent - label.cell_len, 0))
        self._write(label)

    def add(self, text: str) -> None:
        """Print the complete words of a piece of text. The last word waits for the next piece."""
        pieces = _PIECE.findall(f"{self._unfinished}{text}")
        self._unfinished = pieces.pop() if pieces and _WORD.match(pieces[-1]) else ""
        for piece in pieces:
            self._put(piece)

    def close(self) -> None:
        """Print the remaining text and end the line."""
        if self._unfinished:
            self._put(self._unfinished)
        self._write(Text("\n"))

    def _put(self, piece: str) -> None:
        if piece == "\n":
            self._next_line()
        elif piece == " ":
            self._gap = " " if self._at > self._indent else ""
        else:
            if (
                self._at > self._indent
                and self._at + cell_len(self._gap + piece) > self._console.width
            ):
                self._next_line()
            self._write(Text(f"{self._gap}{piece}", self._style))
            self._at += cell_len(self._gap + piece)
            self._gap = ""

    def _next_line(self) -> None:
        self._write(Text("\n" + " " * self._indent))
        self._at = self._indent
        self._gap = ""

    def _write(self, text: Text) -> None:
        self._console.print(text, end="", soft_wrap=True)
        self._console.file.flush()
