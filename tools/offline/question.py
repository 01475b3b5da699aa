"""Analyses a question by its words: its kind, its names, those it compares, and the type of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.names import is_name, name_spans
from ras_agent.text.values import figures_in
from ras_agent.text.words import FUNCTION_WORDS, MONTHS, content_words, word_set
from ras_agent.tools.offline import english

Kind = Literal["open", "yes_no", "choice"]

LONGEST_QUESTION = 2000
"""The maximum number of characters of a question that are analysed; the rest is ignored."""

_YES_NO = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|am)\b",
    re.IGNORECASE,
)
_MAY = re.compile(r"(?i)(?:may|must|should) (?-i:I\b|[a-z])")  # "May Lee" is a name
_STATED = re.compile(
    r"(?i)(?!(?:name|list|tell|give|show|describe|explain|find|compare|identify|summari[sz]e|please|i|we|you|let|state"
    r"|provide|determine|recommend|mention|say|return|look|search|get)\b)(?-i:[^\Wa-z_]|[\"“])(?:(?!\bthat\b)[^?])*?"
    r" (?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)(?:n['’]t)? (?:(?!\bthat\b)[^?])*\w[.]"
)
_ORDERING = english.words("orders")
ORDERS = (
    (_ORDERING["later"], True, 1),
    (_ORDERING["earlier"], True, -1),
    (_ORDERING["more"], False, 1),
    (_ORDERING["fewer"], False, -1),
)
"""Rows of (words that ask for an order, whether they order dates rather than numbers, sign of what is asked for).

The sign is 1 for the most or the latest, -1 for the least or the earliest.
"""
# words that mostly describe a time after a verb, rather than ask for a choice
_OF_TIME = word_set("before after prior preceded initially last")
_PICKS_ONE = re.compile(
    r"\bbetween\b.*\b(?:which|who)\b|\bwhich (?:one|of)\b", re.IGNORECASE
)
_SHARED = re.compile(r"\b(?:in common|both|shared?(?: by)?|share)\b", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+")
_AND = re.compile(r"\s+(?:and|than|&)\s+")
_BETWEEN = re.compile(
    r"\bbetween\s+(.+?) and ((?:(?! and ).)+?)(?:,|\?|\bwhich\b|\bwho\b)", re.IGNORECASE
)
_MARKS = ' \t"“”?.,;:'
_LEADING = re.compile(r"^(?:(?:the|a|an|both|either|of|in|between)\s+)+", re.IGNORECASE)
_APPOSITION = re.compile(
    r",\s+(?:the|a|an|who|which|that|both|is|was|are|were|has|had)\b.*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """Holds the form of a question."""

    question: str
    kind: Kind
    """"yes_no"; "choice" if it asks for one of `compared`; otherwise "open"."""
    compared: tuple[str, ...]
    """Two names, also if a question asks for something that they have in common; otherwise ()."""
    answer_type: AnswerType | None
    """The type of the answer; None if the question's words do not show it."""
    answer_noun: tuple[str, ...]
    """The case-folded noun for the answer ("drama series"); () for who, when and where."""


def analyse(question: str) -> QuestionAnalysis:
    """Return the form of a question.

    >>> asked = analyse("Which band formed earlier, Lawson or Louis XIV?")
    >>> asked.kind, asked.compared, asked.answer_type, asked.answer_noun
    ('choice', ('Lawson', 'Louis XIV'), 'organisation', ('band',))
    """
    text = " ".join(question.split())[:LONGEST_QUESTION]
    # "Both A and B are films?" is a question only by its mark; a statement counts as a question whether it is true
    stated = text.startswith("Both ") or _STATED.fullmatch(text) is not None
    unasked = (stated or _MAY.match(text) is not None) and not ASKS.search(text)
    yes_no = _YES_NO.match(text) is not None or unasked
    # "Can I pay with Visa or Mastercard?" does not ask for a choice, but "Was A or B born first?" does
    words = set(re.findall(r"\w+", text.lower())) - _OF_TIME
    orders = not yes_no or any(words & listed for listed, *_ in ORDERS)
    options = _options(text, yes_no)
    pair = options or _pair(text, yes_no)
    kind: Kind = "open"
    if (options and orders) or (pair and not yes_no and _PICKS_ONE.search(text)):
        kind = "choice"
    elif yes_no:
        kind = "yes_no"
    if kind == "open" and not (_SHARED.search(text) or _has_two(text, pair)):
        pair = ()
    answer_type, noun = (None, ()) if yes_no else expected_answer(text)
    return QuestionAnalysis(text, kind, pair, answer_type, noun)


