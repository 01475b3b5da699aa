"""Decides whether an answer is right, by the best suited metric of a run, and computes the cost of a right
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ras_agent.contracts.errors import UnknownName
from ras_agent.eval.metrics import find_metric
from ras_agent.eval.metrics.confidences import ConfidenceFigures, confidence_figures
from ras_agent.eval.run.prices import Cost
from ras_agent.eval.run.result import Result

_RIGHT = 0.5


@dataclass(frozen=True, slots=True)
class RightAnswers:
    """Counts the right answers of a run, and the tokens and money spent for each."""

    by: str
    """The metric that decides whether an answer is right."""
    count: int
    tokens: float | None
    """All tokens of the run divided by the right answers; None if no answer is right or no model was called."""
    cost: float | None
    """The cost of the run divided by the right answers; None if `tokens` is, or if a price is unknown."""


def verdict(result: Result, metric: str) -> str:
    """Return "right", "wrong", "abstained" or "error"; right is a score of at least 0.5 in `metric`.

    If the question has no gold answer, an abstention is right.
    """
    if result.error:
        return "error"
    if result.abstained and not result.answers:
        return "right"
    if result.scores.get(metric, 0.0) >= _RIGHT:
        return "right"
    if result.abstained:
        return "abstained"
    return "wrong"


def deciding_metric(names: Sequence[str]) -> str:
    """Return the metric among `names` that best tells whether an answer is right; "" if there are no metrics.

    It is the metric with the smallest `Metric.decides`, or the first of `names` if no metric has such a rank.
    """
    ranks = {}
    for name in names:
        rank = _rank(name)
        if rank is not None:
            ranks[name] = rank
    if not names:
        return ""
    return min(ranks, key=lambda name: ranks[name], default=names[0])


def right_answers(results: Sequence[Result], metric: str, cost: Cost) -> RightAnswers:
    """Count the right answers by a metric, and divide the tokens and the cost of all questions by that number."""
    verdicts = [verdict(result, metric) for result in results]
    count = verdicts.count("right")
    tokens = sum(result.tokens for result in results)
    paid = None
    if tokens and not cost.unpriced:
        paid = cost.total
    return RightAnswers(
        by=metric,
        count=count,
        tokens=_each(tokens or None, count),
        cost=_each(paid, count),
    )


def confidence_of(results: Iterable[Result], metric: str) -> ConfidenceFigures | None:
    """Return how well confidences separate right from wrong answers; None without confidences. Abstentions are
    ignored.

    `metric` decides whether an answer is right.
    """
    confidences = []
    right = []
    for result in results:
        said = verdict(result, metric)
        if result.confidence is None or result.abstained or said == "error":
            continue
        confidences.append(result.confidence)
        right.append(float(said == "right"))
    return confidence_figures(confidences, right)


def _each(total: float | None, count: int) -> float | None:
    if total is None or not count:
        return None
    return total / count


def _rank(name: str) -> int | None:
    """Return the metric's rank among those that decide; None if it has no rank or is not installed."""
    with suppress(UnknownName):
        return find_metric(name).decides
    return None
