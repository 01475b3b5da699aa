"""Ranked lists of passage ids against gold ids. A repeated id counts at its first place only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["all_recalled_at", "hit_at", "recall_at", "reciprocal_rank"]


def recall_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """Share of the gold ids among the first `k` ranked ones, in 0..1; 0.0 without gold."""
    wanted = set(gold)
    return len(wanted.intersection(_first(k, ranked))) / len(wanted) if wanted else 0.0


def all_recalled_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """1.0 if all gold ids are among the first `k` ranked ones, else 0.0; 0.0 without gold."""
    return float(recall_at(k, ranked, gold) == 1.0)


def hit_at(k: int, ranked: Sequence[str], gold: Iterable[str]) -> float:
    """1.0 if any gold id is among the first `k` ranked ones, else 0.0: the hit ratio, averaged over questions.

    With answers for ids this is LEGO-GraphRAG's HR@k of generated answers.
    """
    return float(not set(gold).isdisjoint(_first(k, ranked)))


def reciprocal_rank(ranked: Sequence[str], gold: Iterable[str]) -> float:
    """1 / rank of the first gold id, ranks from 1; 0.0 if there is none. Its mean over questions is MRR."""
    wanted = set(gold)
    return next((1 / rank for rank, name in enumerate(dict.fromkeys(ranked), 1) if name in wanted), 0.0)


def _first(k: int, ranked: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(ranked))[:k]
