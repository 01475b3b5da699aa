"""Whether an answer is right, by the metric of a run that says it best, and the cost of a right answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ras_agent.errors import UnknownName
from ras_agent.eval.metrics import find_metric
from ras_agent.eval.metrics.confidences import ConfidenceFigures, confidence_figures
from ras_agent.eval.run.prices import Cost
from ras_agent.eval.run.result import Result

_RIGHT = 0.5


@dataclass(frozen=True, slots=True)
class RightAnswers:
    """The right answers of a run, and the tokens and cost for one of them, wrong answers included.

    by: the metric that decides. tokens, cost: of the run for each right answer; None if no answer is right, no model
    was called, or a price is unknown.
    """

    by: str
    count: int
    tokens: float | None
    cost: float | None


def verdict(result: Result, metric: str) -> str:
    """Return "right", "wrong", "abstained" or "error"; right is a score of at least 0.5 in `metric`.

    Where there is no gold answer, to abstain is right.
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
    """Return the metric, of those of a run, that says best whether an answer is right; "" if there are no metrics.

    It is the one with the smallest `Metric.decides`; if no metric has such a number, the first of `names`.
    """
    ranks = {name: rank for name in names if (rank := _rank(name)) is not None}
    return min(ranks, key=lambda name: ranks[name], default=next(iter(names), ""))


def right_answers(results: Sequence[Result], metric: str, cost: Cost) -> RightAnswers:
    """Count the right answers by a metric, and share out among them the tokens and the cost of all questions."""
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


def confidence_of(
    results: Iterable[Result], metric: str, seed: int = 0
) -> ConfidenceFigures | None:
    """Return how well the confidences of the answers said sort the right ones from the wrong; None without any."""
    confidences = []
    right = []
    for result in results:
        said = verdict(result, metric)
        if result.confidence is None or result.abstained or said == "error":
            continue
        confidences.append(result.confidence)
        right.append(float(said == "right"))
    return confidence_figures(confidences, right, seed)


def _each(total: float | None, count: int) -> float | None:
    if total is None or not count:
        return None
    return total / count


def _rank(name: str) -> int | None:
    """Return the metric's rank among those that decide, or None if it never does, or is not installed here."""
    with suppress(UnknownName):
        return find_metric(name).decides
    return None
