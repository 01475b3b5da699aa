"""Which scores count as equal: rounding must not decide the order of hits.

Products of equal vectors differ in their last bits by their place in a batch, by processor and by number of threads:
by 5e-7 for cosines of float32, and relatively no more for sums of positive numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

TIE = 1e-6
"""How far apart two scores may be and still count as equal: as it is for cosines, else as a share of the better one."""


def level(scores: npt.NDArray[Any], *, relative: bool) -> npt.NDArray[Any]:
    """Return descending `scores`, those that tie with a better one raised to the best that they tie with.

    Groups start at the best score, so that no group is wider than TIE, and no hit falls by more behind a worse one.
    """
    allowed = np.abs(scores) * TIE if relative else np.full(len(scores), TIE)
    close = np.flatnonzero(scores[:-1] - scores[1:] <= allowed[:-1]) + 1
    if not len(close):
        return scores
    levelled = scores.tolist()
    for place in close.tolist():
        best = levelled[place - 1]
        if best - levelled[place] <= (TIE * abs(best) if relative else TIE):
            levelled[place] = best
    return np.array(levelled, dtype=scores.dtype)


def best_places(
    scores: npt.NDArray[Any], k: int, *, relative: bool
) -> npt.NDArray[np.intp]:
    """Return the places of the `k` highest scores, best first, ties in their order."""
    order = np.argsort(-scores, kind="stable")
    levelled = level(scores[order], relative=relative)
    return order[np.lexsort((order, -levelled))[:k]]
