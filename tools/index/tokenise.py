"""Splits text into index terms, for passages and queries alike, in any script."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any, Self

from ras_agent.text.languages import ENGLISH, WITHOUT_STEMS
from ras_agent.text.normal_form import normal_form
from ras_agent.text.words import word_set

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_LATIN_WORD = re.compile(r"[^\W_]+")
_BEYOND_LATIN = re.compile("[\u0300-\u1fff\u2c00-\U0010ffff]")
# Latin and Greek letters lose their accents
_BEYOND_GREEK = re.compile("[\u0400-\u1dff\u2c00-\U0010ffff]")
# Separators of thousands, as in 1,000 and 1'000. A point separates thousands in most languages, and decimals in English.
# The patterns begin with rare characters, since every text is searched for them.
# In India, the digits before the last three are grouped in pairs: 12,34,567.
_OF_THOUSANDS = r"(?=(?:\d\d,){0,4}\d{3}(?!\d))(?<=\d.)(?<!\d{4}.)"
_THOUSANDS = re.compile("[,'’，٬\u00a0\u2009\u202f]" + _OF_THOUSANDS)
_THOUSANDS_OR_POINT = re.compile("[.,'’，٬\u00a0\u2009\u202f]" + _OF_THOUSANDS)
# with a space, which may also separate two numbers: 10 000
_BLANK_OF_THOUSANDS = re.compile(r" (?=\d{3}(?!\d))(?<=\d )")
_SPACED_THOUSANDS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})+(?!\w|[.,]\d)")
_POINT_LETTER_POINT = re.compile(r"\. ?[^\W\d_]\.")
# U.S., U.S.A, Ph.D.; J. R. R.
_POINTED_LETTERS = re.compile(
    r"(?<![\w.])(?:(?:[^\W\d_]{1,2}\.){2,}(?:[^\W\d_](?!\w))?|[^\W\d_]\.(?: [^\W\d_]\.)+)"
)
# E-mail, AT&T, X-1, 978-3-16-148410-0; O'Brien
_INNER_MARK = re.compile("[-&\u2010](?=[^\\W_])(?<=[^\\W_].)")
_LAST_LETTERS = re.compile("(?<![\\w\u2010-])[^\\W_]{1,30}\\Z")
_NEXT_LETTERS = re.compile(
    "[^\\W_]{1,30}(?:[-\u2010][^\\W_]{1,30}){0,7}(?![\\w\u2010-])"
)
_MARK = re.compile("[-&\u2010]")
_NOT_OF_A_WORD = re.compile("[ .'’]")
_APOSTROPHE_NAME = re.compile("[A-Z](?<![\\w'’].)['’][A-Z][a-z]{2,30}(?!\\w)")
_DIGIT = re.compile(r"\d")
_HUMP = re.compile(r"[A-Z](?<=[a-z].)")
_WITH_HUMPS = re.compile(r"(?<!\w)[A-Za-z]{4,60}(?!\w)")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LONGEST_PART = 30  # letters of a part of a compound
_BEGINNINGS = word_set("mc mac de di du la le van von fitz")
"""Words that begin a name and are not separate words to a reader, as in MacDonald."""
_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")
# 2nd, 1930s
_ORDINAL = re.compile(r"\d+(?:s|st|nd|rd|th)")
_MOST_PARTS = 4
"""The maximum number of groups of letters and digits in a word whose single characters are indexed as parts.

