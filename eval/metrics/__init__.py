"""Scores answers from 0 to 1, as the papers do: by pure functions, and by metrics that are found by name."""

from ras_agent.eval.metrics.answers import (
    exact_match,
    holds,
    normalise_answer,
    token_f1,
)
from ras_agent.eval.metrics.grounding import checkable
from ras_agent.eval.metrics.ranking import (
    all_recalled_at,
    ceilings,
    recall_at,
    reciprocal_rank,
)
from ras_agent.eval.metrics.registry import (
    Metric,
    Outcome,
    answer_metric,
    find_metric,
    metric,
    metric_names,
    ranking_metric,
    score,
)

__all__ = [
    "Metric",
    "Outcome",
    "all_recalled_at",
    "answer_metric",
    "ceilings",
    "checkable",
    "exact_match",
    "find_metric",
    "holds",
    "metric",
    "metric_names",
    "normalise_answer",
    "ranking_metric",
    "recall_at",
    "reciprocal_rank",
    "score",
    "token_f1",
]
