"""Completes a follow-up question by rules, from the turns before it: English pronouns, and parts that were left out.

And how long is it?          How long is Water of Leith?        (the last answer)
Who was her husband?         Who was Marie Curie's husband?     (the person whom the last question is about)
And the Golden Gate Bridge?  When was the Golden Gate Bridge built?

If any part of a question stays unclear, the question is left unchanged: a search with the user's own words finds more
than one with a wrong name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.contracts.records import Exchange
from ras_agent.text.names import is_name, name_spans, names_in
from ras_agent.text.words import FUNCTION_WORDS
from ras_agent.tools.offline.question import (
    ASKS,
    LONGEST_QUESTION,
    AnswerType,
    analyse,
    type_of,
)
from ras_agent.tools.roles import RoleOptions

_LEAD = re.compile(r"(?:(?:and|but|so|or|ok|okay|then|also)\b,? )+", re.IGNORECASE)
_ABOUT = re.compile(r"(?:what|how) about ", re.IGNORECASE)
_ANAPHOR = re.compile(
    r"(?i)\b(?:(?P<he>he|him|she|his|her)|(?P<it>its?)|(?P<they>they|them|their)|(?P<there>there))\b"
    r"|\b(?P<which>th(?:at|is|e)) (?!(?:he|she|it|they|there|his|her|its|their|the)\b)(?P<noun>[a-z]+)\b"
)
_NO_ANAPHOR = re.compile(
    r"(?i)\b(?:does|did|do|will|would|can|could) it (?:take|matter|mean|cost|rain|snow)\b|\b(?:is|was|it)(?: it)? "
    r"(?:true|possible|known|likely|raining|said|takes?)\b|\btime is it\b|\b(?:is|are|was|were|be|been) there\b"
)
# "her" is a German word too, so a question that is not in English is left unchanged
_ENGLISH = re.compile(
    r"(?i)(?:why|is|are|were|do|does|did|has|have|had|can|could|will|would|tell|name|list|give|show|describe|explain"
    r"|was (?:he|she|it|his|her|its|their|that|this|the))\b"
)
_LEAVES_OUT_A_VERB = re.compile(
    r"(?i)\b(?:did|does|do|has|have|had|can|could|will|would) (?:he|she|it|they)\?\Z"
)
_A_PLACE = re.compile(r"\b(?:in|at|from|to|into|near|through|on) (?:the )?\Z")
_ASKS_WHERE = re.compile(r"where\b|in (?:which|what)\b", re.IGNORECASE)
_PERSONAL = re.compile(
    r"\b(?:born|died?|marr\w+|wife|husband|mother|father|parents?|child\w*|nationality|wrote|writ\w+|grow up|grew up"
    r"|lived?|stud\w+|attend\w*|invent\w*|discover\w*)\b"
)
_LAST_NOUN = re.compile(r"\bthe [a-z-]+(?=\?\Z)")
_YEAR = re.compile(r"\b\d{4}\b")
_FOLLOWING = re.compile(r" ([A-Za-z]+)")
_ITS_PART = re.compile(r"\bthe [a-z]+(?: [a-z]+)? of\b")
_PREPOSITION = re.compile(
    r"(?:in|at|from|to|through|on|for|by|with|of) ", re.IGNORECASE
)
_WORD_THAT_ASKS = re.compile(
    r"(?i)(?:(?:in|on|at|since|until) )?(?:when|where|why|how|(?:which|what) [a-z]+)\Z"
)
_ASKED_WITH = re.compile(
    r"(?:when|where|why|how)(?= (?:was|is|were|are|did|does|do|has|had)\b)",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"how (?:long|tall|high|old|big|large|deep|wide|far|heavy)\Z", re.IGNORECASE
)
_CITED = re.compile(r" ?\[\d+\]")
# "it" never refers to an answer of these types: "Monday", "Some 90,000 (Nokia Annual Report)"
_NO_THING: frozenset[AnswerType | None] = frozenset(("date", "number", "nationality"))


@dataclass(frozen=True, slots=True)
class _Thing:
    """Holds a thing that an earlier turn was about."""

    name: str
    type: AnswerType | None = None
    noun: tuple[str, ...] = ()
    """The question's word for it, case-folded: ("river",)."""


