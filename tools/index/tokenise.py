"""Splits text into index terms, for passages and for queries alike, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Self

from ras_agent.text.languages import ENGLISH, WITHOUT_STEMS
from ras_agent.text.normal_form import normal_form
from ras_agent.text.words import word_set

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_LATIN_WORD = re.compile(r"[^\W_]+")
_BEYOND_LATIN = re.compile("[\u0300-\u1fff\u2c00-\U0010ffff]")
# Latin and Greek letters lose their accents
_BEYOND_GREEK = re.compile("[\u0400-\u1dff\u2c00-\U0010ffff]")
# Separators of thousands, as in 1,000 and 1'000; a point is one in most languages, and separates decimals in English.
# The patterns begin with rare characters, since every text is searched for them.
_OF_THOUSANDS = r"(?=\d{3}(?!\d))(?<=\d.)(?<!\d{4}.)"
_THOUSANDS = re.compile("[,'’\u00a0\u2009\u202f]" + _OF_THOUSANDS)
_THOUSANDS_OR_POINT = re.compile("[.,'’\u00a0\u2009\u202f]" + _OF_THOUSANDS)
_POINT_LETTER_POINT = re.compile(r"\.[^\W\d_]\.")
# U.S., U.S.A
_POINTED_LETTERS = re.compile(r"(?<![\w.])(?:[^\W\d_]\.){2,}(?:[^\W\d_](?!\w))?")
# E-mail; HomePageContainer
_INNER_HYPHEN = re.compile(r"[-\u2010\u2011](?=[^\W\d_])(?<=[^\W\d_].)")
_LAST_LETTERS = re.compile(r"(?<![\w-])[^\W\d_]{1,30}\Z")
_NEXT_LETTERS = re.compile(r"[^\W\d_]{1,30}(?![\w-])")
_HUMP = re.compile(r"[A-Z](?<=[a-z].)")
_WITH_HUMPS = re.compile(r"(?<!\w)[A-Za-z]{4,60}(?!\w)")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LONGEST_PART = 30  # letters of a part of a compound
_BEGINNINGS = word_set("mc mac de di du la le van von fitz")
"""Words that begin a name and are no part of it to a reader, as in MacDonald."""
_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]{2,}|\d{2,}")
# Scripts written without spaces between words (and Hangul, where particles cling to their nouns): no dictionary is
# at hand, so a run of them is indexed as overlapping pairs of characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_FIRST_MARK = 0x300
_LAST_MARK = 0x1E94A
# soft hyphens, joiners and marks of direction stand inside words and are not seen
_UNSEEN = re.compile("[\u00ad\u034f\u061c\u200b-\u200f\u2060-\u2064\ufeff]")
# letters that are written in several ways: Cyrillic yo and stressed vowels; Arabic alefs, carriers of hamza, final yeh
# and teh, Persian kaf and yeh; points of Hebrew, vowel signs and stretching of Arabic are left out
_POINTS = (
    0x300,
    0x301,
    *range(0x591, 0x5BE),
    0x5BF,
    0x5C1,
    0x5C2,
    0x5C4,
    0x5C5,
    0x5C7,
    0x640,
    *range(0x64B, 0x653),
    0x670,
)
_LETTER_VARIANTS: dict[int, int | None] = str.maketrans(
    "ёѐѝأإآٱؤئىةکی", "ееи" + "ا" * 4 + "وييهكي", "".join(map(chr, _POINTS))
)
_FIRST_DIGITS = (
    0x660,
    0x6F0,
    0x966,
    0x9E6,
    0xA66,
    0xAE6,
    0xB66,
    0xBE6,
    0xC66,
    0xCE6,
    0xD66,
    0xE50,
    0xED0,
    0xF20,
    0x1040,
)
_DIGIT_VARIANTS = {
    first + digit: ord("0") + digit for first in _FIRST_DIGITS for digit in range(10)
}
_VARIANTS: dict[int, int | None] = {**_LETTER_VARIANTS, **_DIGIT_VARIANTS}
_LATIN_VARIANTS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
# the last parts of "Bell's", "we'll", "they're", "we've"
_TAILS = ("s", "ll", "re", "ve")
_CACHE_SIZE = 1 << 20
_LONGEST_CACHED = 100  # characters of a word


@cache
def _word() -> re.Pattern[str]:
    """Match a run of unspaced script, or a word of another one: letters and digits with their marks.

    `\\w` leaves out the vowel signs of the Indic scripts, so marks are listed.
    """
    marks = "".join(
        char
        for char in map(chr, range(_FIRST_MARK, _LAST_MARK + 1))
        if unicodedata.category(char)[0] == "M"
    )
    return re.compile(
        f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\\W_])(?:(?![{_UNSPACED}])(?:[^\\W_]|[{marks}]))*"
    )


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def _words(text: str) -> list[str]:
    """Return case-folded words; runs of unspaced script as pairs of characters, a run of one as itself."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    seen = _UNSEEN.sub("", text)
    text = normal_form("NFKC", seen).casefold()
    # a dash or an accent in Latin text: no variants, and no need for the slower pattern
    if not _BEYOND_LATIN.search(text):
        return _LATIN_WORD.findall(text)
    text = text.translate(_VARIANTS)
    found: list[str] = []
    for word in _word().findall(text):
        if len(word) > 2 and _unspaced().match(word):
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.append(word)
    return found


