"""Scores lists of answers, as for questions over knowledge graphs with several right answers: precision,
recall, F1, hits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from ras_agent.eval.metrics.answers import f1_of, golden_match, normalise_answer
from ras_agent.eval.metrics.ranking import hit_at
from ras_agent.eval.metrics.registry import Outcome, answer_metric, metric
from ras_agent.eval.question import Question

_BREAK = re.compile(r"\n|;|\|")
_BULLET = re.compile(r"^\s*(?:[-•]|\*(?=\s)|\(?\d{1,3}[.)](?=\s))\s*")


@dataclass(frozen=True, slots=True)
class SetScore:
    """Holds precision, recall and F1 of one set against another, each from 0 to 1."""

    precision: float
    recall: float
    f1: float


def set_score(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> SetScore:
    """Return precision, recall and F1 of `predicted` against `gold`. A ratio whose divisor is 0 is 0.0."""
    predictions = set(predicted)
    answers = set(gold)
    right = len(predictions & answers)
    return _set_score(right, len(predictions), right, len(answers))


def answer_set_score(predicted: Iterable[str], gold: Iterable[str]) -> SetScore:
    """Return precision, recall and F1 of two sets of answers, compared after `normalise_answer`.

    An answer that normalises to nothing is compared unnormalised.
    """
    predictions = _keys(predicted)
    return set_score(predictions, _keys(gold))


def contained_set_score(predicted: Sequence[str], gold: Iterable[str]) -> SetScore:
    """Return the looser precision, recall and F1 that the published scripts for WebQSP and CWQ compute.

    A gold answer is found if the joined prediction contains it. Precision is the number of found gold answers
    divided by the number of predictions, at most 1.0 (one prediction can contain several gold answers).
    """
    answers = list(map(normalise_answer, gold))
    joined_text = normalise_answer(" ".join(predicted))
    count = 0
    if predicted:
        count = sum(answer in joined_text for answer in answers)
    right = min(count, len(predicted))
    return _set_score(right, len(predicted), count, len(answers))


def answer_hit(k: int, predicted: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1.0 if one of the first `k` predictions, normalised, is a gold answer, else 0.0 (Hit@k, HR@k)."""
    ranked = list(_keys(predicted))
    return hit_at(k, ranked, _keys(gold))


def substring_set_score(predicted: Iterable[str], gold: Iterable[str]) -> SetScore:
    """Return precision, recall and F1 by LEGO-GraphRAG's rule: a prediction is right if it contains a gold
    answer.

    Both are normalised as for EM, and the gold answer may begin inside a word. Precision is the share of
    predictions that contain a gold answer, recall the share of gold answers that a prediction contains. As
    published, repeated predictions are counted again. A gold answer that normalises to "" is compared
    unnormalised; the published rule would find it in every prediction.
    """
    predictions = list(predicted)
    answers = list(gold)
    right = 0
    for prediction in predictions:
        right += golden_match(prediction, answers) == 1.0
    hits = 0
    for answer in answers:
        hits += any(golden_match(prediction, [answer]) for prediction in predictions)
    return _set_score(right, len(predictions), hits, len(answers))


def split_answers(answer: str) -> list[str]:
    """Return the answers that a text lists, in order.

    They are separated by lines, semicolons or bars; in a text without these, by commas. Leading bullets and numbers,
    stars around an answer, and repeated answers are dropped.
    """
    parts = _BREAK.split(answer)
    if len(parts) == 1:
        parts = answer.split(", ")
    answers: dict[str, None] = {}
    for part in parts:
        bare = _BULLET.sub("", part).strip()
        text = bare.strip("*").strip()
        if text:
            answers[text] = None
    return list(answers)


def _part_of_score(
    rule: Callable[[Sequence[str], Sequence[str]], SetScore],
    split: Callable[[str], list[str]],
    part: str,
) -> Callable[[str, Sequence[str]], float]:
    """Return a function that splits an answer, and returns a part of its score by `rule`."""

    def scored(answer: str, gold: Sequence[str]) -> float:
        score = rule(split(answer), gold)
        return float(getattr(score, part))

    return scored


@metric("hr", decides=50, cutoff="required")
def _hit_ratio(question: Question, outcome: Outcome, k: int) -> float | None:
    if question.answers:
        return answer_hit(k, _listed(outcome), question.answers)
    return None


@metric("substring_hr", cutoff="required")
def _substring_hit_ratio(question: Question, outcome: Outcome, k: int) -> float | None:
    if not question.answers:
        return None
    for answer in _listed(outcome)[:k]:
        if golden_match(answer, question.answers):
            return 1.0
    return 0.0


def _parts(answer: str) -> list[str]:
    """Split a reply into answers at bars and line ends, as the published scripts do."""
    parts = re.split(r"[|\n]", answer)
    return list(filter(str.strip, parts))


for _part in ("precision", "recall", "f1"):
    answer_metric(f"answer_{_part}")(
        _part_of_score(answer_set_score, split_answers, _part)
    )
for _part in ("f1", "recall"):
    answer_metric(f"contained_{_part}")(
        _part_of_score(contained_set_score, _parts, _part)
    )
answer_metric("substring_f1")(_part_of_score(substring_set_score, split_answers, "f1"))


def _listed(outcome: Outcome) -> list[str]:
    if outcome.abstained:
        return []
    return split_answers(outcome.answer)


def _keys(answers: Iterable[str]) -> dict[str, None]:
    keys: dict[str, None] = {}
    for answer in answers:
        key = normalise_answer(answer) or answer.strip()
        keys[key] = None
    return keys


def _set_score(right: int, predicted: int, hits: int, gold: int) -> SetScore:
    precision = 0.0
    if predicted:
        precision = right / predicted
    recall = 0.0
    if gold:
        recall = hits / gold
    return SetScore(precision, recall, f1_of(precision, recall))