A word with more changes is probably a number in another base.
"""
# so that 10⁶ and 5½ do not become 106 and 51/2
_RAISED = re.compile("[²³¹⁰⁴-⁹¼-¾⅐-⅞](?<=\\d.)")
# Scripts written without spaces between words (and Hangul, where particles are attached to nouns): there is no
# dictionary to split them, so a run of them is indexed as overlapping pairs of characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_FIRST_MARK = 0x300
_LAST_MARK = 0x1E94A
# soft hyphens, joiners and direction marks, which are invisible inside words
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
    0x5F3,
    0x5F4,
    0x640,
    *range(0x64B, 0x653),
    0x670,
)
_LETTER_VARIANTS: dict[int, int | None] = str.maketrans(
    "ёѐѝأإآٱؤئىةکی", "ееи" + "ا" * 4 + "وييهكي", "".join(map(chr, _POINTS))
)
# Hindi's nasals and borrowed sounds
_LETTER_VARIANTS |= {0x93C: None, 0x901: 0x902}
_HINDI_NASAL = re.compile("न्(?=[क-ह])")
_ANUSVARA = "\u0902"
_QUOTE_IN_HEBREW = re.compile("(?<=[א-ת])[\"'](?=[א-ת])")
_LATIN_VARIANTS = str.maketrans("łøđðħŧıəɓɗƙŋɛɔ", "loddhtiabdkneo") | {
    ord("þ"): "th",
    ord("æ"): "ae",
    ord("œ"): "oe",
}
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_TURKISH = "turkish"
_TURKISH_CASE = str.maketrans("Iİ", "ıi")
# the last parts of "Bell's", "we'll", "they're", "we've"
_TAILS = ("s", "ll", "re", "ve")
_CACHE_SIZE = 1 << 20
_LONGEST_CACHED = 100  # characters of a word


@cache
def _word() -> re.Pattern[str]:
    r"""Return a pattern of a run of unspaced script, or of a word of another script: letters and digits with their
    marks.

    `\w` leaves out the vowel signs of the Indic scripts, so marks are listed.
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


@cache
def _variants() -> dict[int, int | None]:
    """Return a table that replaces letters and digits by their usual variants, or by None if they are left out."""
    variants = dict(_LETTER_VARIANTS)
    for char in map(chr, range(_FIRST_MARK, _LAST_MARK + 1)):
        if char.isdecimal():
            variants[ord(char)] = ord(str(unicodedata.decimal(char)))
    return variants


def _of_one_form(text: str) -> str:
    """Return a text in which look-alike characters are replaced by the usual ones and invisible ones are removed."""
    if text.isascii():
        return text
    seen = _UNSEEN.sub("", text)
    apart = _RAISED.sub(r" \g<0>", seen)
    return normal_form("NFKC", apart)


def _words(text: str) -> list[str]:
    """Return case-folded words; a run of unspaced script is split into pairs of characters, a single character is
    kept."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = text.casefold()
    # a dash or an accent in Latin text: no variants, and no need for the slower pattern
    if not _BEYOND_LATIN.search(text):
        return _LATIN_WORD.findall(text)
    text = _QUOTE_IN_HEBREW.sub("", text.translate(_variants()))
    text = _HINDI_NASAL.sub(_ANUSVARA, text)
    found: list[str] = []
    for word in _word().findall(text):
        if len(word) > 2 and _unspaced().match(word):
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.append(word)
    return found


def _without_accents(word: str) -> str:
    """Return a word in Latin or Greek letters without accents.

    >>> _without_accents("łódź")
    'lodz'
    """
    if word.isascii() or _BEYOND_GREEK.search(word):
        return word
    plain = normal_form("NFKD", word.translate(_LATIN_VARIANTS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _compounds(text: str) -> list[str]:
    """Return compounds without the marks that join them, so that "email" finds "e-mail" and "X1" finds "X-1".

    Compounds of letters have two parts; those of digits only have three or more, such as a telephone number.

    >>> _compounds("Send an e-mail to the editor-in-chief of AT&T, 555-123-4567, on A-4-B of 2010-11.")
    ['email', 'att', '5551234567', 'a4b']
    """
    joined = []
    for mark in _INNER_MARK.finditer(text):
        start, end = mark.span()
        first = max(0, start - _LONGEST_PART - 1)
        before = _LAST_LETTERS.search(text, first, start)
        after = _NEXT_LETTERS.match(text, end)
        if not before or not after:
            continue
        parts = [before[0], *_MARK.split(after[0])]
        whole = "".join(parts)
        if whole.isdigit():
            is_one = len(parts) > 2
        else:
            is_one = len(parts) == 2 or bool(_DIGIT.search(whole))
        if is_one:
            joined.append(whole.casefold())
    return joined


def _parts_of_humps(text: str) -> list[str]:
    """Return the words that begin with a capital inside other words, so that "home page" finds "HomePageContainer".

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
    """Return the letters and the digits of a word that has both, so that "PPR-9087" finds "ppr9087"."""
    if not _DIGIT.search(word) or _ORDINAL.fullmatch(word):
        return []
    parts = _LETTERS_OR_DIGITS.findall(word)
    if len(parts) > _MOST_PARTS:
        return [part for part in parts if len(part) > 1]
    return [part for part in parts if part != word]


