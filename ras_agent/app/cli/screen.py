"""The terminal as all commands use it: text as it is, colour only where it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

__all__ = ["busy", "screen"]


def screen(*, stderr: bool = False, quiet: bool = False) -> Console:
    """A console that reads no markup, emoji codes or patterns into text; rich heeds NO_COLOR, COLUMNS and pipes."""
    return Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


@contextmanager
def busy(console: Console) -> Iterator[Callable[[str], None]]:
    """A spinner on an interactive terminal: `doing("planning")` shows it, `doing("")` puts it away."""
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
