"""Reads the options of a question that is answered by a label: "Is it (A) a river or (B) a lake?"."""

from __future__ import annotations

import re

_LABEL = re.compile(r"(?<!\S)\(?([A-Za-z]|\d{1,2})[).:](?=\s)")


def options_of(question: str) -> dict[str, str]:
    """Return the text of each option that a question lists, by the option's label; {} if it lists no options.

    >>> options_of("What flows? A. a river B. a mill")
    {'A': 'a river', 'B': 'a mill'}
    """
    _, *marked = _LABEL.split(question)
    labels = marked[::2]
    texts = map(str.strip, marked[1::2])
    return dict(zip(labels, texts, strict=True))
