"""Decides whether a text states a fact. Only facts that their passages state are kept.

A text states a fact if it contains its subject and its object. It contains a phrase if it contains each of the
phrase's content words and figures, in any order. Inflection, forms of address, and other spellings of numbers,
dates and units do not matter, but a figure must be equal.

The test depends on the script. English words are compared without their endings. In another alphabet that
separates words and inflects their ends, words are compared by their first letters, and a phrase is missing only
if all of its words are missing. In a script without spaces between words, or with words that change inside,
only equal letters show that a phrase is there, and only a figure can be missing; everything else is unknown. If
fact and text are in different languages or scripts, the result is unknown too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property, lru_cache

from ras_agent.text.canonical import canonical_key
from ras_agent.text.languages import foreign_language
from ras_agent.text.overlap import Sentence, best_sentence, sentences_of
from ras_agent.text.short_cache import LONGEST_CACHED, cached_if_short
from ras_agent.text.terms import Term, plain_letters, sign_words, terms_of
from ras_agent.text.titles import with_title
from ras_agent.text.words import word_set


class Standing(IntEnum):
    """Tells whether a text contains a phrase, or states a fact. A fact gets the greater value of its subject and
    object.
    """

    STANDS = 0
    UNKNOWN = 1
    MISSING = 2


class Writing(Enum):
    """Tells how words of a text are compared with words of a fact, which depends on its language and script."""

    ENGLISH = "by endings"
    LETTERS = "by first letters"
    UNSPACED = "only as they are"


_ALPHABETS = re.compile(
    "[a-z\u00df-\u02af\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u10a0-\u10ff\u1c90-\u1cbf\u1e00-\u1fff]",
    re.IGNORECASE,
)
"""Letters of Latin, Greek, Cyrillic, Armenian and Georgian. Their words are separated by spaces and change at their
ends."""
_ENGLISH_ONLY = word_set(
    "the and to with by from his her its were who which that this she has been their they where when"
)
"""Words that distinguish English from related languages, which also have "is", "was", "in", "of" and "for"."""
_MOSTLY_ENGLISH = word_set("of is was are an")
"""Words of which any two show that a short text is English, because related languages rarely have two of
them."""
_LEAST_ENGLISH = 0.04  # share of all words; capitalised words may be part of an English name and do not count
_ENGLISH_PREDICATE = _ENGLISH_ONLY | word_set("is was are of in on at born")
_LEAST_LETTERS = 4  # letters that a word needs to be compared by its first letters
_SHARE_OF_LETTERS = 0.6
# letters that an English word needs to be found inside another word: "keeper" in "goalkeeper"
_LEAST_INSIDE = 5
# in lower case, so not a name
_FOREIGN_WORD = re.compile(
    r"(?<!\w)[^\W\d_A-Z]*[\u00df-\u02af\u0370-\U0010ffff][^\W\d_]*"
)
# a figure that the text may write as thousands or millions in words of any language
_ROUND = re.compile(r"#\d{2,}000")
_LARGE = re.compile(r"#\d{3}")  # a figure that every language writes in digits
_NATIVE_NUMBERS = re.compile(
    "[〇零一二三四五六七八九十百千萬万]{2}|昭和|平成|令和|大正|明治"
)
_SPACE = re.compile(r"\W+")
_MOST_STANDINGS = 512  # phrases whose standing a text remembers


def writing_of(text: str) -> Writing:
    """Return how words of a text are compared with words of a fact (see `Writing`)."""
    letters = sum(map(str.isalpha, text))
    if text.isascii():
        alphabetic = len(text)
    else:
        alphabetic = len(_ALPHABETS.findall(text))
    if 2 * alphabetic < letters:
        return Writing.UNSPACED
    words = text.split()
    english = sum(word in _ENGLISH_ONLY for word in words)
    has_two = len(_MOSTLY_ENGLISH.intersection(words)) > 1 and not _FOREIGN_WORD.search(
        text
    )
    is_english = (
        english > _LEAST_ENGLISH * len(words) or has_two
    ) and not foreign_language(text)
    if is_english:
        return Writing.ENGLISH
    return Writing.LETTERS


@dataclass(frozen=True)
class Words:
    """Holds the words and figures of a text, to look up phrases in them."""

    text: str
    writing: Writing
    """how the words can be compared"""
    _forms: frozenset[str] = field(init=False, repr=False, compare=False)
    _standings: dict[str, Standing] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """what is known of short phrases: a fact is looked for when it is read, when it is kept, and when it is cited"""

    def __post_init__(self) -> None:
        forms = set(sign_words(self.text))
        for term in terms_of(self.text):
            forms.update(term.forms)
        object.__setattr__(self, "_forms", frozenset(forms))

    def standing(self, phrase: str) -> Standing:
        """Return whether the text contains the content words and figures of a phrase."""
        standing = self._standings.get(phrase)
        if standing is None:
            standing = self._search(phrase)
            if len(self._standings) >= _MOST_STANDINGS:
                self._standings.clear()
            if len(phrase) <= LONGEST_CACHED:
                self._standings[phrase] = standing
        return standing

    def _search(self, phrase: str) -> Standing:
        if self._has_letter_by_letter(phrase):
            return Standing.STANDS
        missing = self.missing(phrase)
        if not missing:
            return Standing.STANDS
        if self.writing is Writing.ENGLISH or any(map(self.is_surely_missing, missing)):
            return Standing.MISSING
        words = [term for term in self.content(phrase) if not term.is_figure]
        has_some = any(term not in missing for term in words)
        if self.writing is Writing.LETTERS and words and not has_some:
            return Standing.MISSING
        return Standing.UNKNOWN

    def missing(self, phrase: str) -> list[Term]:
        """Return the content words and figures of a phrase that are not among the words."""
        terms = self.content(phrase)
        return [term for term in terms if not self._has(term)]

    def has(self, term: Term) -> bool | None:
        """Return whether the text contains a term; None if this cannot be decided, as for a term in another script."""
        if self._has(term):
            return True
        if self.writing is Writing.UNSPACED:
            if term.is_figure and self.is_surely_missing(term):
                return False
            return None
        if term.is_figure or _scripts(term.text) & self._scripts:
            return False
        return None

    def content(self, phrase: str) -> tuple[Term, ...]:
        """Return the terms of a phrase that carry meaning; if none does, as in "The Who", all its terms."""
        if self.writing is Writing.LETTERS:
            return _content_of_letters(phrase)
        return _content(phrase)

    def _has(self, term: Term) -> bool:
        if not self._forms.isdisjoint(term.forms):
            return True
        if term.is_figure:
            return False
        if self.writing is Writing.UNSPACED:
            return term.word in self._letters
        if len(term.word) == 1:
            return term.word in self._initials
        if self.writing is Writing.ENGLISH:
            return len(term.word) >= _LEAST_INSIDE and term.word in self._letters
        if len(term.word) < _LEAST_LETTERS:
            return any(form.startswith(term.word) for form in self._forms)
        most = max(_LEAST_LETTERS, round(_SHARE_OF_LETTERS * len(term.word)))
        return term.word[:most] in self._letters

    def _has_letter_by_letter(self, phrase: str) -> bool:
        key = canonical_key(phrase)
        if not key or any(map(str.isdigit, key)):
            return False
        if f" {key} " in self._key:
            return True
        return self.writing is Writing.UNSPACED and _SPACE.sub("", key) in self._letters

    def is_surely_missing(self, term: Term) -> bool:
        """Tell whether a term that was not found is surely not in the text: a figure, if the text writes its
        figures in digits.
        """
        if not term.is_figure or self._has_native_numbers:
            return False
        for form in term.forms:
            if _LARGE.match(form) and not _ROUND.fullmatch(form):
                return any(map(_LARGE.match, self._forms))
        return False

    @cached_property
    def _scripts(self) -> frozenset[str]:
        return _scripts(self.text)

    @cached_property
    def _key(self) -> str:
        return f" {canonical_key(self.text)} "

    @cached_property
    def _letters(self) -> str:
        letters = plain_letters(self.text)
        return _SPACE.sub("", letters)

    @cached_property
    def _initials(self) -> frozenset[str]:
        return frozenset(form[0] for form in self._forms)

    @cached_property
    def _has_native_numbers(self) -> bool:
        return _NATIVE_NUMBERS.search(self.text) is not None


class FactText:
    """Prepares a passage and its title so that facts can be looked up in them."""

    def __init__(self, text: str, title: str = "") -> None:
        self.text = text
        whole = with_title(title, text)
        self.words = Words(whole, writing_of(whole))

    def standing(self, subject: str, predicate: str, object_: str) -> Standing:
        """Return whether the text or the title states the fact."""
        of_subject = self.words.standing(subject)
        of_object = self.words.standing(object_)
        worst = max(of_subject, of_object)
        if worst is not Standing.MISSING:
            return worst
        figures = filter(self.words.is_surely_missing, self.missing(subject, object_))
        is_foreign = self._is_in_another_language(subject, predicate, object_)
        if is_foreign and not any(figures):
            return Standing.UNKNOWN
        return Standing.MISSING

    def missing(self, subject: str, object_: str) -> list[Term]:
        """Return the content words and figures of subject and object that neither the text nor the title contains."""
        words = self.words.missing(subject)
        return words + self.words.missing(object_)

    def sentence(
        self, subject: str, predicate: str, object_: str
    ) -> tuple[int, int] | None:
        """Return the character span of the sentence that states a fact: one with subject and object, else one
        with the object.

        Of several such sentences, it is the one that shares most words with the fact. Return None if no
        sentence shares any words.
        """
        both: list[Sentence] = []
        with_object: list[Sentence] = []
        for sentence, words in self._sentences:
            if words.standing(object_) is not Standing.STANDS:
                continue
            with_object.append(sentence)
            if words.standing(subject) is Standing.STANDS:
                both.append(sentence)
        stating = both or with_object
        among = stating or [sentence for sentence, _ in self._sentences]
        best, _ = best_sentence(among, (subject, predicate, object_))
        if best is None and stating:
            best = stating[0]
        if best:
            return (best.start, best.end)
        return None

    @cached_property
    def _sentences(self) -> list[tuple[Sentence, Words]]:
        return [
            (
                sentence,
                Words(self.text[sentence.start : sentence.end], self.words.writing),
            )
            for sentence in sentences_of(self.text)
        ]

    def _is_in_another_language(
        self, subject: str, predicate: str, object_: str
    ) -> bool:
        fact = f"{subject} {predicate} {object_}"
        if _scripts(fact).isdisjoint(_scripts(self.text)):
            return True
        if len(self.words.missing(predicate)) < len(self.words.content(predicate)):
            return False
        if self.words.writing is Writing.ENGLISH:
            return foreign_language(fact) != ""
        if not foreign_language(self.text) and not _FOREIGN_WORD.search(self.text):
            return False
        words = predicate.lower().split()
        english = [
            word for word in words if word in _ENGLISH_PREDICATE or word.endswith("ed")
        ]
        return 2 * len(english) >= len(words)


@lru_cache(maxsize=128)
def fact_text(text: str, title: str = "") -> FactText:
    """Return a passage in which facts can be looked up. The result is cached, so that all callers share it."""
    return FactText(text, title)


@cached_if_short(8192)
def _content(phrase: str) -> tuple[Term, ...]:
    return _meaning(terms_of(phrase)) or terms_of(phrase)


@cached_if_short(8192)
def _content_of_letters(phrase: str) -> tuple[Term, ...]:
    terms = terms_of(phrase)
    # there is no list of function words for these languages, so short words in lower case are skipped
    long = [term for term in terms if not _is_small(term)]
    return _meaning(long) or terms


def _is_small(term: Term) -> bool:
    return term.text.islower() and len(term.word) < _LEAST_LETTERS


def _meaning(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the terms that carry meaning. Forms of address are left out unless there is nothing else."""
    meaning = tuple(term for term in terms if not term.is_empty)
    plain = tuple(term for term in meaning if not term.is_address)
    return plain or meaning


def _scripts(text: str) -> frozenset[str]:
    """Return the scripts of the letters of a text, as Unicode names them."""
    scripts = set()
    for char in set(text):
        if char.isalpha():
            script, _, _ = unicodedata.name(char, "").partition(" ")
            scripts.add(script)
    return frozenset(scripts)
