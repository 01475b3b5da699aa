"""Finds which option, verdict or class a free-text answer chooses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ras_agent.eval.metrics.answers import exact_match, holds, normalise_answer
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question

_LEAD = re.compile(
    r"^\W*(?:(?:final\s+|correct\s+|the\s+)*answer\s*(?:is|:|=)|option|choice)*\s*",
    re.IGNORECASE,
)
_MARKED = r"^\W*\(?({labels})(?:\s*[).:,](?!\w)|\W*$|\s*[-–—]\s)"
_SAID = r"\b(?:answer|option|choice)\b{gap}(?:is\b{gap})?(?:option\b{gap})?({labels})\b(?!['’])"
_GAP = r"(?:(?!{labels})\W)*+"
_VERDICT = re.compile(
    r"\b(?P<not>(?:not|isn['’]?t|never)\s+(?:(?:entirely|completely|quite|a|really)\s+)*)?"
    r"(?P<word>true|correct|yes|supports?|supported|false|incorrect|no|refutes?|refuted|untrue|wrong)\b",
    re.IGNORECASE,
)
_TRUE = frozenset({"true", "correct", "yes", "support", "supports", "supported"})


def chosen_label(answer: str, choices: Mapping[str, str]) -> str:
    """Return the label of the option that an answer names; "" if it names no option, or several.

    `choices` maps labels to texts. These are tried in order: a label at the beginning ("B", "(B)", "B. text", "Answer:
    B"), "the answer is B", the whole text of one option, the text of exactly one option somewhere in the answer.
    """
    labels = {label.casefold(): label for label in choices}
    if not labels:
        return ""
    pattern = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    bare = _LEAD.sub("", answer.strip())
    if match := re.match(_MARKED.format(labels=pattern), bare, re.IGNORECASE):
        return labels[match[1].casefold()]
    statement = _SAID.format(labels=pattern, gap=_GAP.format(labels=pattern))
    matches = re.findall(statement, answer, re.IGNORECASE)
    labels_named = set(map(str.casefold, matches))
    if len(labels_named) == 1:
        return labels[labels_named.pop()]
    normal = normalise_answer(bare)
    equal = []
    inside = []
    for label, text in choices.items():
        if normal and normalise_answer(text) == normal:
            equal.append(label)
        if holds(answer, [text]):
            inside.append(label)
    labels_told = equal or inside
    if len(labels_told) == 1:
        return labels_told[0]
    return ""


def stated_verdict(answer: str) -> str:
    """Return the verdict that an answer states, "true" or "false"; "" if it states none.

    An answer that states both counts only if it begins with one of them.
    """
    verdicts = []
    for match in _VERDICT.finditer(answer):
        verdicts.append((match.start(), _is_true(match)))
    if not verdicts:
        return ""
    start, first = verdicts[0]
    leads = not re.search(r"\w", _LEAD.sub("", answer[:start]))
    if not leads and len({verdict for _, verdict in verdicts}) > 1:
        return ""
    return ("false", "true")[first]


def chosen_class(answer: str, classes: Iterable[str]) -> str:
    """Return the first of `classes` that the answer mentions, in any case; "" if it mentions no class.

    ExplaGraphs reads answers in this way.
    """
    by_key = {name.casefold(): name for name in classes}
    pattern = "|".join(sorted(map(re.escape, by_key), key=len, reverse=True))
    match = None
    if by_key:
        match = re.search(pattern, answer, re.IGNORECASE)
    if match:
        return by_key[match[0].casefold()]
    return ""


@metric("accuracy", decides=30)
def _accuracy(question: Question, outcome: Outcome) -> float | None:
    """Compare the chosen option, verdict or class with the label.

    Without a label the normalised answer must equal a gold answer.
    """
    if outcome.abstained:
        if question.label or question.answers:
            return 0.0
        return None
    if question.choices:
        if question.label:
            return float(
                chosen_label(outcome.answer, question.choices) == question.label
            )
        return None
    if question.label in ("true", "false"):
        return float(stated_verdict(outcome.answer) == question.label)
    if classes := question.metadata.get("classes"):
        return float(chosen_class(outcome.answer, classes) == question.label)
    if question.answers:
        return exact_match(outcome.answer, question.answers)
    return None


def _is_true(match: re.Match[str]) -> bool:
    return (match["word"].casefold() in _TRUE) != bool(match["not"])
