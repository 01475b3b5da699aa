"""Ranked passages against gold passages, by their names. A repeated name counts at its first place only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ras_agent.eval.metrics.registry import Outcome, metric, ranking_metric
from ras_agent.eval.question import Question


@ranking_metric("recall")
def recall_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return the share of the gold names among the first `k` ranked ones, in 0..1; 0.0 without gold."""
    relevant = set(gold)
    return len(relevant.intersection(_first(k, ranked))) / len(relevant) if relevant else 0.0


@ranking_metric("all_recall", decides=90)
def all_recalled_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1.0 if all gold names are among the first `k` ranked ones, else 0.0; 0.0 without gold."""
    return float(recall_at(k, ranked, gold) == 1.0)


@ranking_metric("hit", decides=40)
def hit_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1.0 if any gold name is among the first `k` ranked ones, else 0.0. Its mean is the hit ratio.

    With answers in place of passages this is LEGO-GraphRAG's HR@k of generated answers.
    """
    return float(not set(gold).isdisjoint(_first(k, ranked)))


def reciprocal_rank(ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Return 1 / rank of the first gold name, ranks from 1; 0.0 if there is none. Its mean over questions is MRR."""
    relevant = set(gold)
    return next((1 / rank for rank, name in enumerate(dict.fromkeys(ranked), 1) if name in relevant), 0.0)


@metric("mrr", of_passages=True)
def _mrr(question: Question, outcome: Outcome) -> float | None:
    return reciprocal_rank(outcome.ranked(question), question.supporting) if question.supporting else None


def _first(k: int, ranked: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(ranked))[:k]
