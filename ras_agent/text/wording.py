"""Which words and figures of a phrase does a text have, in whatever writing?

A word is compared by its stem, a figure by what it is worth, a name also by its initials. In languages whose inflection
is not known here, words that begin alike are one. Of a word in a script that the text is not written in nothing can
be told.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ras_agent.text.canonical import canonical_key
from ras_agent.text.languages import foreign_language
from ras_agent.text.names import name_spans
from ras_agent.text.short_cache import cached_if_short
from ras_agent.text.values import Date, Figure, Value, figures_in, value_of
from ras_agent.text.words import FUNCTION_WORDS, HONORIFICS, fold, stem

# scripts that put no space between words: Thai to Khmer, kana, Chinese characters
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_LONGEST_NAME = 8  # characters of a name in such a script; what is longer is a clause, said in one of many ways
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_ACRONYM = re.compile(r"\b[A-Z]{2,6}\b|\b(?:[A-Z]\.){2,6}")
_GROUPED = re.compile(r"\d{1,3}(?:[ .,'’]\d{3})+")
_ARABIC_PREFIX = re.compile(r"^[\u0648\u0641\u0628\u0643\u0644]?(?:\u0627\u0644|\u0644\u0644)(?=\w{2})")
_LEAST_ALIKE, _SHARE_ALIKE = 3, 0.6  # letters with which words begin alike, and their share of the longer word


class Part(NamedTuple):
    """A content word or a figure of a phrase."""

    text: str
    """the word folded, the figure as the phrase writes it"""
    is_figure: bool
    is_held: bool | None
    """whether the other text has it; None where nothing can be told"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a text has of a phrase, part by part."""

    parts: tuple[Part, ...]

    @property
    def held(self) -> tuple[str, ...]:
        """Return the words and figures that the text has."""
        return tuple(part.text for part in self.parts if part.is_held)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Return the words and figures that it does not have."""
        return tuple(part.text for part in self.parts if part.is_held is False)

    @property
    def unclear(self) -> tuple[str, ...]:
        """Return the words of which nothing can be told."""
        return tuple(part.text for part in self.parts if part.is_held is None)


@dataclass(frozen=True, slots=True)
class _Worth:
    """What a figure is worth: `order` as in `Figure`, its digits where they are in groups, its date if it is one."""

    order: float
    digits: str
    value: Value | None


class Wording:
    """The words and figures of a text, taken apart once, with which phrases are compared.

    >>> text = Wording("The bridge opened on 3 March 1876 for 1,200 people.")
    >>> text.compare("March 3, 1876").lacking, text.compare("1250 persons").lacking
    ((), ('1250', 'persons'))
    """

    def __init__(self, text: str) -> None:
        self._text = _plain(text)

    def compare(self, phrase: str) -> Comparison:
        """Return which content words and figures of a phrase the text has."""
        plain = _plain(phrase)
        figures = telling_figures(plain)
        parts: list[Part] = []
        for figure in figures:
            surface = plain[figure.start : figure.end]
            is_held = self._has_figure(_worth(figure, surface))
            parts.append(Part(surface, True, is_held))
        initialled = self._initialled(plain)
        for word in content_of(_without(plain, figures)):
            has_it = word in initialled or self._has_word(word)
            parts.append(Part(word, False, has_it))
        if not parts and plain.strip():  # "The Who" is made of small words alone, and "WHO" looks like one
            is_held = bool(initialled) or f" {canonical_key(plain)} " in f" {self._key} "
            parts.append(Part(plain.strip(), False, is_held))
        return Comparison(tuple(parts))

    @cached_property
    def _key(self) -> str:
        return canonical_key(self._text)

    @cached_property
    def _packed(self) -> str:
        return fold(self._key.replace(" ", ""))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(map(fold, self._key.split()))

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(map(stem, self._words))

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """Return the letters that words of another language than English have to begin with to be the text's."""
        if not foreign_language(self._text):
            return frozenset()
        return frozenset(_bare(word) for word in self._words)

    @cached_property
    def _scripts(self) -> frozenset[str]:
        """Return the scripts of a quarter of the text's letters or more."""
        counts = Counter(_script(letter) for letter in self._key if letter.isalpha())
        return frozenset(name for name, count in counts.items() if 4 * count >= counts.total())

    @cached_property
    def _figures(self) -> tuple[_Worth, ...]:
        figures = figures_in(self._text)
        grouped = [_Worth(float("nan"), _digits(match.group()), None) for match in _GROUPED.finditer(self._text)]
        return (*[_worth(one, self._text[one.start : one.end]) for one in figures], *grouped)

    @cached_property
    def _acronyms(self) -> frozenset[str]:
        return frozenset(_letters(match.group()) for match in _ACRONYM.finditer(self._text))

    @cached_property
    def _initials(self) -> frozenset[str]:
        names = (self._text[start:end] for start, end in name_spans(self._text))
        return frozenset(map(initials, names)) - {""}

    def _has_figure(self, sought: _Worth) -> bool:
        return any(_states(one, sought) for one in self._figures)

    def _has_word(self, word: str) -> bool | None:
        if word in self._words or stem(word) in self._stems:
            return True
        if _UNSPACED.fullmatch(word):
            if word in self._packed:
                return True
            return False if _script(word) in self._scripts and len(word) <= _LONGEST_NAME else None
        bare = _bare(word)
        if any(_begin_alike(bare, other) for other in self._beginnings):
            return True
        return False if _script(word) in self._scripts else None

    def _initialled(self, phrase: str) -> frozenset[str]:
        """Return the words of a phrase whose initials the text has, or that are initials of a name of the text."""
        words: list[str] = []
        for match in _ACRONYM.finditer(phrase):
            if _letters(match.group()) in self._initials:
                words += _words_of(match.group())
        for start, end in name_spans(phrase):
            if initials(phrase[start:end]) in self._acronyms:
                words += _words_of(phrase[start:end])
        return frozenset(words)


