"""Canonical keys: when do two strings name the same entity?"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["canonical_key"]

_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)")
_POSSESSIVE = re.compile(r"['’]s\b")
_SPACE = re.compile(r"\s+")


def _keep(char: str) -> str:
    """Letters, marks, digits and symbols stay; punctuation and spaces part words."""
    return " " if unicodedata.category(char)[0] in "PZC" else char


@lru_cache(maxsize=65536)
def canonical_key(surface: str) -> str:
    """The key under which surface forms of one entity meet.

    Unicode NFKC, case folding, no possessive, no punctuation, one space between words, no leading article. Never
    empty for a surface with a visible character: where nothing would be left, the folded surface itself is the key.

    >>> canonical_key("The  Beatles"), canonical_key("J.R.R. Tolkien’s")
    ('beatles', 'j r r tolkien')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", surface).casefold()).strip()
    words = _SPACE.sub(" ", "".join(map(_keep, _POSSESSIVE.sub("", folded)))).strip()
    while (shorter := _ARTICLE.sub("", words)) != words:
        words = shorter
    return words or folded
