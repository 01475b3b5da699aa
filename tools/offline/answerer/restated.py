"""Recognises sentences that restate a question, with the answer in place of its question word.

Where is Tarn Hall?        "Tarn Hall is in Orvena."
Who built Tarn Hall?       "Tarn Hall was built by Mo Fell."
"""

from __future__ import annotations

import re
from collections.abc import Set

from ras_agent.text.names import is_name
from ras_agent.text.values import figures_in
from ras_agent.text.words import stems, word_set
from ras_agent.tools.offline.answerer.wording import denies

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
    return [stem for stem in stems(text) if stem not in sort]


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
