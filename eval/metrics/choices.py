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
    """Return the label of the option that an answer chooses; "" if it chooses no option, or several.

    `choices` maps labels to texts. The answer chooses an option by, in this order: a label at its beginning
    ("B", "(B)", "B. text", "Answer: B"); "the answer is B"; consisting of one option's text; containing the
    text of exactly one option.
    """
    labels = {label.casefold(): label for label in choices}
    if not labels:
        return ""
    pattern = _any_of(labels)
    bare = _LEAD.sub("", answer.strip())
    marked = _MARKED.format(labels=pattern)
    match = re.match(marked, bare, re.IGNORECASE)
    if match:
        return labels[match[1].casefold()]
    gap = _GAP.format(labels=pattern)
    statement = _SAID.format(labels=pattern, gap=gap)
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
    candidates = equal or inside
    if len(candidates) == 1:
        return candidates[0]
    return ""


def _any_of(texts: Iterable[str]) -> str:
    """Return a pattern that matches any of the texts; if several match, the longest."""
    patterns = sorted(map(re.escape, texts), key=len, reverse=True)
    return "|".join(patterns)


def stated_verdict(answer: str) -> str:
    """Return the verdict that an answer states, "true" or "false"; "" if it states no verdict.

    If it states both, only one at its very beginning counts.
    """
    matches = list(_VERDICT.finditer(answer))
    if not matches:
        return ""
    verdicts = list(map(_verdict, matches))
    before = answer[: matches[0].start()]
    leads = not re.search(r"\w", _LEAD.sub("", before))
    if not leads and len(set(verdicts)) > 1:
        return ""
    return verdicts[0]


def chosen_class(answer: str, classes: Iterable[str]) -> str:
    """Return the first of `classes` that the answer mentions, in any case; "" if it mentions no class.

    ExplaGraphs reads answers in this way.
    """
    by_key = {name.casefold(): name for name in classes}
    if not by_key:
        return ""
    match = re.search(_any_of(by_key), answer, re.IGNORECASE)
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
    classes = question.metadata.get("classes")
    if question.choices:
        if not question.label:
            return None
        choice = chosen_label(outcome.answer, question.choices)
    elif question.label in ("true", "false"):
        choice = stated_verdict(outcome.answer)
    elif classes:
        choice = chosen_class(outcome.answer, classes)
    elif question.answers:
        return exact_match(outcome.answer, question.answers)
    else:
        return None
    return float(choice == question.label)


def _verdict(match: re.Match[str]) -> str:
    is_true = match["word"].casefold() in _TRUE
    if match["not"]:
        is_true = not is_true
    if is_true:
        return "true"
    return "false"
