"""How sure is a difference between two systems on the same questions?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["PairedDifference", "paired_bootstrap"]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of a - b, its 95 % interval, and the two-sided p value of "no difference"."""

    mean: float
    low: float
    high: float
    p_value: float


def paired_bootstrap(a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = 0) -> PairedDifference:
    """Resample the questions with replacement; `a[i]` and `b[i]` are two systems' scores on question i.

    The p value is twice the share of resampled means on the far side of zero, at least 1 / samples. Raises ValueError
    for lists of different length or none at all.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"paired scores need equal, non-zero lengths; got {len(a)} and {len(b)}")
    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = difference[rng.integers(0, len(difference), (samples, len(difference)))].mean(axis=1)
    tail = min(np.mean(means <= 0), np.mean(means >= 0))
    low, high = np.percentile(means, [2.5, 97.5])
    return PairedDifference(
        float(difference.mean()), float(low), float(high), float(min(1.0, max(2 * tail, 1 / samples)))
    )