class Tokeniser:
    """Splits text into terms: Unicode words, without stop words, stemmed. Safe for use by several threads.

    Different spellings of the same thing share a term: "U.S." also has "us", "PPR9087" has "ppr" and "9087",
    "1,000" is "1000". In English, a word with accents is indexed without them, since accents occur in foreign
    names; in other languages, where accents distinguish words, it is indexed both with and without them.
    """

    def __init__(
        self,
        language: str | None = "english",
        *,
        stop_words: Iterable[str] | None = None,
        stem: bool = True,
    ) -> None:
        """Choose the language. Raises ValueError for a language without a Snowball stemmer.

        Args:
            language: a Snowball stemmer ("english", "german", "russian", ...), which comes with stop words. None,
                "none" and the languages without a stemmer, such as "chinese", leave every word unchanged.
            stop_words: replace those of the language.
            stem: False to keep word forms.
        """
        self.language = language
        self.stem = stem
        self.stop_words = tuple(
            _stop_words(language) if stop_words is None else stop_words
        )
        self._stemmer = _stemmer(language) if language and stem else None
        self._lock = Lock()  # a Snowball stemmer keeps state between calls
        self._terms: dict[str, tuple[str, ...]] = dict.fromkeys(self.stop_words, ())

    def terms(self, text: str) -> list[str]:
        """Return the terms of `text` in order, with repeats; terms of other spellings are at the end."""
        known = self._terms
        found: list[str] = []
        text = _of_one_form(self._whole_numbers(text))
        words = _words(self._with_case(text))
        words += self._whole_names(text)
        words += _parts_of_humps(text)
        for word in words:
            terms = known.get(word)
            if terms is None:
                terms = self._terms_of(word)
            found += terms
        for word in _compounds(text):
            found += self._stems_of(word)
        return found

    def _with_case(self, text: str) -> str:
        if self.language == _TURKISH:
            return text.translate(_TURKISH_CASE)
        return text

    def _whole_numbers(self, text: str) -> str:
        """Return the text with each number of thousands as one word, without separators."""
        if self.language == ENGLISH:
            return _THOUSANDS.sub("", text)
        return _THOUSANDS_OR_POINT.sub("", text)

    def _whole_names(self, text: str) -> list[str]:
        """Return names without the points and apostrophes in them, and numbers without spaces in them."""
        found: list[str] = []
        if _POINT_LETTER_POINT.search(text):
            found += _POINTED_LETTERS.findall(text)
        if _BLANK_OF_THOUSANDS.search(text):
            found += _SPACED_THOUSANDS.findall(text)
        if self.language == ENGLISH and ("'" in text or "’" in text):
            found += _APOSTROPHE_NAME.findall(text)
        return [_NOT_OF_A_WORD.sub("", name).casefold() for name in found]

    def _terms_of(self, word: str) -> tuple[str, ...]:
        terms = self._stems_of(word)
        if not word.isalpha():
            for part in _parts(word):
                terms += self._known_terms(part)
        found = tuple(terms)
        self._remember(word, found)
        return found

    def _stems_of(self, word: str) -> list[str]:
        """Return the stem of a word, and the stems of its other spellings."""
        if word.isascii():
            return [self._stemmed(word)]
        writings = [_without_accents(word)]
        if self.language != ENGLISH:
            writings.insert(0, word)
        spelled_out = word.translate(_SPELLED_OUT)
        writings.append(_without_accents(spelled_out))
        stems = map(self._stemmed, writings)
        return list(dict.fromkeys(stems))

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
        """Return the settings as plain JSON values."""
        return {
            "language": self.language,
            "stop_words": list(self.stop_words),
            "stem": self.stem,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the tokeniser with the settings that `to_dict` returned."""
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
def _stop_lists() -> dict[str, str]:
    """Return the packaged stop words by language, each list as words separated by spaces."""
    file = files("ras_agent.data") / "stop_words.json"
    lists: dict[str, str] = json.loads(file.read_text("utf-8"))["lists"]
    return lists


def _stop_words(language: str | None) -> tuple[str, ...]:
    """Return the common function words of a language; () for a language without a list."""
    if language is None or language in WITHOUT_STEMS:
        return ()
    listed = _stop_lists().get(language, "").split()
    if language == ENGLISH:
        return (*listed, *_TAILS)
    # in the form in which words are compared: "daß" becomes "dass"
    return tuple(dict.fromkeys(part for word in listed for part in _words(word)))
