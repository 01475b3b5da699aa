"""Finds sentences in a question's own words: those that affirm or deny it, and those that restate it with an answer.

Was the mill built in 1874?        "The mill, a tall building, was built in 1874 by ..."   yes
                                   "The mill was built in 1847."                      no
Was the mill built by Cole?        "The mill was built by Ann Lee."                   hardly yes
The mill was not built in 1874.    the first sentence                                 no
Who built the mill?                "The mill was built by Ann Lee."                   restated
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from ras_agent.text.names import is_name, name_spans
from ras_agent.text.values import figures_in
from ras_agent.text.words import stem, stems, word_set
from ras_agent.tools.offline import english
from ras_agent.tools.offline.reading import ReadPassage, Sentence, Token, tokens_of

Alignment = Literal["same", "figure", "name", ""]
Wording = Literal["yes", "no", "hardly yes", "hardly no"]

_LIGHT = word_set(
    "a an the is are was were be been being do does did has have had also"
)
_MODALS = word_set("can could will would")
_DENYING = word_set("not never no")
_STATEMENTS = english.words("statements")
_DOUBTING = _STATEMENTS["doubting"]
_BOUNDS = _STATEMENTS["bounds"]
# words that change the name or figure before them into another
_GOING_ON = word_set("bc bce jr sr ii iii iv")
_OPENING = word_set("in on at from during after before since by until")
_PRONOUNS = word_set("it he she they")
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_CONTRACTED = re.compile(r"n['’]t\Z")
_POSSESSIVE = re.compile(r"['’]s\Z|s['’](?!\w)")
_TRUTH = re.compile(r"is it true that\s+", re.IGNORECASE)
_LONGEST = 200  # words of a sentence that are compared
_LONGEST_GAP = 12  # words that may come between two of the question's


@dataclass(frozen=True, slots=True)
class _Word:
    """Holds a word in the form in which it is compared."""

    stem: str
    value: int = -1
    """The number of the name or figure that the word belongs to, -1 for none."""
    sort: str = ""
    """"name", or the kind of the figure."""


def wording(
    question: str, passages: Sequence[ReadPassage]
) -> tuple[Wording, Sentence] | None:
    """Return the answer in the question's words, and the sentence that gives it; None if no sentence has the words in
    order.

    A sentence may have more words between them, but no denial, doubt, name or figure. Another figure means "no";
    another name means only "hardly yes", since for example a person born in Edinburgh was also born in Scotland.
    """
    asked = _words(_without_auxiliary(question))
    affirmed = [one for one in asked if one.stem != "not"]
    denials = len(asked) - len(affirmed)
    if not affirmed or denials > 1 or _doubts(affirmed):
        return None
    found: dict[Alignment, Sentence] = {}
    for passage in passages:
        for sentence in passage.sentences:
            for alignment in _said(affirmed, sentence):
                found.setdefault(alignment, sentence)
    verdicts = _OF_DENIALS if denials else _OF_STATEMENTS
    for alignment, verdict in verdicts.items():
        if alignment in found:
            return verdict, found[alignment]
    return None


_OF_STATEMENTS: dict[Alignment, Wording] = {
    "same": "yes",
    "figure": "no",
    "name": "hardly yes",
}
_OF_DENIALS: dict[Alignment, Wording] = {
    "same": "no",
    "figure": "yes",
    "name": "hardly no",
}


def _said(asked: Sequence[_Word], sentence: Sentence) -> set[Alignment]:
    """Return how a sentence contains the asked words: "same", or with another "figure" or "name"; "" for not at all."""
    told = _words(_BRACKETS.sub(" ", sentence.text))[:_LONGEST]
    said = {one.stem for one in told}
    if not told or "not" in said or _doubts(told):
        return set()
    found: set[Alignment] = set()
    for words in (told, _in_full(told, _words(sentence.passage.topic))):
        # a match may begin later only after an opening of time or place ("In 1874, the mill"), which is harmless
        starts = len(words) if words[0].stem in _OPENING else 1
        for start in range(starts):
            if words[start].stem == asked[0].stem:
                found.add(_aligned(asked, words[start:]))
    return found


def _in_full(told: list[_Word], topic: list[_Word]) -> list[_Word]:
    """Return a sentence's words with a pronoun or a short name at its beginning replaced by the passage's topic."""
    subject = {one.stem for one in told if one.value == told[0].value >= 0}
    of_topic = {one.stem for one in topic}
    is_short = bool(subject) and subject < of_topic
    if not topic or not (is_short or told[0].stem in _PRONOUNS):
        return told
    free = 1 + max(one.value for one in topic)
    full = list(topic)
    for one in told[max(1, len(subject)) :]:
        if one.value >= 0:
            one = replace(one, value=one.value + free)
        full.append(one)
    return full


def _aligned(asked: Sequence[_Word], told: Sequence[_Word]) -> Alignment:
    """Return how a sentence matches a question word by word: "same", or "name" or "figure" if only one differs.

    Return "" if they do not match.
    """
    at = 0
    place = 0
    gap = 0
    other: Alignment = ""
    while at < len(asked):
        if place == len(told):
            return ""
        word = asked[at]
        one = told[place]
        if one.stem == word.stem:
            at += 1
            place += 1
            gap = 0
        elif not other and _has_another_value(asked, at, told, place):
            other = "name" if word.sort == "name" else "figure"
            is_bounded = _is_bounded(asked, at) or _is_bounded(told, place)
            if other == "figure" and is_bounded:
                return ""
            end = _end(asked, at)
            place = _end(told, place)
            gap = 0
            value = {one.stem for one in asked[at:end]}
            if value <= {one.stem for one in told[place:]}:
                return ""  # "in Scotland", asked of "in Edinburgh, Scotland"
            at = end
        elif one.value < 0 and gap < _LONGEST_GAP:
            place += 1
            gap += 1
        else:
            return ""
    if _goes_on(told, place):
        return ""
    return other or "same"


def _has_another_value(
    asked: Sequence[_Word], at: int, told: Sequence[_Word], place: int
) -> bool:
    """Return whether a name or figure begins in the question, and another one of the same sort in the sentence."""
    if told[place].sort != asked[at].sort:
        return False
    return _begins(asked, at) and _begins(told, place)


def _is_bounded(words: Sequence[_Word], at: int) -> bool:
    if at == 0:
        return False
    return words[at - 1].stem in _BOUNDS


def _goes_on(told: Sequence[_Word], place: int) -> bool:
    """Return whether the value at the question's end is longer here: "Ann Lee Cole" for "Ann Lee"."""
    if place == len(told) or told[place - 1].value < 0:
        return False
    following = told[place]
    return following.value == told[place - 1].value or following.stem in _GOING_ON


