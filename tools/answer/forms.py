"""Describes the forms of answers (short, choice, boolean, ...), and parses an answer out of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ras_agent.contracts.marks import (
    ANSWER,
    ANSWER_HEADING,
    ANSWER_IS,
    FLAGS,
    INLINE_ANSWER,
    QUESTION,
    SUBJECT,
    UNKNOWN,
    WRAPPING_TAGS,
    ends_chain,
    number_text,
)
from ras_agent.contracts.records import AnswerStyle
from ras_agent.text.canonical import canonical_key
from ras_agent.text.loose_json import Value, is_json, json_objects
from ras_agent.text.options import options_of
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.unusable import abstains_in_words, refuses
from ras_agent.text.words import key_words
from ras_agent.tools.chat.form import ReplyForm
from ras_agent.tools.chat.thoughts import spoken_span, without_thinking

_ANSWER = re.compile(rf"{ANSWER.live}|{ANSWER_HEADING.live}", FLAGS)
_OPENING_TAG = re.compile(rf"<({'|'.join(WRAPPING_TAGS)})(?:\s[^<>]*+)?+>", FLAGS)
_CLOSING_TAG = re.compile(rf"</(?:{'|'.join(WRAPPING_TAGS)})\s*+>", FLAGS)
# tags that only contain an answer; the other wrapping tags may contain a whole reply
_ANSWER_TAGS = ("answer", "finalanswer", "shortanswer", "answertext", "ans", "final")
_LABEL_AGAIN = re.compile(
    rf"\A(?:[\s*_`]*+(?:{INLINE_ANSWER.live}|(?:final|short)\s++answer\s*+:|"
    r"(?:response|final|result|output|reply)\s*+[:：]|"
    r"(?:so[\s,]++)?(?:the\s++)?(?:(?:final|correct|short)\s++)?answer\s++is\b\s*+:?+)[*_`]*+)++",
    FLAGS,
)
_LABEL_WORDS = (
    "answer:",
    "final answer:",
    "short answer:",
    "so the answer is",
    "the answer is",
    "the final answer is",
)
_INLINE = re.compile(INLINE_ANSWER.live, FLAGS)
_ANSWER_IS = re.compile(ANSWER_IS.live, FLAGS)
_QUESTION = re.compile(
    rf"{QUESTION.live}|^\W{{0,5}}(?:exercise|example|task|instruction)s?\b[^:\n]{{0,20}}:",
    FLAGS,
)
_ADVERB = re.compile(r"\A(?:definitely|clearly|therefore|thus|indeed) ")
_KEYS = ("answer", "final_answer", "short_answer", "response", "result", "output")
_INNER_KEYS = ("text", "value", "name")
_ANSWER_KEY = re.compile(r"answer[\"']\s*:\s*\Z", re.I)
_LONGEST_KEY = 40
_CITED = re.compile(
    r"(?:(?:passage|fact|evidence|source|document)s?\b|[\s\[\],;#&]|and\b|\d{1,4})*+",
    re.IGNORECASE,
)
_CITATION_KEYS = (
    "citations",
    "citation",
    "cites",
    "cite",
    "sources",
    "source",
    "references",
)
_TEX = r"\\(?:boxed|fbox|text(?:bf|it|rm)?|math(?:rm|bf|it))"
_BOXED = re.compile(
    rf"(?<!\$)\$*+{_TEX}\{{(?:{_TEX}\{{([^{{}}]*+)\}}|([^{{}}]*+))\}}\$*+"
)
_BOX_TOKENS = re.compile(r"<\|(?:begin|end)_of_box\|>")
_INLINE_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|span|p|br|div|mark|code|sub|root)(?:\s[^<>]*+)?+/?>", FLAGS
)
_CITING_TAG = re.compile(
    r"<(?:sup>\s*+\[|(?:cite|citations?|source|ref)>\s*+\[?)(\d{1,4}(?:\s*+,\s*+\d{1,4})*+)\]?\s*+</\w++>",
    FLAGS,
)
# [^1], [[1]], 【1†source】 and [1](#passage) are citations too; other links are replaced by their text
_CITING = re.compile(
    r"\[\^(\d{1,4})\]|\[\[(\d{1,4})\]\](?:\([^()\s]*+\))?+|【(\d{1,4})†[^【】\n]{0,60}+】|\[(\d{1,4})\]\([#/h][^()\s]*+\)"
)
_LINK = re.compile(r"\[([^\[\]\n]{1,200}+)\]\((?:https?:/)?+[#/][^()\s]*+\)")
# the closing words of Minerva's answers
_HOPE = re.compile(
    r"(?:\.|(?<!\s))\s++I hope (?:it|this) is correct\W*\Z", re.IGNORECASE
)
_MATHS = re.compile(r"\\[()\[\]]")
# angle brackets around the answer, copied from the instructions
_ANGLES = re.compile(r"\A<([^<>/\n]+)>")
_UNKNOWN_WORD = str(UNKNOWN).strip("[]")
# also the word in capitals without brackets, but not as inert data, which has look-alikes of brackets
_ABSTAINS = re.compile(rf"\W*(?i:{UNKNOWN.live})|[^\w‹›]*+{_UNKNOWN_WORD}[^\w‹›]*+\Z")
_VERDICT = re.compile(
    r"\W*(?:(?:the|this) (?:statement|claim|answer) is (?:therefore )?)?(?:(not) (?=true|false))?(true|false|yes|no)\b",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"\W*(?:option\s+)?([A-Za-z]|\d{1,2})(?:[).:,]|\W*\Z)", re.IGNORECASE
)
_NUMBERS = r"(?: ?\[\d{1,3}\]){0,6}"
_SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "minLength": 1},
        "citations": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["answer", "citations"],
    "additionalProperties": False,
}
_ANSWER_BEGINS = re.compile(
    rf"\W*(?:the |my )?(?:final |correct )?{ANSWER_IS.live}\W*", FLAGS
)
_LIST_MARK = re.compile(r"(?:[-*•]|\(?(?:[A-Za-z]|\d{1,2})[.)])\s+")
_YES_OR_NO = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_ASKS_YES_OR_NO = re.compile(
    r"\W*(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might)(?:n['’]?t)?\b",
    re.I,
)
_FACT = re.compile(rf"\W*{SUBJECT.live}", FLAGS)
_NO_ANSWER = re.compile(
    r"[(\[<]\s*(?:S>|SUBQ|SUFF|NO_|/?passage|/?facts)|\b[SPO]> |[:?]\s*\Z",
    re.IGNORECASE,
)
_WRAPPING = ' \t\n*_`"“”'
_ONE_LINER = 200


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Describes a form of answers: how it is asked for, and how it is parsed."""

    prompt: str
    """The name of its prompt."""
    words: str
    """The form in words; a reply that repeats them is not an answer."""
    example: str
    """A reply in this form, for a second request."""
    prose: bool
    """Whether citations, and lines after the first, stay in the text."""
    read: Callable[[str, str], str]
    """Returns the answer, given the answer part of a reply and the question; "" if it does not have the form."""
    listed: bool = False
    """Whether JSON in a reply is kept as text, since it may hold the answer and the list that follows it."""
    pattern: str = ""
    """A regular expression of the answer, without "Answer:" and citation numbers, which a server may enforce; "" for
    prose, which has no fixed form.
    """

    def reply_form(self, *, may_abstain: bool) -> ReplyForm | None:
        """Return the form that a server enforces on a reply; None for prose."""
        if not self.pattern:
            return None
        answer = f"(?:{self.pattern}){_NUMBERS}"
        unknown = str(UNKNOWN).replace("[", r"\[").replace("]", r"\]")
        return ReplyForm(
            f"{ANSWER} (?:{unknown}|{answer})" if may_abstain else f"{ANSWER} {answer}",
            _SCHEMA,
        )


