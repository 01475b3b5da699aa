"""A module run as a program, `python -m ...`: its errors are one line, as the command line's are."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ras_agent.errors import RasError

__all__ = ["run_program"]


def run_program(main: Callable[[], object]) -> None:
    """Call `main`; an error of ours, or a file that is not there, ends the program with one line and exit code 1."""
    try:
        main()
    except (RasError, OSError) as error:
        sys.exit(f"error: {error}")
