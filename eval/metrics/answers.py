"""Short answers against gold answers, as SQuAD, HotpotQA, Self-RAG and ALCE score them. Pure functions on strings."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable

__all__ = ["answer_coverage", "exact_match", "golden_match", "holds", "normalise_answer", "squad_f1", "token_f1"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces: SQuAD's and HotpotQA's normalisation."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised prediction equals a normalised gold answer, else 0.0."""
    predicted = normalise_answer(prediction)
    return float(any(predicted == normalise_answer(gold) for gold in golds))


def token_f1(prediction: str, golds: Iterable[str]) -> float:
    """Best token F1 over the gold answers, in 0..1.

    HotpotQA's and 2WikiMultihopQA's rule: where one side is yes, no or noanswer, only an exact match scores.
    """
    return max((_closed_f1(normalise_answer(prediction), normalise_answer(gold)) for gold in golds), default=0.0)


def squad_f1(prediction: str, golds: Iterable[str]) -> float:
    """Best token F1 over the gold answers, in 0..1, without a rule for yes and no: SQuAD's, MuSiQue's and ALCE's.

    Where a side has no tokens, 1.0 if both have none.
    """
    return max((_open_f1(normalise_answer(prediction), normalise_answer(gold)) for gold in golds), default=0.0)


def golden_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised prediction contains a normalised gold answer (RAS, equation 9), else 0.0.

    As published, it may begin inside a word: "Ely" is in "likely". A gold answer of which normalisation leaves nothing
    ("A", "!!!") is looked for as it is written, or everything would match.
    """
    predicted = normalise_answer(prediction)
    for gold in golds:
        wanted = normalise_answer(gold)
        if (wanted in predicted) if wanted else (gold.strip() != "" and gold.strip() in prediction):
            return 1.0
    return 0.0


def answer_coverage(prediction: str, gold_sets: Iterable[Iterable[str]]) -> float:
    """Share of an ambiguous question's readings that a long answer speaks to, in 0..1: ASQA's STR-EM as ALCE has it.

    gold_sets: one set of equivalent short answers a reading. 0.0 without readings.
    """
    found = [golden_match(prediction, golds) for golds in gold_sets]
    return sum(found) / len(found) if found else 0.0


def holds(text: str, answers: Iterable[str]) -> bool:
    """Whether a normalised answer stands in the normalised text as whole words."""
    padded = f" {normalise_answer(text)} "
    return any(f" {wanted} " in padded for answer in answers if (wanted := normalise_answer(answer)))


def _closed_f1(predicted: str, gold: str) -> float:
    if predicted != gold and not _CLOSED.isdisjoint((predicted, gold)):
        return 0.0
    return _overlap(predicted.split(), gold.split())


def _open_f1(predicted: str, gold: str) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    return _overlap(predicted.split(), gold.split())


def _overlap(predicted: list[str], gold: list[str]) -> float:
    shared = sum((Counter(predicted) & Counter(gold)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(gold)
    return 2 * precision * recall / (precision + recall)
