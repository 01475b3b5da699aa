"""Removes Unicode's tag characters from texts: they are invisible to readers, but models read them as letters."""

from __future__ import annotations

import re
from typing import NamedTuple

# flags such as those of England, Scotland and Wales are written with tags: a black flag and a few tags, which are kept
_TAGS = re.compile(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f|[\U000e0000-\U000e007f]+"
)
_FLAG = "\U0001f3f4"


class SeenText(NamedTuple):
    """Holds a text without tag characters, the offsets of its pages, and the number of runs that were removed."""

    text: str
    pages: tuple[int, ...]
    hidden: int


def without_tags(text: str, pages: tuple[int, ...] = ()) -> SeenText:
    """Return the text without tag characters, except those of flags."""
    if text.isascii():
        return SeenText(text, pages, 0)
    spans = []
    for match in _TAGS.finditer(text):
        if not match[0].startswith(_FLAG):
            spans.append(match.span())
    if not spans:
        return SeenText(text, pages, 0)
    kept = []
    last = 0
    for start, end in spans:
        kept.append(text[last:start])
        last = end
    kept.append(text[last:])
    begins = []
    for page in pages:
        before = sum(min(end, page) - start for start, end in spans if start < page)
        begins.append(page - before)
    return SeenText("".join(kept), tuple(begins), len(spans))
