"""Where sentences begin and end: the spans that facts, citations and chunks point to."""

from __future__ import annotations

import re

__all__ = ["sentence_at", "sentence_spans"]

_END = re.compile(r"(?:[.!?…]+[\"'”’)\]]*(?=\s|$))|(?:[。！？]+[」』”’）]*)|\n{2,}")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"“])(?:mr|mrs|ms|dr|prof|st|jr|sr|gen|col|lt|sgt|capt|rev|hon|gov|sen|rep|no|vol|pp?|fig|vs|etc|inc|ltd|co"
    r"|corp|approx|c|ca|cf|e\.g|i\.e|u\.s|u\.k|d\.c|a\.k\.a|feat|ft|mt|b|d|jan|feb|mar|apr|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"(?:^|[\s.(\"“])[A-Z]\.$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open character spans of the sentences of `text`, in order, trimmed of white space, covering all its words.

    A full stop after an initial ("J. K.") or a common abbreviation does not end a sentence.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if not match.group().startswith("\n"):
            head = text[start : match.start() + 1]
            following = text[end:].lstrip()[:1]
            if match.group()[0] == "." and (_INITIAL.search(head) or _ABBREVIATION.search(head)) and following:
                continue
            if match.group()[0] == "." and following and following.islower():
                continue
        _add(spans, text, start, end)
        start = end
    _add(spans, text, start, len(text))
    return spans


def sentence_at(text: str, offset: int) -> tuple[int, int]:
    """The sentence span that holds character `offset`, or the nearest one before it; (0, len) for no sentence."""
    best = (0, len(text))
    for span in sentence_spans(text):
        if span[0] > offset:
            break
        best = span
    return best


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))