def _options(text: str, yes_no: bool) -> tuple[str, ...]:
    """Return the names on both sides of the last "or" between names; () if there is none."""
    for match in reversed(list(_OR.finditer(text))):
        before = text[: match.start()]
        right = _clean(_APPOSITION.sub("", text[match.end() :]))
        *others, listed = re.split(r",\s+", before)
        left = _clean(listed) if others else ""
        if not _is_written_as_name(left):
            names = [one for one in name_spans(before) if len(before) - one[1] <= 1]
            left = "".join(_clean(before[start:end]) for start, end in names)
        if yes_no:
            # the question goes on after the name: "or Bo Day born first?"
            names = [one for one in name_spans(right) if one[0] == 0]
            right = right[: names[0][1]] if names else right
        if left and _is_written_as_name(right):
            return left, right
    return ()


def _is_written_as_name(text: str) -> bool:
    first = text[:1]
    return first.isupper() or first.isdigit()


def _pair(text: str, yes_no: bool) -> tuple[str, ...]:
    """Return two names that belong together: in "A and B", "A than B" or "between A and B"; () if there are no such names.

    In a yes-or-no question with only two names, these are returned.
    """
    if between := _BETWEEN.search(text):
        return _clean(between[1]), _clean(between[2])
    spans = name_spans(text)
    for match in _AND.finditer(text):
        before = [one for one in spans if 0 <= match.start() - one[1] <= 1]
        after = [one for one in spans if 0 <= one[0] - match.end() <= len("the ") + 1]
        if before and after and before[0] != after[0]:
            spans = [before[0], after[0]]
            yes_no = True
            break
    if not yes_no or len(spans) != 2:
        return ()
    return tuple(_clean(text[start:end]) for start, end in spans)


def _has_two(text: str, pair: tuple[str, ...]) -> bool:
    """Return whether the verb belongs to both names: "In which state are A and B?", "A and B play what?".

    "When did A and B marry?" asks for one event, and not for something that each of them has.
    """
    if not pair:
        return False
    both = "(?:the )?{} and (?:the )?{}".format(*map(re.escape, pair))
    verb = "(?:are|were|have|belong|come|play)"
    return re.search(rf"(?i)^{both} {verb}\b|\b(?:are|were) {both}", text) is not None


def _clean(name: str) -> str:
    bare = _LEADING.sub("", name.strip(_MARKS))
    return bare.strip(_MARKS)


AnswerType = Literal[
    "person", "place", "date", "number", "organisation", "work", "nationality", "thing"
]

ASKS = re.compile(r"\b(?:what|which|who|whom|whose|where|when|how)\b", re.IGNORECASE)
"""Matches a question word."""
_RELATIVE = word_set("who which where when whose")
_COPULA = re.compile(
    r"\s*(?:is|are|was|were|'s)\s+(?:the\s+)?(?:names?\s+of\s+(?:the\s+)?)?",
    re.IGNORECASE,
)
_ASKED_OF = re.compile(
    r"(?:^|\b(?:in|of|at|on|by|for|from|to|with|under|as|is|was|are|were)|[,;:])\s*$",
    re.IGNORECASE,
)
_MEASURES = re.compile(
    r"\s*(?:many|much|long|tall|high|far|old|large|big|deep|wide|heavy|fast|often)\b"
)
_AMOUNT = re.compile(r"^\s*(?:many|much)\b")
_NOUN = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_DETERMINERS = word_set("the a an other this same most")
_SORTS = word_set("type kind sort class form genre piece brand types kinds")
_COMPARATIVES = word_set(
    "first earlier later older younger larger smaller longer last bigger came"
)

POINTS_IN_TIME = word_set("year date decade century month birthday birthdate")
"""Nouns of dates, whose answers are in figures; unlike an age, which may be in words."""

_TYPES: dict[str, AnswerType] = {
    "who": "person",
    "whom": "person",
    "whose": "person",
    "where": "place",
    "when": "date",
}
_NOUNS: dict[AnswerType, frozenset[str]] = english.words("answers")