def _without_accents(word: str) -> str:
    """Return a word in Latin or Greek letters without their accents.

    >>> _without_accents("łódź")
    'lodz'
    """
    if word.isascii() or _BEYOND_GREEK.search(word):
        return word
    plain = normal_form("NFKD", word.translate(_LATIN_VARIANTS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _compounds(text: str) -> list[str]:
    """Return the words of two that a hyphen joins without it, so that "e-mail" is found by "email".

    >>> _compounds("Send an e-mail to the editor-in-chief.")
    ['email']
    """
    joined = []
    for hyphen in _INNER_HYPHEN.finditer(text):
        start, end = hyphen.span()
        first = max(0, start - _LONGEST_PART - 1)
        before = _LAST_LETTERS.search(text, first, start)
        after = _NEXT_LETTERS.match(text, end)
        if before and after:
            whole = before[0] + after[0]
            joined.append(whole.casefold())
    return joined


def _parts_of_humps(text: str) -> list[str]:
    """Return the words that capitals begin within others, so that "HomePageContainer" is found by "home page".

    >>> _parts_of_humps("The HomePageContainer of Ann MacDonald")
    ['home', 'page', 'container']
    """
    parts: list[str] = []
    if not _HUMP.search(text):
        return parts
    for word in _WITH_HUMPS.findall(text):
        if not _HUMP.search(word):
            continue
        found = _HUMPS.findall(word)
        begins_name = len(found) == 2 and (
            len(found[0]) < 3 or found[0].lower() in _BEGINNINGS
        )
        if not begins_name:
            parts += map(str.lower, found)
    return parts


def _parts(word: str) -> list[str]:
    """Return the letters and the digits of a word that holds both, so that "ppr9087" is found by "PPR-9087"."""
    if word.isalpha() or word.isdigit():
        return []
    parts = _LETTERS_OR_DIGITS.findall(word)
    return [part for part in parts if part != word]


class Tokeniser:
    """Splits text into terms: Unicode words, without stop words, stemmed.

    Writings of one thing share a term: "U.S." has "us" too, "PPR9087" has "ppr" and "9087", "1,000" is "1000". In
    English a word with accents is indexed without them, since they stand in foreign names; in other languages, where
    they tell words apart, as it is and without them.

    `language` names a Snowball stemmer ("english", "german", "russian", ...) and the stop words that come with it;
    None, "none" and the languages without a stemmer, such as "chinese", leave every word as it is. `stop_words`
    replaces its list, `stem=False` leaves word forms.
    May be used from several threads at once.
    """

    def __init__(
        self,
        language: str | None = "english",
        *,
        stop_words: Iterable[str] | None = None,
        stem: bool = True,
    ) -> None:
        """Raises ValueError for a language without a Snowball stemmer."""
        self.language = language
        self.stem = stem
        self.stop_words = tuple(
            _stop_words(language) if stop_words is None else stop_words
        )
        self._stemmer = _stemmer(language) if language and stem else None
        self._lock = Lock()  # a Snowball stemmer keeps state between calls
        self._terms: dict[str, tuple[str, ...]] = dict.fromkeys(self.stop_words, ())

    def terms(self, text: str) -> list[str]:
        """Return the terms of `text` in order, repeated ones repeated; those of other writings stand at the end."""
        known = self._terms
        found: list[str] = []
        words = _words(self._whole_numbers(text))
        words += self._whole_names(text)
        words += _compounds(text)
        words += _parts_of_humps(text)
        for word in words:
            terms = known.get(word)
            if terms is None:
                terms = self._terms_of(word)
            found += terms
        return found

    def _whole_numbers(self, text: str) -> str:
        """Return the text with numbers of thousands as one word."""
        if self.language == ENGLISH:
            return _THOUSANDS.sub("", text)
        return _THOUSANDS_OR_POINT.sub("", text)

    def _whole_names(self, text: str) -> list[str]:
        """Return the names that are written with a point behind each letter, without the points."""
        if not _POINT_LETTER_POINT.search(text):
            return []
        names = []
        for found in _POINTED_LETTERS.finditer(text):
            name = found[0].replace(".", "")
            names.append(name.casefold())
        return names

    def _terms_of(self, word: str) -> tuple[str, ...]:
        stem = self._stemmed(word)
        if word.isascii() and word.isalpha():
            only = (stem,)
            self._remember(word, only)
            return only
        plain = _without_accents(stem)
        terms = [plain]
        if plain != stem and self.language != ENGLISH:
            terms.insert(0, stem)
        for part in _parts(word):
            terms += self._known_terms(part)
        found = tuple(terms)
        self._remember(word, found)
        return found

    def _remember(self, word: str, terms: tuple[str, ...]) -> None:
        is_short = len(word) <= _LONGEST_CACHED
        if is_short and len(self._terms) < _CACHE_SIZE:
            self._terms[word] = terms

    def _known_terms(self, word: str) -> tuple[str, ...]:
        known = self._terms.get(word)
        if known is None:
            return self._terms_of(word)
        return known

    def _stemmed(self, word: str) -> str:
        if self._stemmer is None:
            return word
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        return stem

    def to_dict(self) -> dict[str, Any]:
        return {
            "language": self.language,
            "stop_words": list(self.stop_words),
            "stem": self.stem,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(data["language"], stop_words=data["stop_words"], stem=data["stem"])


def _stemmer(language: str) -> Any:
    if language in WITHOUT_STEMS:
        return None
    import Stemmer

    if language not in Stemmer.algorithms():
        raise ValueError(
            f"no stemmer for language {language!r}; known: {', '.join(Stemmer.algorithms())}"
        )
    return Stemmer.Stemmer(language)


@cache
def _lists_of_bm25s() -> ModuleType:
    """Return bm25s's module of stop words, loaded from its file without the package.

    The package itself would import JAX wherever that is installed, which takes most of a graphics processor's memory.
    """
    package = find_spec("bm25s")
    if package is None or not package.origin:
        raise ImportError(
            "bm25s is not installed: install ras-agent again, with what it depends on"
        )
    loader = SourceFileLoader(
        "stopwords", str(Path(package.origin).with_name("stopwords.py"))
    )
    lists = ModuleType(loader.name)
    loader.exec_module(lists)
    return lists


def _stop_words(language: str | None) -> tuple[str, ...]:
    """Return the language's common function words; empty for a language without a list."""
    if language is None or language in WITHOUT_STEMS:
        return ()
    name = "STOPWORDS_EN" if language == "english" else f"STOPWORDS_{language.upper()}"
    listed: Sequence[str] = getattr(_lists_of_bm25s(), name, ())
    if language == ENGLISH:
        return (*listed, *_TAILS)
    # as words are compared: "daß" becomes "dass"
    return tuple(dict.fromkeys(part for word in listed for part in _words(word)))
