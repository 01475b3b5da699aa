"""How runs of text look in files of Office: whether a reader sees them, and where they stand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

DEEPEST = 20
"""Styles that are based on styles."""


@dataclass(frozen=True, slots=True)
class Look:
    """Says how a run of text looks, as far as it decides whether and where it is read."""

    hidden: bool = False
    struck: bool = False
    level: str = ""
    """The mark of raised or lowered text, "" for what stands on the line."""
    white: bool = False

    @property
    def reason(self) -> str:
        """Why the run is left out, "" if it is not."""
        if self.hidden:
            return "hidden"
        if self.struck:
            return "struck out"
        return ""


def count_left_out(left_out: Counter[str], reason: str, text: str) -> None:
    """Count a part that is left out by its reason, if it has words."""
    if any(map(str.isalnum, text)):
        left_out[reason] += 1
