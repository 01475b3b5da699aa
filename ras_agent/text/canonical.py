"""Canonical keys: when do two strings name the same entity?"""

from __future__ import annotations

import re
import unicodedata

from ras_agent.text.normal_form import normal_form
from ras_agent.text.short_cache import cached_if_short

_ARTICLES = frozenset({"the", "a", "an"})
_POSSESSIVE = re.compile(r"['’]s\b")
_VARIATION_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


class _Invisible(dict[int, str | None]):
    """For `str.translate`: drops soft hyphens, joiners and other format characters. Filled as characters are met."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        drop = unicodedata.category(char) == "Cf" or char in _VARIATION_SELECTORS
        self[code] = kept = None if drop else char
        return kept


class _Words(dict[int, str]):
    """For `str.translate`: letters, marks, digits and symbols stay, "&" is "and", everything else parts words."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = kept = " " if unicodedata.category(char)[0] in "PZC" else char
        return kept


_INVISIBLE = _Invisible()
_WORDS = _Words({ord("&"): " and "})


def _folded(surface: str) -> str:
    """Compatibility-normalised and case-folded until nothing changes: folding can undo what normalising did."""
    folded = normal_form("NFKC", surface.translate(_INVISIBLE)).casefold()
    while (again := normal_form("NFKC", folded).casefold()) != folded:
        folded = again
    return folded.strip()


@cached_if_short(65536)
def canonical_key(surface: str) -> str:
    """Return the key under which surface forms of one entity meet. It is its own key, so comparing keys is enough.

    Unicode NFKC, case folding, no invisible characters, no possessive, "&" as "and", no punctuation, one space between
    words, no leading article. Never empty for a surface with a visible character: where nothing would be left, the
    folded surface itself is the key.

    >>> canonical_key("The  Beatles"), canonical_key("J.R.R. Tolkien’s"), canonical_key("Simon & Garfunkel")
    ('beatles', 'j r r tolkien', 'simon and garfunkel')
    """
    folded = _folded(surface)
    words = _POSSESSIVE.sub("", folded).translate(_WORDS).split()
    first = 0
    while first < len(words) - 1 and words[first] in _ARTICLES:
        first += 1
    return " ".join(words[first:]) or folded
