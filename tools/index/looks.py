"""Determines how runs of text look in Office files: whether they are visible, and whether they are raised or lowered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ras_agent.text.words import word_set

OFF = word_set("0 false off none")
"""The values of a property that is switched off."""
DEEPEST = 20
"""The maximum depth of styles that are based on other styles."""


@dataclass(frozen=True, slots=True)
class Look:
    """Holds how a run of text looks, as far as it decides whether and where the run is read."""

    hidden: bool = False
    struck: bool = False
    level: str = ""
    """The mark of raised or lowered text, "" for text on the line."""
    white: bool = False

    @property
    def reason(self) -> str:
        """Return why the run is left out; "" if it is kept."""
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
    """Remove an element of a Word file or of slides from its tree, and count it if it has words."""
    texts = [part.text or "" for part in element.iter("{*}t")]
    count_left_out(left_out, reason, "".join(texts))
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