class _Unclear(Exception):
    """Reports that a part of a question may refer to several things, or to nothing that was named."""


def offline_rewriter(embeddings: str, options: RoleOptions) -> OfflineRewriter:
    """Build the rewriter of this module. Neither of the arguments changes it."""
    return OfflineRewriter()


class OfflineRewriter:
    """Completes follow-up questions by the rules of this module."""

    name = "offline"

    def rewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the question in words that need no earlier turn; unchanged if it needs no change, or is unclear.

        >>> OfflineRewriter().rewrite("Where was he born?", [Exchange("Who patented the telephone?", "Bell")])
        'Where was Bell born?'
        """
        text = " ".join(question.split())
        if not exchanges or len(text) > LONGEST_QUESTION:
            return question
        try:
            standalone = _completed(text, exchanges)
        except _Unclear:
            return question
        return question if standalone.lower() == text.lower() else standalone


def _completed(text: str, exchanges: Sequence[Exchange]) -> str:
    lead = _LEAD.match(text)
    rest = text[lead.end() :] if lead else text
    about = _ABOUT.match(rest)
    fragment = (rest[about.end() :] if about else rest).rstrip("?!. ")
    last = " ".join(exchanges[-1].question.split())[:LONGEST_QUESTION]
    if _MEASURE.match(fragment):
        return f"{_capital(fragment)} is {_meant('it', exchanges)}?"
    if _WORD_THAT_ASKS.match(fragment):
        return _asked_otherwise(last, fragment)
    if about or (lead and not ASKS.search(fragment)):
        if other := _with_other_part(last, fragment):
            return other
        if about or not _ENGLISH.match(rest):
            raise _Unclear
    return _capital(_with_names(rest, exchanges))


def _asked_otherwise(last: str, word: str) -> str:
    """Return the last question with another question word: "Where was Bell born?" and "And when?" make "When was ...".

    Raises _Unclear if that is not possible.
    """
    asked = _ASKED_WITH.match(last)
    if not asked or asked[0].lower() == word.lower():
        raise _Unclear
    return _capital(word) + last[asked.end() :]


def _with_other_part(last: str, part: str) -> str:
    """Return the last question with `part` in place of the part of the same kind: a year, a name, a property.

    Return "" if `part` is none of these. After a preposition, a name replaces the name after the same preposition.
    Raises _Unclear unless exactly one part is of the same kind.
    """
    preposition = _PREPOSITION.match(part)
    bare = part
    before = ""
    if preposition:
        bare = part[preposition.end() :]
        before = f" {preposition[0].lower()}"
    if _YEAR.fullmatch(bare):
        return _replaced(last, _spans(_YEAR, last), bare)
    if is_name(bare.removeprefix("the ")):
        spans: list[tuple[int, int]] = []
        for start, end in _things_in(last):
            if last[:start].lower().endswith(before):
                spans.append((start, end))
        return _replaced(last, spans, bare)
    if part.startswith("the ") and part == part.lower() and len(part.split()) <= 3:
        return _replaced(last, _spans(_ITS_PART, last), f"{part} of")
    return ""


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    matches = pattern.finditer(text)
    return [match.span() for match in matches]


def _replaced(text: str, spans: Sequence[tuple[int, int]], part: str) -> str:
    if len(spans) != 1:
        raise _Unclear
    ((start, end),) = spans
    return text[:start] + part + text[end:]


def _with_names(text: str, exchanges: Sequence[Exchange]) -> str:
    """Return the question with names in place of pronouns. Raises _Unclear for a pronoun that cannot be resolved."""
    if _NO_ANAPHOR.search(text) or not (ASKS.search(text) or _ENGLISH.match(text)):
        return text
    if _LEAVES_OUT_A_VERB.search(text):
        raise _Unclear
    names = [start for start, _ in name_spans(text)]
    if names[:1] == [0] and _ENGLISH.match(text):
        del names[0]  # a verb

    def name(match: re.Match[str]) -> str:
        kind = str(match.lastgroup)
        if kind == "noun":
            return _of_the_sort(match, text, exchanges)
        if names and names[0] < match.start():
            raise _Unclear  # "Did Eiffel live in his tower?"
        word = match[0].lower()
        meant = _meant(kind, exchanges)
        following = _FOLLOWING.match(text, match.end())
        is_object = following is None or following[1].lower() in FUNCTION_WORDS
        if word in ("his", "its", "their") or (word == "her" and not is_object):
            return f"{meant}'" if meant.endswith("s") else f"{meant}'s"
        return f"in {meant}" if kind == "there" else meant

    return _ANAPHOR.sub(name, text)


def _of_the_sort(match: re.Match[str], text: str, exchanges: Sequence[Exchange]) -> str:
    """Return the name that "that city" or "the river" refers to; the words unchanged if they describe something new."""
    noun = match["noun"].lower()
    kind = type_of((noun,))
    may_be_of_kind = match["which"].lower() != "the" and kind not in (None, "thing")
    for thing in _earlier_things(exchanges):
        is_of_kind = thing.type == kind and not thing.noun
        if noun in thing.noun or (may_be_of_kind and is_of_kind):
            return thing.name
    return match[0]


def _earlier_things(
    exchanges: Sequence[Exchange], pronoun: str = ""
) -> Iterator[_Thing]:
    """Yield the things that earlier turns were about, the latest turn first."""
    for exchange in reversed(exchanges):
        yield from _about(exchange, pronoun)


def _meant(pronoun: str, exchanges: Sequence[Exchange]) -> str:
    """Return the name to which "he", "it", "they" or "there" refers, the latest turn first.

    Raises _Unclear without one.
    """
    for thing in _earlier_things(exchanges, pronoun):
        many = " and " in thing.name or thing.type == "organisation"
        is_one = {
            "he": thing.type in ("person", None) and not many,
            "it": thing.type != "person",
            "they": many,
            "there": thing.type == "place",
        }
        if is_one[pronoun]:
            return thing.name
    raise _Unclear


def _about(exchange: Exchange, pronoun: str) -> list[_Thing]:
    """Return the things that a turn was about, likeliest first: after "Where is the Louvre?", "it" is the Louvre."""
    question = " ".join(exchange.question.split())[:LONGEST_QUESTION]
    asked = analyse(question)
    answered: list[_Thing] = []
    if asked.kind == "open" and asked.answer_type not in _NO_THING:
        name = _answer_name(exchange.answer, question)
        if name:
            answered = [_Thing(name, asked.answer_type, asked.answer_noun)]
    spans = _things_in(question) or _spans(_LAST_NOUN, question)
    if pronoun == "he":
        spans = [span for span in spans if not _A_PLACE.search(question[: span[0]])]
    is_a: AnswerType | None = None
    if asked.answer_type == "person":
        is_a = "thing"  # "Who wrote Emma?" asks for a person, so Emma is a thing
    elif _PERSONAL.search(question):
        is_a = "person"
    if len(spans) != 1:
        return answered
    ((start, end),) = spans
    subject = _Thing(question[start:end], is_a)
    if pronoun in ("it", "he") and _ASKS_WHERE.match(question):
        return [subject, *answered]
    return [*answered, subject]


def _answer_name(answer: str, question: str) -> str:
    """Return the name that an answer consists of, or the only new name in it; "" if there is neither."""
    plain = " ".join(answer.split())[:LONGEST_QUESTION]
    text = _CITED.sub("", plain).strip(' ."')
    if is_name(text):
        return text
    new = {name for name in names_in(text) if name not in question and is_name(name)}
    return new.pop() if len(new) == 1 else ""


def _things_in(text: str) -> list[tuple[int, int]]:
    """Return the spans of the names in a text, each with "the" before it."""
    spans: list[tuple[int, int]] = []
    for start, end in name_spans(text):
        if text[:start].lower().endswith(" the "):
            start -= len("the ")
        spans.append((start, end))
    return spans


def _capital(text: str) -> str:
    first = text[:1].upper()
    return first + text[1:]
