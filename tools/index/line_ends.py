"""Joins words that are divided at the end of a line, as on the pages of a PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise

from ras_agent.text.words import word_set

_LETTER = r"[^\W\d_]"
_SOFT = "\u00ad"
_DIVIDED = re.compile(
    rf"(?P<before>(?<!{_LETTER}){_LETTER}++)(?P<hyphen>[-\u2010{_SOFT}])[ \t]*+\r?\n[ \t]*+(?P<after>{_LETTER}++)"
)
# marks of places where a word may be divided; in scripts without spaces, U+200B separates words and is kept
_BREAKS = re.compile(
    "[\u00ad\u2060\ufeff]|(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b"
)
_WORD = re.compile(rf"{_LETTER}++")
_COMPOUND = re.compile(rf"(?<!{_LETTER}){_LETTER}++-{_LETTER}++")
_ENDS_DIVIDED = re.compile(
    rf"(?P<before>(?<!{_LETTER}){_LETTER}++)(?P<hyphen>[-\u2010{_SOFT}])[ \t]*+\Z"
)
_BEGINS = re.compile(rf"[ \t]*+(?P<after>{_LETTER}++)(?P<rest>\S*+)[ \t]*+")
# "Haupt- und Nebenfach", "pre- and postwar": the hyphen belongs to the word
_AND = word_set("and or to und oder bis et ou y o e en of")
# parts that form one word with the part after them, or with the part before
_PREFIXES = word_set(
    "after anti bio counter down electro extra fore hyper infra inter intra micro mid mini mis multi non out over para "
    "photo poly post pre pro pseudo re semi sub super tele thermo trans ultra un under up"
)
_SUFFIXES = word_set(
    "able age ally hood land less like man men ness ship side some ton town ward wards wise woman women"
)
_WITHIN = word_set("in of the to at a de la")
"""Words in the middle of compounds, such as editor-in-chief."""
_SHORTEST = 3  # the minimum number of letters in a part of a compound
_COMMON = 16_000  # how many of the most frequent English words count as common
_EDGE = 2  # how many lines at the top and the foot of a page may be repeated on others
_DIGITS = re.compile(r"\d++")


def without_breaks(text: str) -> str:
    """Return a text without the characters that only mark where a word may or may not be divided.

    >>> without_breaks("Gross\u00adtal\u200bsperre")
    'Grosstalsperre'
    """
    return _BREAKS.sub("", text)


def in_one_line(text: str) -> str:
    """Return a text without line breaks, and without the characters that only mark where a word may be divided."""
    words = without_breaks(text).split()
    return " ".join(words)


def joined_words(pages: Sequence[str]) -> list[str]:
    r"""Return the pages, with words joined that a hyphen divides at the end of a line or of a page.

    The hyphen is kept if some page has the word with it, before a capital letter, and between two words that
    together are not a word. Lines with which several pages begin or end do not count as their text, so words are
    joined across them.

    >>> joined_words(["the town of Mitten-\nau, a well-\nknown place"])
    ['the town of Mittenau, a well-known place']
    """
    words = _WordsOf(pages)

    def joined(match: re.Match[str]) -> str:
        whole = words.whole(match)
        return match.group() if whole is None else whole

    within = [_DIVIDED.sub(joined, page) for page in pages]
    return _joined_over_pages(within, words)


class _WordsOf:
    """Holds the words of a document, which decide how divided words are joined."""

    def __init__(self, pages: Sequence[str]) -> None:
        self._pages = pages

    @cached_property
    def _compounds(self) -> set[str]:
        return self._all_of(_COMPOUND)

    @cached_property
    def _words(self) -> set[str]:
        return self._all_of(_WORD)

    def _all_of(self, pattern: re.Pattern[str]) -> set[str]:
        found: set[str] = set()
        for page in self._pages:
            words = pattern.findall(page)
            found.update(map(str.casefold, words))
        return found

    def whole(self, divided: re.Match[str], follows: str = "") -> str | None:
        """Return the word whose two parts a match holds, with its hyphen if it has one, or None if they are two words.

        Args:
            follows: the second part, if the match holds only the first.
        """
        before = divided["before"]
        after = follows or divided["after"]
        if divided["hyphen"] == _SOFT:
            return before + after
        start = divided.start()
        end = divided.end()
        is_in_compound = divided.string[start - 1 : start] == "-"  # mother-in-law
        if after in _WITHIN and not follows:
            is_in_compound |= divided.string[end : end + 1] == "-"
        if not after[0].islower() or (after in _AND and not is_in_compound):
            return None
        if is_in_compound or self._has_hyphen(before.casefold(), after.casefold()):
            return f"{before}-{after}"
        return before + after

    def _has_hyphen(self, before: str, after: str) -> bool:
        """Return whether two parts are a compound: written so elsewhere, or two words that do not form one word
        together."""
        if f"{before}-{after}" in self._compounds:
            return True
        joined = before + after
        if joined in self._words or joined in _english():
            return False
        if before in _PREFIXES or after in _SUFFIXES:
            return False
        if min(len(before), len(after)) < _SHORTEST:
            return False
        ranks = [_english().get(part, _COMMON) for part in (before, after)]
        return max(ranks) < _COMMON


@cache
def _english() -> dict[str, int]:
    """Return the English words in the vocabulary of the packaged reader, with their ranks: the most frequent is 0."""
    text = (files("ras_agent.data") / "reader_vocab.txt").read_text(encoding="utf-8")
    return {word: rank for rank, word in enumerate(text.split())}


def _joined_over_pages(pages: list[str], words: _WordsOf) -> list[str]:
    """Return the pages; a word that begins on one page and ends on the next is joined."""
    lines = [page.split("\n") for page in pages]
    repeated = _lines_of_several(lines)
    for page, following in pairwise(lines):
        _join_over(page, following, repeated, words)
    return ["\n".join(page) for page in lines]


def _join_over(
    page: list[str], following: list[str], repeated: set[str], words: _WordsOf
) -> None:
    """Put the whole of a word that two pages divide on the first of them."""
    last = _text_line(page, repeated, from_end=True)
    first = _text_line(following, repeated, from_end=False)
    if last is None or first is None:
        return
    divided = _ENDS_DIVIDED.search(page[last])
    begun = _BEGINS.match(following[first])
    if divided is None or begun is None:
        return
    whole = words.whole(divided, begun["after"])
    if whole is None:
        return
    kept = page[last][: divided.start()]
    page[last] = f"{kept}{whole}{begun['rest']}"
    following[first] = following[first][begun.end() :]


def _lines_of_several(pages: Sequence[Sequence[str]]) -> set[str]:
    """Return the lines that several pages begin or end with, ignoring numbers in them."""
    counts = Counter[str]()
    for page in pages:
        edges = [*page[:_EDGE], *page[-_EDGE:]]
        counts.update(set(map(_without_numbers, edges)))
    return {line for line, count in counts.items() if count > 1}


def _without_numbers(line: str) -> str:
    return _DIGITS.sub("", line).strip()


def _text_line(
    page: Sequence[str], repeated: set[str], *, from_end: bool
) -> int | None:
    """Return the number of a page's first or last line that is not repeated on other pages, or None."""
    numbers = list(range(len(page)))
    if from_end:
        numbers.reverse()
    for place, number in enumerate(numbers):
        plain = _without_numbers(page[number])
        is_edge = place < _EDGE and plain in repeated
        if plain and not is_edge:
            return number
    return None
