"""Compares the names of ranked passages with those of gold passages. A repeated name counts once, at its first rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from statistics import fmean

from ras_agent.eval.metrics.registry import Outcome, metric, ranking_metric
from ras_agent.eval.question import Question


@ranking_metric("recall")
def recall_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return the share of the gold names among the first `k` ranked ones, in 0..1; 0.0 without gold."""
    relevant = set(gold)
    if not relevant:
        return 0.0
    found = relevant.intersection(_first(k, ranked))
    return len(found) / len(relevant)


@ranking_metric("all_recall", decides=90)
def all_recalled_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1.0 if all gold names are among the first `k` ranked ones, else 0.0; 0.0 without gold."""
    recall = recall_at(k, ranked, gold)
    return float(recall == 1.0)


@ranking_metric("hit", decides=40)
def hit_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1.0 if any gold name is among the first `k` ranked ones, else 0.0. The mean is the hit ratio.

    With answers instead of passages this is LEGO-GraphRAG's HR@k of generated answers.
    """
    hits = set(gold).intersection(_first(k, ranked))
    return float(bool(hits))


def ceilings(
    metrics: Iterable[str], golds: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Return the highest mean score that any ranking can reach in each `recall@k` and `all_recall@k`, if it is
    below 1.

    It is below 1 if questions have more than `k` gold names.

    Args:
        metrics: The names of the metrics.
        golds: The gold names of each question that has any.
    """
    rules = {"recall": recall_at, "all_recall": all_recalled_at}
    bounds = {}
    for name in metrics:
        base, _, cutoff = name.partition("@")
        if base not in rules or not cutoff.isdigit() or not golds:
            continue
        scores = [rules[base](int(cutoff), gold, gold) for gold in golds]
        bound = fmean(scores)
        if bound < 1:
            bounds[name] = bound
    return bounds


def reciprocal_rank(ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1 / the rank of the first gold name, where ranks start at 1; 0.0 without a gold name. Its mean is
    MRR.
    """
    relevant = set(gold)
    for rank, name in enumerate(dict.fromkeys(ranked), 1):
        if name in relevant:
            return 1 / rank
    return 0.0


@metric("mrr", of_passages=True)
def _mrr(question: Question, outcome: Outcome) -> float | None:
    if question.supporting:
        return reciprocal_rank(outcome.ranked(question), question.supporting)
    return None


@metric("ndcg", of_passages=True, cutoff="optional")
def _ndcg(question: Question, outcome: Outcome, k: int | None = None) -> float | None:
    """Return nDCG by the question's grades of relevance (BEIR's `qrels`). Without grades each gold passage has
    grade 1.

    It is that of Järvelin and Kekäläinen (2002) with linear gains, as trec_eval's ndcg_cut and BEIR compute it.
    """
    if not question.supporting:
        return None
    grades = question.relevance or dict.fromkeys(question.supporting, 1)
    ranked = outcome.ranked(question)
    depth = k or max(1, len(outcome.passages))
    return ndcg_at(depth, ranked, grades)


def ndcg_at(k: int, ranked: Sequence[str], grades: Mapping[str, float]) -> float:
    """Return the discounted gain of the first `k` ranked names, divided by that of the best order, in 0..1 (nDCG@k).

    It is 0.0 without grades. The gain of rank r is grade / log2(r + 1); a grade below 0 gains nothing.
    """
    ordered = sorted(grades.values(), reverse=True)
    best = _gain(ordered[:k])
    if not best:
        return 0.0
    first = _first(k, ranked)
    gained = [grades.get(name, 0.0) for name in first]
    return _gain(gained) / best


def _gain(grades: Iterable[float]) -> float:
    gain = 0.0
    for rank, grade in enumerate(grades, 1):
        gain += max(0.0, grade) / log2(rank + 1)
    return gain


def _first(k: int, ranked: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(ranked))
    return names[:k]
