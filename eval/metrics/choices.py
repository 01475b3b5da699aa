"""Which option or verdict does a free-text answer choose?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ras_agent.eval.metrics.answers import holds, normalise_answer

__all__ = ["chosen_class", "chosen_label", "stated_verdict"]

_LEAD = re.compile(r"^\W*(?:(?:final\s+|correct\s+|the\s+)*answer\s*(?:is|:|=)|option|choice)*\s*", re.IGNORECASE)
_MARKED = r"^\W*\(?({labels})(?:\s*[).:,](?!\w)|\W*$|\s*[-–—]\s)"
_SAID = r"\b(?:answer|option|choice)\b\W*(?:is\b|:|=)?\W*(?:option\b\W*)?\(?({labels})\b(?!['’])"
_VERDICT = re.compile(
    r"\b(?P<not>(?:not|isn['’]?t|never)\s+(?:(?:entirely|completely|quite|a|really)\s+)*)?"
    r"(?P<word>true|correct|yes|supports?|supported|false|incorrect|no|refutes?|refuted|untrue|wrong)\b",
    re.IGNORECASE,
)
_TRUE = frozenset({"true", "correct", "yes", "support", "supports", "supported"})


def chosen_label(answer: str, choices: Mapping[str, str]) -> str:
    """The label of the option that an answer names, as `choices` ({label: text}) writes it; empty if none or several.

    In this order: a label in front ("B", "(B)", "B. text", "Answer: B"), "the answer is B", the whole text of one
    option, the text of exactly one option somewhere in the answer.
    """
    labels = {label.casefold(): label for label in choices}
    if not labels:
        return ""
    pattern = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    bare = _LEAD.sub("", answer.strip())
    if found := re.match(_MARKED.format(labels=pattern), bare, re.IGNORECASE):
        return labels[found[1].casefold()]
    said = {found.casefold() for found in re.findall(_SAID.format(labels=pattern), answer, re.IGNORECASE)}
    if len(said) == 1:
        return labels[said.pop()]
    whole = normalise_answer(bare)
    equal = [label for label, text in choices.items() if whole and normalise_answer(text) == whole]
    inside = equal or [label for label, text in choices.items() if holds(answer, [text])]
    return inside[0] if len(inside) == 1 else ""


def stated_verdict(answer: str) -> str:
    """ "true" or "false" as the answer says; empty if it says neither, or both with neither in front."""
    verdicts = [(found.start(), _is_true(found)) for found in _VERDICT.finditer(answer)]
    if not verdicts:
        return ""
    start, first = verdicts[0]
    leads = not re.search(r"\w", _LEAD.sub("", answer[:start]))
    return "" if not leads and len({verdict for _, verdict in verdicts}) > 1 else ("false", "true")[first]


def chosen_class(answer: str, classes: Iterable[str]) -> str:
    """The first of `classes` that the answer mentions, in any case; empty if none. ExplaGraphs' answers are read so."""
    known = {name.casefold(): name for name in classes}
    pattern = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    found = re.search(pattern, answer, re.IGNORECASE) if known else None
    return known[found[0].casefold()] if found else ""


def _is_true(found: re.Match[str]) -> bool:
    return (found["word"].casefold() in _TRUE) != bool(found["not"])
