"""Answer and retrieval scores as multi-hop QA papers report them. Pure functions on strings and id lists."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["all_recalled_at", "exact_match", "normalise_answer", "recall_at", "token_f1"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise_answer(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces: SQuAD's and HotpotQA's normalisation."""
    bare = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised prediction equals a normalised gold answer, else 0.0."""
    predicted = normalise_answer(prediction)
    return float(any(predicted == normalise_answer(gold) for gold in golds))


def token_f1(prediction: str, golds: Iterable[str]) -> float:
    """Best token F1 over the gold answers, in 0..1.

    HotpotQA's rule: where one side is yes, no or noanswer, only an exact match scores.
    """
    return max((_f1(normalise_answer(prediction), normalise_answer(gold)) for gold in golds), default=0.0)


def _f1(predicted: str, gold: str) -> float:
    if predicted != gold and not _CLOSED.isdisjoint((predicted, gold)):
        return 0.0
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    shared = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(predicted_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def recall_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Share of the gold ids among the first `k` ranked ones, in 0..1; 0.0 without gold."""
    wanted = set(gold)
    return len(wanted & set(ranked[:k])) / len(wanted) if wanted else 0.0


def all_recalled_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """1.0 if all gold ids are among the first `k` ranked ones, else 0.0; 0.0 without gold."""
    return float(recall_at(k, ranked, gold) == 1.0)