def answer_part(
    reply: str, *, prose: bool, finished: bool = True, listed: bool = False
) -> str:
    """Return the part of a reply that is the answer; "" if there is no such part.

    In prose this is everything after the first "Answer:". Otherwise it is the rest of the line after the last one,
    since reasoning may come before it; text after another "Question:" is ignored. A finished reply without
    "Answer:" is itself the answer if it is prose, JSON or a single short line, or ends with "the answer is ...".

    Args:
        finished: whether the reply is complete; if not, the result is the part that is certain so far.
        listed: whether JSON is treated as prose.
    """
    text = without_thinking(reply)
    if not finished:
        part = _behind_label(_without_tags(text), prose=prose)
        may_be_wrapped = part[:1] in tuple("{[\\$<`")
        if may_be_wrapped or _may_become_label(part):
            return ""
        return part.partition("<")[0]
    text = _without_tags(text)
    if not listed and (is_json(text) or "```" in text):
        answer = _in_json(text, prose=prose)
        if answer or is_json(text):
            return answer
    part = _behind_label(text, prose=prose) or _without_label(text, prose=prose)
    if "[" not in part and refuses(text):
        return text.strip().partition("\n")[0]
    if listed:
        return part
    return _unwrap(part, prose=prose)


def first_words(reply: str, question: str) -> str:
    r"""Return the first sentence of a reply that has no known form, or its "Yes" or "No"; "" if it says nothing.

    Questions, announcements, refusals and sentences that only repeat words of the question say nothing.

    >>> first_words("The answer is:\nPeter Perry\n\nThe text says so.", "Who watched over the park?")
    'Peter Perry'
    """
    text = _ANSWER_BEGINS.sub("", without_thinking(reply).strip(), count=1)
    if _LIST_MARK.match(text):
        text = _LIST_MARK.sub("", text, count=1)
    verdict = _YES_OR_NO.match(text)
    if verdict and _ASKS_YES_OR_NO.match(question):
        return verdict[1].capitalize()
    first = text.partition("\n")[0]
    sentence = next(
        (first[start:end] for start, end in sentence_spans(first)), ""
    ).strip()
    if (
        key_words(sentence) <= key_words(question)
        or _NO_ANSWER.search(sentence)
        or refuses(sentence)
    ):
        return ""
    return sentence


