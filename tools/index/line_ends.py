"""Joins words that were divided at the end of a line, as the pages of a PDF have them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ras_agent.text.words import word_set

_LETTER = r"[^\W\d_]"
_SOFT = "\u00ad"
_DIVIDED = re.compile(
    rf"(?P<before>(?<!{_LETTER}){_LETTER}++)(?P<hyphen>[-\u2010{_SOFT}])[ \t]*+\r?\n[ \t]*+(?P<after>{_LETTER}++)"
)
# places where a word may be divided; in scripts without spaces, U+200B stands between words
_BREAKS = re.compile("[\u00ad\u2060\ufeff]|(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b")
_COMPOUND = re.compile(rf"(?<!{_LETTER}){_LETTER}++-{_LETTER}++")
# "Haupt- und Nebenfach", "pre- and postwar": the hyphen is the word's own
_AND = word_set("and or to und oder bis et ou y o e en of")


def without_breaks(text: str) -> str:
    """Return a text without the characters that only say where a word may be divided, or may not.

    >>> without_breaks("Gross\u00adtal\u200bsperre")
    'Grosstalsperre'
    """
    return _BREAKS.sub("", text)


def joined_words(pages: Sequence[str]) -> list[str]:
    """Return the pages with words joined that a hyphen divides at the end of a line.

    The hyphen stays in a word that some page has with it, and before a capital letter. What is divided between two
    pages stays divided.

    >>> joined_words(["the town of Mitten-\\nau, a well-\\nknown place", "as well-known as Leeds"])
    ['the town of Mittenau, a well-known place', 'as well-known as Leeds']
    """
    compounds = {word.casefold() for page in pages for word in _COMPOUND.findall(page)}

    def joined(match: re.Match[str]) -> str:
        before, after = match["before"], match["after"]
        if match["hyphen"] == _SOFT:
            return before + after
        if not after[0].islower() or after in _AND:
            return match.group()
        hyphened = f"{before}-{after}"
        return hyphened if hyphened.casefold() in compounds else before + after

    return [_DIVIDED.sub(joined, page) for page in pages]
