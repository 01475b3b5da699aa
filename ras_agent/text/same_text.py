"""Decides whether two texts are copies: one contains all words of the other in a row, and little else."""

from __future__ import annotations

import re

from ras_agent.text.words import fold

_WORD = re.compile(r"\w+")
_UNSAID = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]| ?\\[\\d{1,3}\\]")
"""Characters without width, and the numbers of notes."""
_LEAST_SHARE = 0.8
"""The smallest length of the shorter text as a share of the longer one, in characters of their words."""


def words_said(text: str) -> str:
    """Return the words of a text as `are_copies` compares them: folded, without punctuation and note numbers."""
    said = _UNSAID.sub("", text)
    words = _WORD.findall(fold(said))
    return " ".join(words)


def are_copies(words: str, others: str) -> bool:
    """Tell whether two texts, both in the form of `words_said`, are copies of each other."""
    shorter, longer = sorted((words, others), key=len)
    if len(shorter) < _LEAST_SHARE * len(longer):
        return False
    return f" {shorter} " in f" {longer} "
