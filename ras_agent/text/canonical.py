"""Computes canonical keys, which decide whether two strings name the same entity."""

from __future__ import annotations

import re
import unicodedata

from ras_agent.text.normal_form import normal_form
from ras_agent.text.short_cache import cached_if_short

_ARTICLES = frozenset({"the", "a", "an"})
_POSSESSIVE = re.compile(r"['’]s\b")
_VARIATION_SELECTORS = frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


class _Invisible(dict[int, str | None]):
    """Maps soft hyphens, joiners and other format characters to nothing, for `str.translate`. The table grows
    with use.
    """

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        drop = unicodedata.category(char) == "Cf" or char in _VARIATION_SELECTORS
        self[code] = value = None if drop else char
        return value


class _Words(dict[int, str]):
    """Maps each character that is not a letter, mark, digit or symbol to a space, and "&" to "and", for
    `str.translate`.

    The table grows with use.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = value = " " if unicodedata.category(char)[0] in "PZC" else char
        return value


_INVISIBLE = _Invisible()
_WORDS = _Words({ord("&"): " and "})


def _fold(surface: str) -> str:
    """Normalise (NFKC) and fold case repeatedly until nothing changes, because folding can undo normalising."""
    # most names are ASCII: the same result in half the time
    if surface.isascii():
        return surface.lower().strip()
    folded = normal_form("NFKC", surface.translate(_INVISIBLE)).casefold()
    while (again := normal_form("NFKC", folded).casefold()) != folded:
        folded = again
    return folded.strip()


@cached_if_short(65536)
def canonical_key(surface: str) -> str:
    """Return the key that all surface forms of one entity share. The key of a key is the key itself.

    The surface form is normalised to Unicode NFKC and case-folded. Invisible characters, the possessive,
    punctuation and a leading article are removed, "&" becomes "and", words are separated by one space, and
    initials are joined into one word. If nothing would be left of a form with visible characters, its key is
    the folded form.

    >>> canonical_key("The  Beatles"), canonical_key("J. R. R. Tolkien’s"), canonical_key("Simon & Garfunkel")
    ('beatles', 'jrr tolkien', 'simon and garfunkel')
    """
    folded = _fold(surface)
    named = _POSSESSIVE.sub("", folded)
    # a combining mark after a removed possessive combines with the letter before it
    if not named.isascii():
        named = normal_form("NFKC", named)
    words = _initials_joined(named.translate(_WORDS).split())
    first = 0
    while first < len(words) - 1 and words[first] in _ARTICLES:
        first += 1
    return " ".join(words[first:]) or folded


def _initials_joined(words: list[str]) -> list[str]:
    """Return the words with consecutive single letters joined: "u", "s" of "U.S." become "us"."""
    joined: list[str] = []
    after_letter = False
    for word in words:
        # in scripts without capitals, a single character may be a word
        is_letter = len(word) == 1 and word.upper() != word
        if is_letter and after_letter:
            joined[-1] += word
        else:
            joined.append(word)
        after_letter = is_letter
    return joined
