"""Entry of a module that is run as a program, `python -m ...`: its errors are printed as one line, as on the command
line."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ras_agent.errors import RasError


def run_program(main: Callable[[], object]) -> None:
    """Call `main`. A RasError or an OSError ends the program with one line and exit code 1."""
    try:
        main()
    except (RasError, OSError) as error:
        sys.exit(f"error: {error}")