def is_fact(answer: str) -> bool:
    """Return whether an answer is a fact in the notation of the evidence, which models sometimes copy."""
    return _FACT.match(answer) is not None


def restates(answer: str, question: str) -> bool:
    """Return whether an answer consists of more than half of the question's words, and of no others.

    >>> restates("A series written by a student", "Which series is written by a student?")
    True
    """
    said = key_words(answer)
    asked = key_words(question)
    return said <= asked and 2 * len(said) > len(asked)


def opens_with_answer(reply: str) -> bool:
    """Return whether an unfinished reply begins with its answer, so that no unmarked thought can come before it."""
    start, _ = spoken_span(reply)
    if start > 0:
        return True
    text = reply.lstrip()
    return bool(_ANSWER.match(text) or _OPENING_TAG.match(text))


def _may_become_label(part: str) -> bool:
    """Return whether the beginning of an answer may still grow into another label such as "Answer:"."""
    words = part.strip(_WRAPPING).casefold()
    return any(label.startswith(words) for label in _LABEL_WORDS)


def _without_tags(text: str) -> str:
    """Return a reply without tags around its answer; tags that cite become bracketed numbers."""
    text = _BOX_TOKENS.sub("", text)
    text = _CITING_TAG.sub(_citation, text)
    text = _CITING.sub(_citation, text)
    openings = list(_OPENING_TAG.finditer(text))
    if not openings:
        return _CLOSING_TAG.sub("", text)
    opening = openings[-1]
    closing = _CLOSING_TAG.search(text, opening.end())
    inside_ends = closing.start() if closing else len(text)
    inside = text[opening.end() : inside_ends].strip()
    if closing:
        behind = _CLOSING_TAG.sub("", text[closing.end() :])
    else:
        behind = ""
    if _ANSWER.search(behind):
        return behind
    name = re.sub(r"[_-]", "", opening[1].lower())
    if name in _ANSWER_TAGS and not _ANSWER.search(inside) and not is_json(inside):
        inside = f"{ANSWER} {inside}"
    cited = _INLINE_TAG.sub("", behind).strip()
    if cited and _CITED.fullmatch(cited):
        return f"{inside} {cited}"
    return inside


def _citation(tag: re.Match[str]) -> str:
    """Return the numbers in a citing tag as marks: `<cite>1, 3</cite>` becomes `[1][3]`."""
    stated = "".join(filter(None, tag.groups()))
    numbers = map(int, re.findall(r"\d+", stated))
    return "".join(map(number_text, numbers))


def _behind_label(text: str, *, prose: bool) -> str:
    marks = list(_ANSWER.finditer(text))
    if not marks and not prose:
        marks = list(_INLINE.finditer(text))
    if not marks:
        return ""
    if (another := _QUESTION.search(text, marks[0].end())) is not None:
        text = text[: another.start()]
        marks = [mark for mark in marks if mark.end() <= another.start()]
    behind = text[marks[0 if prose else -1].end() :].strip()
    if prose:
        return behind
    first_line = behind.partition("\n")[0]
    return _LABEL_AGAIN.sub("", first_line).lstrip()


def _without_label(text: str, *, prose: bool) -> str:
    stripped = text.strip()
    if prose:
        return stripped
    last = stripped.rpartition("\n")[2]
    if not stripped or _ANSWER.search(text) or _INLINE.search(text):
        return ""  # there is a label, with nothing after it
    if boxes := list(_BOXED.finditer(last)):
        return last[boxes[-1].start() :]
    if statements := list(_ANSWER_IS.finditer(last)):
        if ends_chain(last):
            return _ADVERB.sub("", last[statements[-1].end() :].lstrip(" \t:："))
        if last == stripped and abstains(stripped):
            return stripped
        return ""
    if last == stripped and len(stripped) <= _ONE_LINER:
        return _LABEL_AGAIN.sub("", stripped)
    return ""


