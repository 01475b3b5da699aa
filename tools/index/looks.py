"""How runs of text look in files of Office: whether a reader sees them, and where they stand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ras_agent.text.words import word_set

OFF = word_set("0 false off none")
"""Values of a property that is switched off."""
DEEPEST = 20
"""Styles that are based on styles."""


@dataclass(frozen=True, slots=True)
class Look:
    """Says how a run of text looks, as far as it decides whether and where it is read."""

    hidden: bool = False
    struck: bool = False
    level: str = ""
    """The mark of raised or lowered text, "" for text on the line."""
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


def take_out(element: Any, reason: str, left_out: Counter[str]) -> None:
    """Remove an element of Word or of slides from its tree, and count it if it has words."""
    texts = [part.text or "" for part in element.iter("{*}t")]
    count_left_out(left_out, reason, "".join(texts))
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