def expected_answer(text: str) -> tuple[AnswerType | None, tuple[str, ...]]:
    """Return the type of a question's answer, None if its words do not show it, and the case-folded noun for it.

    >>> expected_answer("What is the name of the pop band founded in 1990?")
    ('organisation', ('pop', 'band'))
    """
    asks = _question_word(text)
    if asks is None:
        return None, ()
    word = asks.group().lower()
    rest = text[asks.end() :]
    if word in _TYPES:
        return _TYPES[word], ()
    if word == "how":
        if not _MEASURES.match(rest):
            return None, ()
        return "number", noun_of(_AMOUNT.sub("", rest))
    copula = _COPULA.match(rest)
    noun = noun_of(rest[copula.end() :] if copula else rest)
    return type_of(noun), noun


def _question_word(text: str) -> re.Match[str] | None:
    """Return the word that asks: the first one, unless it begins a relative clause and a later one asks."""
    words = list(ASKS.finditer(text))
    for one in words:
        is_relative = one[0].lower() in _RELATIVE
        if not is_relative or _ASKED_OF.search(text[: one.start()]):
            return one
    return words[0] if words else None


def noun_of(rest: str) -> tuple[str, ...]:
    """Return the noun phrase with which `rest` begins, up to a function word, participle, comparative or mark."""
    words: list[str] = []
    end = 0
    for match in _NOUN.finditer(rest):
        word = match.group().lower()
        is_apart = rest[end : match.start()].strip(" \"“”'’") != ""
        if is_apart or (words and (word.endswith("ed") or word in _COMPARATIVES)):
            break
        is_of_sort = word == "of" and not _SORTS.isdisjoint(words[-1:])
        if word not in FUNCTION_WORDS:
            words.append(word)
        elif word not in _DETERMINERS and not is_of_sort:
            break
        end = match.end()
    return tuple(content_words(" ".join(words)))


def type_of(noun: tuple[str, ...]) -> AnswerType | None:
    """Return the type that a noun phrase's last two words show, the last one first: "New York city" is a place.

    Return None for "name", which could name anything, and without a noun.
    """
    for word in reversed(noun[-2:]):
        if word in {"name", "names"}:
            return None
        for kind, nouns in _NOUNS.items():
            if word in nouns or word.removesuffix("s") in nouns:
                return kind
    return "thing" if noun else None


def fits(question: str, answer: str) -> bool:
    """Return whether an answer has the form that a question's words ask for: a date, a number, or something else.

    >>> fits("When was the bridge built?", "Scotland"), fits("In what year?", "the war"), fits("Who built it?", "1890")
    (False, False, False)
    >>> fits("How many boats are there?", "daily"), fits("How many months?", "1971"), fits("How many boats?", "a dozen")
    (False, False, True)
    >>> fits("What was the mayor of Varn before?", "Rosa Klee"), fits("What was the mayor of Varn before?", "a nurse")
    (False, True)
    """
    wanted, noun = expected_answer(question)
    if wanted == "person" and _WHAT_SOMEBODY_WAS.match(question):
        return not is_name(answer)
    figures = figures_in(answer)
    if wanted == "date" and (not noun or noun[-1] in POINTS_IN_TIME):
        return _is_date(answer, noun)
    if wanted == "number" and _HOW_MANY.search(question):
        return _is_count(answer, noun)
    if wanted in {"person", "place", "organisation", "nationality"}:
        written = [answer[one.start : one.end] for one in figures]
        return answer.strip() not in written
    return True


def _is_date(answer: str, noun: tuple[str, ...]) -> bool:
    has_digits = any(map(str.isdigit, answer))
    if noun and noun[-1] in _IN_DIGITS and not has_digits:
        return False
    figures = figures_in(answer)
    is_dated = any(figure.is_date for figure in figures)
    has_month = any(word.lower() in MONTHS for word in answer.split())
    return is_dated or has_month or not is_name(answer)


def _is_count(answer: str, noun: tuple[str, ...]) -> bool:
    kinds = {figure.kind for figure in figures_in(answer)}
    if not kinds:
        first = {word.removesuffix("s") for word in answer.lower().split()[:3]}
        return not first.isdisjoint(_NUMERALS)
    if _YEAR.fullmatch(answer) and not _TIMES.isdisjoint(noun):
        return False  # "1200" may count boats, but not months
    return not kinds.isdisjoint(("number", "year"))


_WHAT_SOMEBODY_WAS = re.compile(r"(?i)what (?:was|were) .*\b(?:before|by trade)\W*\Z")
_IN_DIGITS = word_set("year date")
_HOW_MANY = re.compile(r"\bhow many\b", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")
_NUMERALS = english.words("closed")["F"]
_TIMES = word_set("year years month months week weeks day days hour hours")
