"""The forms an answer can be asked for, and how it is read out of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ras_agent.marks import ANSWER, FLAGS, UNKNOWN
from ras_agent.records import AnswerStyle
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.chat.dialogue import without_thinking

_ANSWER = re.compile(ANSWER.live, FLAGS)
_UNKNOWN_WORD = str(UNKNOWN).strip("[]")
# the word alone in its capitals, but not as it is in data, where it has look-alikes of brackets
_ABSTAINS = re.compile(rf"\W*(?i:{UNKNOWN.live})|[^\w‹›]*+{_UNKNOWN_WORD}[^\w‹›]*+\Z")
_VERDICT = re.compile(r"\W*(true|false|yes|no)\b", re.IGNORECASE)
_OPTION = re.compile(r"(?<!\S)\(?([A-Za-z]|\d{1,2})[).:](?=\s)")
_CHOSEN = re.compile(r"\W*(?:option\s+)?([A-Za-z]|\d{1,2})(?:[).:,]|\W*\Z)", re.IGNORECASE)
_WRAPPING = ' \t\n*_`"“”'
_ONE_LINER = 200


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Describes one form of answers.

    prompt: the name of its prompt. wanted: the form in words, for a repair.
    prose: whether citations stay in the text, and lines after the first.
    read: takes the answer part of a reply and the question, and returns the answer; "" if it does not have the form.
    """

    prompt: str
    wanted: str
    prose: bool
    read: Callable[[str, str], str]


def answer_part(reply: str, *, prose: bool, finished: bool = True) -> str:
    """Return the part of a reply behind "Answer:"; "" for none.

    In prose that is everything behind the first "Answer:". Else it is the rest of the line behind the last one, since
    reasoning may come before it. A finished reply without "Answer:" is the answer itself if it is prose or a single
    short line.
    """
    text = without_thinking(reply)
    marks = list(_ANSWER.finditer(text))
    if marks:
        behind = text[marks[0 if prose else -1].end() :].strip()
        return behind if prose else behind.partition("\n")[0]
    whole = text.strip()
    return whole if finished and (prose or ("\n" not in whole and len(whole) <= _ONE_LINER)) else ""


def abstains(answer: str) -> bool:
    """Return whether the answer is [UNKNOWN]."""
    return bool(_ABSTAINS.match(answer))


def bare_words(answer: str) -> str:
    """Return an answer without quotes, markup and its full stop."""
    bare = answer.strip(_WRAPPING)
    return bare[:-1].rstrip(_WRAPPING) if bare.endswith(".") and bare.count(".") == 1 else bare


def _as_it_is(answer: str, question: str) -> str:
    return bare_words(answer)


def _prose(answer: str, question: str) -> str:
    return answer.strip()


def _verdict(answer: str, question: str) -> str:
    found = _VERDICT.match(answer)
    return found[1].capitalize() if found else ""


def _label(answer: str, question: str) -> str:
    """Return the label of the chosen option as the question writes it, also if the answer is the option's text."""
    marks = list(_OPTION.finditer(question))
    ends = [*(mark.start() for mark in marks[1:]), len(question)]
    options = {mark[1].casefold(): mark[1] for mark in marks}
    texts = {
        canonical_key(question[mark.end() : end]): mark[1] for mark, end in zip(marks, ends, strict=False)
    }  # without options there is still one end
    chosen = _CHOSEN.match(answer)
    if chosen and (not options or chosen[1].casefold() in options):
        return options.get(chosen[1].casefold(), chosen[1])
    return texts.get(canonical_key(answer), "")


FORMS: dict[AnswerStyle, AnswerForm] = {
    "short": AnswerForm("answer-short", f"{ANSWER} the answer alone, then its numbers", False, _as_it_is),
    "choice": AnswerForm("answer-choice", f"{ANSWER} the label of one option, then its numbers", False, _label),
    "boolean": AnswerForm("answer-boolean", f"{ANSWER} True, False, Yes or No, then its numbers", False, _verdict),
    "long": AnswerForm("answer-long", f"{ANSWER} one to three paragraphs with their numbers", True, _prose),
    "reader": AnswerForm("reader", f"{ANSWER} the answer alone, then its numbers", False, _as_it_is),
}
