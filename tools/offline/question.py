"""What a question asks for, read off its words: its kind, the names in it, what it compares, the type of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.names import name_spans, names_in
from ras_agent.text.words import content_words
from ras_agent.tools.offline.expected_answer import ASKS, AnswerType, expected_answer

__all__ = ["AnswerType", "Kind", "QuestionAnalysis", "analyse"]

Kind = Literal["open", "yes_no", "choice", "shared"]

_YES_NO = re.compile(r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|am)\b", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:in common|both|shared?(?: by)?|share)\b", re.IGNORECASE)
_OR = re.compile(r"\s+or\s+")
_AND = re.compile(r"\s+(?:and|than|&)\s+")
_BETWEEN = re.compile(r"\bbetween\s+(.+?)(?:,|\?|\bwhich\b|\bwho\b)", re.IGNORECASE)
_LEADING = re.compile(r"^(?:(?:the|a|an|both|either|of|in|between)\s+)+", re.IGNORECASE)
_APPOSITION = re.compile(r",\s+(?:the|a|an|who|which|that|both|is|was|are|were|has|had)\b.*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionAnalysis:
    """A question's shape.

    kind: "yes_no"; "choice" picks one of `compared`; "shared" asks what the `compared` have in common; else "open".
    mentions: names and quoted titles, in order. compared: two names, or none. content_words: folded, in order.
    answer_type: None where the words do not tell. answer_noun: the folded words that the answer is one of ("drama
    series"), empty for who, when, where.
    """

    question: str
    kind: Kind
    mentions: tuple[str, ...]
    compared: tuple[str, ...]
    content_words: tuple[str, ...]
    answer_type: AnswerType | None
    answer_noun: tuple[str, ...]


def analyse(question: str) -> QuestionAnalysis:
    """Read a question.

    >>> asked = analyse("Which band formed earlier, Lawson or Louis XIV?")
    >>> asked.kind, asked.compared, asked.answer_type, asked.answer_noun
    ('choice', ('Lawson', 'Louis XIV'), 'organisation', ('band',))
    """
    text = " ".join(question.split())
    # "Both A and B are films?" asks with its mark alone
    yes_no = _YES_NO.match(text) is not None or (text.startswith("Both ") and not ASKS.search(text))
    options = _options(text)
    pair = options or _pair(text, yes_no)
    kind: Kind = "open"
    if yes_no:
        kind = "yes_no"
    elif options or (pair and _picks_one(text)):
        kind = "choice"
    elif pair and _SHARED.search(text):
        kind = "shared"
    compared = pair if kind != "open" else ()
    answer_type, answer_noun = (None, ()) if yes_no else expected_answer(text)
    mentions = tuple(dict.fromkeys((*compared, *names_in(text))))
    return QuestionAnalysis(
        text, kind, mentions, compared, tuple(dict.fromkeys(content_words(text))), answer_type, answer_noun
    )


def _options(text: str) -> tuple[str, ...]:
    """The two sides of the last "or" between names; () without one."""
    for match in reversed(list(_OR.finditer(text))):
        right = _clean(_APPOSITION.sub("", text[match.end() :]))
        before = text[: match.start()]
        *_, listed = re.split(r",\s+", before)
        left = _clean(listed) if listed != before else ""
        if not left[:1].isupper() and not left[:1].isdigit():
            left = _last_name(before)
        if left and right and len(left.split()) <= 10 and (right[0].isupper() or right[0].isdigit()):
            return left, right
    return ()


def _pair(text: str, yes_no: bool) -> tuple[str, ...]:
    """Two names side by side: "between A and B", "A and B both", "more than"."""
    between = _BETWEEN.search(text)
    if between:
        parts = [_clean(part) for part in between.group(1).rsplit(" and ", 1)]
        if len(parts) == 2 and all(parts):
            return parts[0], parts[1]
    spans = name_spans(text)
    for match in _AND.finditer(text):
        left = next((span for span in spans if span[1] in (match.start(), match.start() - 1)), None)
        right = next((span for span in spans if 0 <= span[0] - match.end() <= len("the ") + 1), None)
        if left and right and left != right:
            return _clean(text[slice(*left)]), _clean(text[slice(*right)])
    names = [text[slice(*span)] for span in spans]
    if (yes_no or re.search(r"\bmore\b.*\bthan\b", text)) and len(names) == 2:
        return names[0], names[1]
    return ()


def _picks_one(text: str) -> bool:
    asks = ASKS.search(text)
    return bool(re.search(r"\bbetween\b.*\b(?:which|who)\b|\bwhich (?:one|of)\b", text, re.IGNORECASE)) and bool(asks)


def _last_name(text: str) -> str:
    names = name_spans(text)
    return _clean(text[slice(*names[-1])]) if names and len(text) - names[-1][1] <= 1 else ""


def _clean(name: str) -> str:
    return _LEADING.sub("", name.strip(' \t?.,;:"“”')).strip(' "“”?.,;:')