def _begins(words: Sequence[_Word], at: int) -> bool:
    value = words[at].value
    if value < 0:
        return False
    return at == 0 or words[at - 1].value != value


def _end(words: Sequence[_Word], at: int) -> int:
    """Return the index after the value that begins at `at`."""
    end = at
    while end < len(words) and words[end].value == words[at].value:
        end += 1
    return end


def _doubts(words: Sequence[_Word]) -> bool:
    outside = {one.stem for one in words if one.value < 0}
    return not outside.isdisjoint(_DOUBTING)


def denies(text: str) -> bool:
    """Return whether a text contains "not", "never" or "no"."""
    said = {one.stem for one in _words(text)}
    return not said.isdisjoint(_DENYING)


def _without_auxiliary(question: str) -> str:
    """Return "the mill built in 1874?" for "Was the mill built in 1874?"; a statement is returned unchanged."""
    text = _TRUTH.sub("", question, count=1)
    first, _, rest = text.partition(" ")
    auxiliary = _CONTRACTED.sub("", first.lower())
    if auxiliary in _LIGHT or auxiliary in _MODALS:
        return rest
    return text


def _words(text: str) -> list[_Word]:
    within: dict[int, tuple[int, str]] = {}
    spans = [(start, end, "name") for start, end in name_spans(text)]
    for figure in figures_in(text):
        spans.append((figure.start, figure.end, figure.kind))
    for number, (start, end, sort) in enumerate(spans):
        value = (number, sort)
        for place in range(start, end):
            within.setdefault(place, value)
    words: list[_Word] = []
    for token in tokens_of(text):
        if token.word not in _LIGHT:
            value = within.get(token.start, _NO_VALUE)
            words.append(_word(text, token, value))
    return words


_NO_VALUE = (-1, "")


def _word(text: str, token: Token, value: tuple[int, str]) -> _Word:
    """Return a word as it is compared: "n't" counts as "not", and "Lee's" is another word than "Lee"."""
    if _CONTRACTED.search(token.word):
        return _Word("not")
    root = token.stem or stem(token.word)
    if root == "not" or token.word in _DOUBTING | _BOUNDS:  # "noted" is not "not"
        root = token.word
    written = text[token.start : token.end + 1]
    if _POSSESSIVE.search(written.rstrip(" ,;.")):
        root += "'s"
    return _Word(root, *value)


# ---- sentences that restate a question, with the answer in place of its question word

_ASKS = re.compile(
    r"(?i)\W*(?:(?:in|at|on|from|to|by) )?(?P<word>who|where|when|which|what|how)\b"
)
_ARTICLE = re.compile(r"\A[Tt]he ")
_BY = re.compile(r"(?i)\bby\b")
_BEFORE_PLACES = word_set("in at on near from to of outside opposite behind beside")
_IS_NOW = re.compile(r"(?i)\b(?:is|are)\b")
_WAS = re.compile(r"(?i)\b(?:was|were|been|former|formerly)\b")


def is_restated(question: str, answer: str, sentence: str, sort: Set[str]) -> bool:
    """Return whether a sentence has the question's words in their order, with the answer for the question word.

    Args:
        sort: stems of the nouns that name the answer's sort ("town" in "In which town ..."), which the sentence may
            lack.

    >>> is_restated("Where is Tarn Hall?", "Orvena", "Tarn Hall is in Orvena.", frozenset())
    True
    >>> is_restated("Who hired Ann Lee?", "Bo Day", "Ann Lee hired Bo Day.", frozenset())
    False
    """
    asking = _ASKS.match(question)
    before, found, after = sentence.partition(answer)
    if asking is None or not found or denies(question) != denies(sentence):
        return False
    if not _fits(asking["word"].lower(), answer, before):
        return False
    if _IS_NOW.search(question) and _WAS.search(sentence):
        return False
    rest = question[asking.end() :]
    asked = _without(sort, rest)
    told = _without(sort, f"{before} {after}")
    if not asked or sorted(asked) != sorted(told):
        return False
    is_agent = before.rstrip().lower().endswith(" by")
    if is_agent and not _BY.search(question):
        return True
    return asked == told


def _without(sort: Set[str], text: str) -> list[str]:
    """Return the stems of a text in order, without those in `sort`."""
    roots = stems(text)
    return [root for root in roots if root not in sort]


def _fits(word: str, answer: str, before: str) -> bool:
    """Return whether an answer is of the kind that is asked for: a place after "in", a date, a name, a number."""
    if word == "where":
        words = before.lower().split()
        return bool(words) and words[-1] in _BEFORE_PLACES
    figures = figures_in(answer)
    if word == "when":
        return any(figure.is_date for figure in figures)
    if word == "how":
        return bool(figures)
    bare = _ARTICLE.sub("", answer)
    return is_name(bare)
