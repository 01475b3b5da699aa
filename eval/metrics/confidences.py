"""Measures the confidences of answers: whether they match the share of right answers, and rank right above
wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ras_agent.contracts.arrays import Doubles
from ras_agent.eval.significance import Estimate

BINS = 10
_DRAWS = 500
COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class ConfidenceFigures:
    """Holds the figures of a run's answers that have a confidence."""

    n: int
    """The number of answers."""
    error: Estimate
    """The expected calibration error (ECE), 0..1, with its bootstrap interval."""
    area: Estimate
    """The mean share of wrong answers over all coverages (AURC), with its bootstrap interval."""
    risks: tuple[float, ...]
    """The share of wrong answers among the 1, 2, ... n answers of highest confidence."""

    def risk_at(self, coverage: float) -> float:
        """Return the share of wrong answers if only the most confident answers count; `coverage` is their
        share, 0 to 1.
        """
        count = round(coverage * self.n)
        return self.risks[max(1, count) - 1]


def confidence_figures(
    confidences: Sequence[float], right: Sequence[float]
) -> ConfidenceFigures | None:
    """Return the figures of a run's answers; None if there are no answers.

    Args:
        confidences: The confidence of each answer, from 0 to 1.
        right: 1 for each right answer, 0 for a wrong one.
    """
    if not confidences:
        return None
    sure = np.asarray(confidences, dtype=np.float64)
    worth = np.asarray(right, dtype=np.float64)
    error = _estimate(calibration_error, sure, worth)
    area = _estimate(area_under_risk, sure, worth)
    risks = risks_by_coverage(sure, worth)
    return ConfidenceFigures(len(sure), error, area, tuple(risks.tolist()))


def calibration_error(
    confidences: Sequence[float] | Doubles,
    worths: Sequence[float] | Doubles,
    bins: int = BINS,
) -> float:
    """Return the expected calibration error (Guo et al. 2017, arXiv:1706.04599), from 0 to 1.

    The answers are sorted into `bins` equally wide bins by confidence. The error is the mean distance between a
    bin's mean confidence and mean score, weighted by the number of its answers.

    Args:
        confidences: The confidence of each answer, from 0 to 1.
        worths: The score of each answer, from 0 to 1.
        bins: The number of bins.

    >>> round(calibration_error([0.9, 0.9, 0.1], [1.0, 0.0, 0.1], bins=2), 3)
    0.267
    """
    sure = np.asarray(confidences, dtype=np.float64)
    worth = np.asarray(worths, dtype=np.float64)
    places = (sure * bins).astype(np.int64)
    places = np.minimum(places, bins - 1)
    gaps = np.bincount(places, weights=sure - worth)
    total = np.abs(gaps).sum()
    return float(total / len(sure))


def risks_by_coverage(
    confidences: Sequence[float] | Doubles, right: Sequence[float] | Doubles
) -> Doubles:
    """Return the share of wrong answers among the 1, 2, ... n answers of highest confidence, (n,).

    Answers of equal confidence share their number of wrong answers evenly.

    >>> risks_by_coverage([0.9, 0.5, 0.5], [1, 0, 1]).round(3).tolist()
    [0.0, 0.25, 0.333]
    """
    sure = np.asarray(confidences, dtype=np.float64)
    wrong = 1 - np.asarray(right, dtype=np.float64)
    _, group, counts = np.unique(-sure, return_inverse=True, return_counts=True)
    totals = np.bincount(group, weights=wrong)
    means = totals / counts
    expected = np.repeat(means, counts)
    numbers = np.arange(1, len(sure) + 1)
    risks: Doubles = np.cumsum(expected) / numbers
    return risks


def area_under_risk(
    confidences: Sequence[float] | Doubles, right: Sequence[float] | Doubles
) -> float:
    """Return the mean share of wrong answers over all coverages (AURC). The lower, the better confidences rank
    the answers.
    """
    risks = risks_by_coverage(confidences, right)
    return float(risks.mean())


def _estimate(
    measure: Callable[[Doubles, Doubles], float],
    sure: Doubles,
    worth: Doubles,
) -> Estimate:
    """Return a measure over all answers with its bootstrap interval, for which answers are drawn with
    replacement.
    """
    draw = np.random.default_rng(0)
    n = len(sure)
    values = []
    for _ in range(_DRAWS):
        rows = draw.integers(0, n, n)
        value = measure(sure[rows], worth[rows])
        values.append(value)
    low, high = np.percentile(values, [2.5, 97.5])
    mean = measure(sure, worth)
    return Estimate(mean, float(low), float(high), n)