def _in_json(text: str, *, prose: bool) -> str:
    """Return the answer in a reply's JSON and its citation numbers; "" without an answer.

    The first object that has an answer counts; the numbers are under its citation key.
    """
    for start, item in json_objects(text):
        keys = [key for key in _KEYS if key in item]
        before = text[max(0, start - _LONGEST_KEY) : start]
        if not keys and _ANSWER_KEY.search(before):
            keys = [key for key in _INNER_KEYS if key in item]
        if not keys:
            continue
        answer = _text(item[keys[0]])
        if _ANSWER.search(answer) or (not prose and _INLINE.search(answer)):
            answer = _behind_label(answer, prose=prose)
        if not answer or "[" in answer:
            return answer
        cited = next((_text(item[name]) for name in _CITATION_KEYS if name in item), "")
        numbers = ""
        if _CITED.fullmatch(cited):
            numbers = "".join(f"[{number}]" for number in re.findall(r"\d+", cited))
        return f"{answer} {numbers}".rstrip()
    return ""


def _text(value: Value) -> str:
    """Return a JSON value as the text of an answer: null becomes [UNKNOWN], and lists are joined with commas."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if value is None:
        return str(UNKNOWN)
    return str(value).strip()


def _unwrap(part: str, *, prose: bool) -> str:
    """Return an answer without the JSON, tags or box around it."""
    part = part.strip()
    if is_json(part):
        return _in_json(part, prose=prose) or part
    if prose:
        return part
    unboxed = _BOXED.sub(lambda box: box[1] or box[2] or "", part)
    unlinked = _LINK.sub(r"\1", unboxed)
    untagged = _INLINE_TAG.sub("", unlinked)
    plain = _MATHS.sub("", untagged).strip()
    return _ANGLES.sub(r"\1", _HOPE.sub("", plain))


def abstains(answer: str) -> bool:
    """Return whether an answer is [UNKNOWN], says in words that there is no answer, or refuses to give one."""
    if _ABSTAINS.match(answer):
        return True
    return abstains_in_words(answer) or refuses(answer)


def bare_words(answer: str) -> str:
    """Return an answer without quotes, markup and its final full stop."""
    bare = answer.strip(_WRAPPING)
    if bare.endswith(".") and bare.count(".") == 1:
        return bare[:-1].rstrip(_WRAPPING)
    return bare


def _as_it_is(answer: str, question: str) -> str:
    return bare_words(answer)


def _prose(answer: str, question: str) -> str:
    return answer.strip()


def _verdict(answer: str, question: str) -> str:
    match = _VERDICT.match(answer)
    if match is None:
        return ""
    verdict = match[2].capitalize()
    if match[1]:
        return str(verdict == "False")
    return verdict


def _label(answer: str, question: str) -> str:
    """Return the label of the chosen option as the question writes it, even if the answer is the option's text.

    Return "" if the answer chooses none of the question's options.
    """
    labels = {}
    by_text = {}
    for label, text in options_of(question).items():
        labels[label.casefold()] = label
        by_text[canonical_key(text)] = label
    chosen = _CHOSEN.match(answer)
    if chosen and not labels:
        return chosen[1]
    if chosen and chosen[1].casefold() in labels:
        return labels[chosen[1].casefold()]
    return by_text.get(canonical_key(answer), "")


_ALONE = "the answer alone, then its numbers"
_SHORT = r"[^\n\[\]]{1,120}"
_LONG_EXAMPLE = (
    f"{ANSWER} Verdi was born in Le Roncole [1]. The village lies near Busseto [2]."
)
_CITING_EXAMPLE = f"{ANSWER} Le Roncole\nNodes:\n- Giuseppe Verdi\nEdges:\n- (Giuseppe Verdi; was born in; Le Roncole)"

FORMS: dict[AnswerStyle, AnswerForm] = {
    "short": AnswerForm(
        "answer-short",
        _ALONE,
        f"{ANSWER} Le Roncole [1][3]",
        False,
        _as_it_is,
        pattern=_SHORT,
    ),
    "choice": AnswerForm(
        "answer-choice",
        "the label of one option, then its numbers",
        f"{ANSWER} B [2]",
        False,
        _label,
        pattern=r"[A-Za-z0-9]{1,2}",
    ),
    "boolean": AnswerForm(
        "answer-boolean",
        "True, False, Yes or No, then its numbers",
        f"{ANSWER} No [1][2]",
        False,
        _verdict,
        pattern="True|False|Yes|No",
    ),
    "long": AnswerForm(
        "answer-long",
        "one to three paragraphs with their numbers",
        _LONG_EXAMPLE,
        True,
        _prose,
    ),
    "citing": AnswerForm(
        "answer-citing",
        "the answer alone, then Nodes: and Edges:",
        _CITING_EXAMPLE,
        True,
        _prose,
        True,
    ),
    "reader": AnswerForm(
        "reader",
        _ALONE,
        f"{ANSWER} Le Roncole [1][3]",
        False,
        _as_it_is,
        pattern=_SHORT,
    ),
}
