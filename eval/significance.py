"""Computes the uncertainty of a mean, and of the difference between two systems on the same questions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import TypeVar

import numpy as np

from ras_agent.contracts.arrays import Doubles

_Key = TypeVar("_Key", bound=Hashable)
_Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
_PRIOR = 0.5  # the number of questions added that vary as 0s and 1s do
# the maximum of numbers drawn at once, so that a large question set does not fill the memory
_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Holds a mean over `n` questions with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares two systems on the questions for which both have scores."""

    n: int
    """The number of these questions."""
    difference: Estimate
    """The mean difference of their scores, with its interval."""
    permutation_p: float
    """The two-sided p value of "no difference" by the permutation test."""
    differing: int = 0
    """The number of questions whose scores differ."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Holds median, 95th percentile and mean, in the unit of the values."""

    p50: float
    p95: float
    mean: float


def distribution(values: Sequence[float]) -> Distribution:
    """Return the distribution of values; zeros without values."""
    if not values:
        return Distribution(0.0, 0.0, 0.0)
    p50, p95 = np.percentile(values, [50, 95])
    return Distribution(float(p50), float(p95), fmean(values))


def mean_interval(scores: Sequence[float]) -> Estimate:
    """Return the mean and its 95 % interval. The order of the scores does not matter.

    If all scores are 0 or 1, this is Wilson's interval, which is right also at the ends, where a bootstrap has
    no variance: ten right answers of ten give 72 to 100 %.

    If some scores lie between 0 and 1, it is Wilson's interval for a larger number of questions, because such
    scores vary less than 0s and 1s. Their variance is estimated with half a question added that varies like 0s
    and 1s. The quantile moves from the normal one to Student's t with the square root of the share of scores
    between 0 and 1.

    If scores lie outside 0 to 1, it is Student's interval. lab/intervals.md has the measured coverage.

    Raises:
        ValueError: without scores.
    """
    if not len(scores):
        raise ValueError("a mean needs at least one score")
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    mean = float(ordered.mean())
    n = len(ordered)
    if ordered[0] < 0.0 or ordered[-1] > 1.0:
        degrees = max(1, n - 1)
        error = sqrt(float(ordered.var()) / degrees)
        half = _student(degrees) * error
        return Estimate(mean, mean - half, mean + half, n)
    partly = float(np.mean((ordered > 0.0) & (ordered < 1.0)))
    spread = 1.0
    quantile = _Z
    if partly and n > 1:
        freedom = n - 1 + _PRIOR
        variance = float(ordered.var(ddof=1))
        seen = min(1.0, variance / (mean * (1 - mean)))
        spread = (seen * (n - 1) + _PRIOR) / freedom
        quantile += sqrt(partly) * (_student(freedom) - _Z)
    low, high = _wilson(mean, n / spread, quantile)
    return Estimate(mean, low, high, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values corrected by Holm's method for the number of tests, in the given order."""
    tests = len(p_values)
    corrected = [0.0] * tests
    largest = 0.0
    for rank, place in enumerate(sorted(range(tests), key=p_values.__getitem__)):
        p = (tests - rank) * p_values[place]
        largest = max(largest, min(1.0, p))
        corrected[place] = largest
    return corrected


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of `n`. `z` is the quantile, 1.96 for 95 %."""
    square = z * z
    middle = share + square / (2 * n)
    variance = share * (1 - share) / n
    half = z * sqrt(variance + square / (4 * n * n))
    whole = 1 + square / n
    low = (middle - half) / whole
    high = (middle + half) / whole
    return max(0.0, low), min(1.0, high)


def _student(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t, by its expansion in 1 / freedom.

    The expansion is poor only at very low freedom: at 1 it gives 8.6 instead of 12.7.
    """
    z = _Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


def paired_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of a - b over questions that both systems were asked.

    Following Agresti and Min (2005), who do this for shares, half a question is added for each system, with the
    largest possible difference in its favour. So the coverage is right even if few or no questions differ,
    where a bootstrap has no variance: over six questions the bootstrap's coverage is half of the nominal one.
    lab/intervals.md has the measured coverage.

    Raises:
        ValueError: for lists of different length, and for empty lists.
    """
    difference = _differences(a, b)
    largest = float(np.abs(difference).max())
    square = largest**2 or 1.0
    n = len(difference)
    more = 1.0  # a half for each system
    total = n + more
    mean = float(difference.sum()) / total
    squares = float(np.sum(difference**2)) + more * square
    variance = squares / total - mean**2
    half = _Z * sqrt(max(0.0, variance) / total)
    low = mean - half
    high = mean + half
    if largest <= 1.0:
        return max(-1.0, low), min(1.0, high)
    return low, high


def paired_permutation(
    a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = 0
) -> float:
    """Return the two-sided p value of "no difference" by Fisher's permutation test, which swaps the systems'
    scores on random questions.

    If there are at most `samples` combinations of swaps, all are tried. Otherwise `samples` random ones are
    tried, and the observed result counts as one more.

    Raises:
        ValueError: for lists of different length, and for empty lists.
    """
    difference = _differences(a, b)
    moving = difference[difference != 0]
    count = len(moving)
    # a swapped sum that differs from the observed one only by rounding is as extreme
    observed = abs(moving.sum()) * (1 - 1e-12)
    if 2**count <= samples:
        combinations = np.arange(2**count)
        swaps = combinations[:, None] >> np.arange(count) & 1
        sums = (1 - 2 * swaps) @ moving
        return float(np.mean(np.abs(sums) >= observed))
    rng = np.random.default_rng(seed)
    extreme = 0
    for rows in _batches(samples, count):
        swaps = rng.integers(0, 2, (rows, count), dtype=np.int8)
        sums = (1 - 2 * swaps) @ moving
        extreme += int(np.sum(np.abs(sums) >= observed))
    return (extreme + 1) / (samples + 1)


def compare(a: Mapping[_Key, float], b: Mapping[_Key, float]) -> Comparison:
    """Compare the scores of two systems on the questions that both have scores for. `a` and `b` are scores by
    question.

    Raises:
        ValueError: If they have no question in common.
    """
    common = [name for name in a if name in b]
    if not common:
        raise ValueError(
            "no question was scored in both runs: compare runs over the same questions"
        )
    ours = [a[name] for name in common]
    theirs = [b[name] for name in common]
    differences = _differences(ours, theirs)
    n = len(common)
    low, high = paired_interval(ours, theirs)
    return Comparison(
        n=n,
        difference=Estimate(float(differences.mean()), low, high, n),
        permutation_p=paired_permutation(ours, theirs),
        differing=int(np.count_nonzero(differences)),
    )


def _differences(a: Sequence[float], b: Sequence[float]) -> Doubles:
    if len(a) != len(b) or not len(a):
        raise ValueError(
            f"paired scores need equal, non-zero lengths; got {len(a)} and {len(b)}"
        )
    ours = np.asarray(a, dtype=np.float64)
    theirs = np.asarray(b, dtype=np.float64)
    return ours - theirs


def _batches(samples: int, width: int) -> Iterator[int]:
    """Yield the sizes of batches into which `samples` rows are split. A batch has at most `_CELLS` numbers, or
    one row.
    """
    rows = max(1, _CELLS // width)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)
