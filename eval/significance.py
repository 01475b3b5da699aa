"""How certain a mean is, and a difference between two systems on the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ras_agent.arrays import Doubles

_CELLS = 4_000_000  # drawn at once, so that a large question set does not fill the memory


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over `n` questions and its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of a - b, its 95 % interval, and the two-sided p value of "no difference"."""

    mean: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two systems on the `n` questions with a score of both; `only_a` and `only_b` count the others.

    permutation_p: the permutation test's p value, beside the bootstrap's in `difference`.
    """

    n: int
    difference: PairedDifference
    permutation_p: float
    only_a: int
    only_b: int


def mean_interval(scores: Sequence[float], samples: int = 2_000, seed: int = 0) -> Estimate:
    """Return the mean and its percentile bootstrap interval: questions are drawn with replacement, `samples` times.

    The order of the scores does not matter. Raises ValueError without any.
    """
    if not len(scores):
        raise ValueError("a mean needs at least one score")
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    low, high = np.percentile(_resampled_means(ordered, samples, seed), [2.5, 97.5])
    return Estimate(float(ordered.mean()), float(low), float(high), len(ordered))


def paired_bootstrap(a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = 0) -> PairedDifference:
    """Resample the questions with replacement; `a[i]` and `b[i]` are two systems' scores on question i.

    The p value is twice the share of resampled means on the far side of zero, at least 1 / samples. Raises ValueError
    for lists of different length or none at all.
    """
    difference = _differences(a, b)
    means = _resampled_means(difference, samples, seed)
    tail = min(float(np.mean(means <= 0)), float(np.mean(means >= 0)))
    low, high = np.percentile(means, [2.5, 97.5])
    return PairedDifference(
        float(difference.mean()), float(low), float(high), float(min(1.0, max(2 * tail, 1 / samples)))
    )


def paired_permutation(a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p value of "no difference" by Fisher's randomisation, which swaps the systems on questions.

    All swaps are tried if there are at most `samples` of them, else `samples` random ones, the observed one counted as
    one more. Raises ValueError for lists of different length or none at all.
    """
    difference = _differences(a, b)
    moving = difference[difference != 0]
    # a swapped sum that differs from the observed one by rounding alone is as extreme
    observed = abs(moving.sum()) * (1 - 1e-12)
    if 2 ** len(moving) <= samples:
        bits = np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1
        return float(np.mean(np.abs((1 - 2 * bits) @ moving) >= observed))
    rng = np.random.default_rng(seed)
    extreme = 0
    for rows in _batches(samples, len(moving)):
        signs = 1 - 2 * rng.integers(0, 2, (rows, len(moving)), dtype=np.int8)
        extreme += int(np.sum(np.abs(signs @ moving) >= observed))
    return (extreme + 1) / (samples + 1)


def compare(a: Mapping[str, float], b: Mapping[str, float], samples: int = 10_000, seed: int = 0) -> Comparison:
    """Compare two systems' scores by question id. Raises ValueError if they have no question in common."""
    common = [name for name in a if name in b]
    if not common:
        raise ValueError("no question was scored in both runs; they are of different question sets")
    ours, theirs = [a[name] for name in common], [b[name] for name in common]
    return Comparison(
        len(common),
        paired_bootstrap(ours, theirs, samples, seed),
        paired_permutation(ours, theirs, samples, seed),
        len(a) - len(common),
        len(b) - len(common),
    )


def _differences(a: Sequence[float], b: Sequence[float]) -> Doubles:
    if len(a) != len(b) or not len(a):
        raise ValueError(f"paired scores need equal, non-zero lengths; got {len(a)} and {len(b)}")
    return np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)


def _resampled_means(values: Doubles, samples: int, seed: int) -> Doubles:
    """Return (samples,): the means of `samples` draws from `values` with replacement."""
    rng = np.random.default_rng(seed)
    means = [
        values[rng.integers(0, len(values), (rows, len(values)))].mean(axis=1)
        for rows in _batches(samples, len(values))
    ]
    return np.concatenate(means)


def _batches(samples: int, width: int) -> Iterator[int]:
    """Split `samples` rows into batches, and yield their sizes: each has at most `_CELLS` numbers, or one row."""
    rows = max(1, _CELLS // width)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)
