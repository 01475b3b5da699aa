"""A process of this machine that works for this one, at the other end of a pipe, and never outlives it.

Children are spawned: each imports the main module again. A script of your own that starts some therefore does so under
`if __name__ == "__main__":`, or its children would start children; Python then says so and they end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from ras_agent.errors import RunError

__all__ = ["Child", "in_words"]


class Child:
    """A process whose whole life is `serve(pipe, order)`; both must survive pickling.

    It ends with the pipe, whether this process closes it or dies: `serve` need not catch what the pipe then raises.
    """

    def __init__(self, serve: Callable[[Connection, Any], None], order: object) -> None:
        context = get_context("spawn")  # a fork would copy locks that threads of this process hold
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(serve, theirs, order), daemon=True)
        self._process.start()
        theirs.close()

    def bury(self) -> None:
        """Wait for its end; after a moment, make it."""
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def died(self) -> RunError:
        """How it ended before it was told to, and what to do."""
        self._process.join(1)
        return RunError(
            f"a worker process ended (exit code {self._process.exitcode}); the same command resumes the work, with "
            "fewer --workers if memory is short"
        )


def in_words(error: Exception) -> RunError:
    """An error for the way back through a pipe, which not every exception survives."""
    return RunError(f"{type(error).__name__}: {error}")


def _live(serve: Callable[[Connection, Any], None], pipe: Connection, order: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other process's to act on
    with suppress(EOFError, ConnectionError):  # the process that hands out is gone, or wants no more
        serve(pipe, order)
