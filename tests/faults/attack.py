"""Counts the tries and the failures of an attack."""

from __future__ import annotations

import math
import random
import sys

COMMAND = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
"""The command line of this interpreter's package, whose arguments follow."""


class Attack:
    """Counts the tries of one test and keeps the faults; a test with a failure fails when it ends."""

    def __init__(self, name: str, seed: int, share: float) -> None:
        self.name = name
        self.random = random.Random(f"{seed} {name}")
        self.tried = 0
        self.failures: list[str] = []
        self._share = share

    def times(self, number: int) -> range:
        """Return a range of `number` tries, fewer if the command line asks for a share of them."""
        return range(math.ceil(number * self._share))

    def expect(self, held: bool, what: str) -> None:
        """Count a try, which `what` describes; it is reported if it did not hold."""
        self.tried += 1
        if not held:
            self.failures.append(what)
