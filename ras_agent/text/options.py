"""The options of a question that is answered by a label: "Is it (A) a river or (B) a lake?"."""

from __future__ import annotations

import re
from itertools import pairwise

_LABEL = re.compile(r"(?<!\S)\(?([A-Za-z]|\d{1,2})[).:](?=\s)")


def options_of(question: str) -> dict[str, str]:
    """Return the text of each option by its label, as the question writes both; {} where it lists none.

    >>> options_of("What flows? A. a river B. a mill")
    {'A': 'a river', 'B': 'a mill'}
    """
    marks = list(_LABEL.finditer(question))
    starts = [mark.start() for mark in marks]
    options: dict[str, str] = {}
    for mark, (_, end) in zip(marks, pairwise([*starts, len(question)]), strict=True):
        options[mark[1]] = question[mark.end() : end].strip()
    return options