def content_of(phrase: str) -> list[str]:
    """Return the folded words of a phrase that say something, in order; no titles of persons and no single letters.

    >>> content_of("Dr. J. R. Smith of the Royal Navy")
    ['smith', 'royal', 'navy']
    """
    words = [word for word in _words_of(phrase) if word not in FUNCTION_WORDS]
    telling = [word for word in words if word not in HONORIFICS and not (len(word) == 1 and word.isascii())]
    return telling or words


def telling_figures(text: str) -> list[Figure]:
    """Return the dates and numbers of a text, without "one" and "once" in letters, which seldom count anything."""
    figures = figures_in(text)
    return [figure for figure in figures if figure.order != 1 or text[figure.start].isdigit()]


def initials(name: str) -> str:
    """Return the initials of a name of two words or more, in capitals; "" for another.

    >>> initials("World Health Organization"), initials("University of the West"), initials("Bath")
    ('WHO', 'UW', '')
    """
    words = [word for word in re.findall(r"[^\W\d_]+", name) if word[0].isupper()]
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _plain(text: str) -> str:
    """Return a text with digits as in ASCII, and spaces around what is in a script without them."""
    if text.isascii():
        return text
    with_digits = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit.group(), "")), text)
    return _UNSPACED.sub(lambda run: f" {run.group()} ", with_digits)


def _without(text: str, figures: Iterable[Figure]) -> str:
    """Return a text without its figures."""
    letters = list(text)
    for figure in figures:
        letters[figure.start : figure.end] = " " * (figure.end - figure.start)
    return "".join(letters)


def _words_of(text: str) -> list[str]:
    return [fold(word) for word in canonical_key(text).split()]


@cached_if_short(65536)
def _script(word: str) -> str:
    """Return the first word of the Unicode name of a word's first letter: "LATIN", "CYRILLIC", "CJK"."""
    letter = next(filter(str.isalpha, word), "")
    name = unicodedata.name(letter, "") if letter else ""
    return name.partition(" ")[0] or "LATIN"


def _letters(acronym: str) -> str:
    return acronym.replace(".", "")


def _digits(figure: str) -> str:
    return re.sub(r"\D", "", figure)


def _worth(figure: Figure, surface: str) -> _Worth:
    number = _GROUPED.fullmatch(surface) or surface.isdigit()
    return _Worth(figure.order, _digits(surface) if number else "", value_of(surface))


def _states(stated: _Worth, sought: _Worth) -> bool:
    """Return whether a stated figure is the sought one, or a date inside it: "3 March 1876" states 1876."""
    if stated.order == sought.order or (stated.digits and stated.digits == sought.digits):
        return True
    first, second = stated.value, sought.value
    if not (isinstance(first, Date) and isinstance(second, Date)):
        return False
    within = second.first_year <= first.first_year and first.last_year <= second.last_year
    return within and second.month in (0, first.month) and second.day in (0, first.day)


def _bare(word: str) -> str:
    """Return a word without the Arabic article and what is joined to it."""
    return _ARABIC_PREFIX.sub("", word)


def _begin_alike(first: str, second: str) -> bool:
    """Return whether two words begin alike; in other scripts than ours one may be the other with an ending."""
    if not first.isascii() and (first.startswith(second) or second.startswith(first)):
        return True
    shorter = min(len(first), len(second))
    alike = 0
    while alike < shorter and first[alike] == second[alike]:
        alike += 1
    return alike >= max(_LEAST_ALIKE, _SHARE_ALIKE * max(len(first), len(second)))
