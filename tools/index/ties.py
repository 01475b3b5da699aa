"""Decides which scores count as equal, so that rounding does not decide the order of hits.

Products of equal vectors differ in their last bits, depending on their place in a batch, the processor and the number
of threads: by 5e-7 for cosines of float32, and relatively by no more for sums of positive numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

TIE = 1e-6
"""How far apart two scores may be and still count as equal: absolute for cosines, otherwise a share of the better
score."""


def level(scores: npt.NDArray[Any], *, relative: bool) -> npt.NDArray[Any]:
    """Return descending scores, in which each score that ties with a better one is raised to it.

    Groups of ties are formed from the best score on, so that no group is wider than TIE.

    Args:
        relative: whether TIE is a share of the better score, or absolute.
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
    """Return the positions of the `k` highest scores, best first; ties keep their order.

    Args:
        relative: see `level`.
    """
    order = np.argsort(-scores, kind="stable")
    levelled = level(scores[order], relative=relative)
    return order[np.lexsort((order, -levelled))[:k]]
