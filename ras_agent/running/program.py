"""Runs a module as a program, `python -m ...`, which prints an error as one line, as the command line does."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ras_agent.contracts.errors import RasError


def run_program(main: Callable[[], object]) -> None:
    """Call `main`. If it raises RasError or OSError, print the error as one line and end the program with exit code 1."""
    try:
        main()
    except (RasError, OSError) as error:
        sys.exit(f"error: {error}")
