"""Ranks the rows of a corpus: finds the k best rows by score, with ties in a stable order."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.tools.index.ties import TIE, level

_BLOCKS = 256
_LEAST = np.finfo(np.float32).smallest_subnormal


class Ranking(NamedTuple):
    """Holds the best rows of a corpus with their scores (float32), in descending order; ties are in corpus order."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    @classmethod
    def empty(cls) -> Self:
        """Return a ranking without rows."""
        rows = np.empty(0, dtype=np.int64)
        return cls(rows, np.empty(0, dtype=np.float32))


def top_k(scores: npt.NDArray[np.float32], k: int) -> Ranking:
    """Return the `k` highest of the positive `scores`, or fewer; ties (see ties.py) are in the order of rows."""
    # rows that tie with the k-th best score may come before it
    tied = np.float32(1 - 2 * TIE)
    least = max(_floor(scores, k) * tied, _LEAST)
    rows = np.flatnonzero(scores >= least)
    if len(rows) > k:
        best = scores[rows]
        last = np.partition(best, -k)[-k]
        rows = rows[best >= last * tied]
    order = np.argsort(-scores[rows], kind="stable")
    rows = rows[order]
    best = level(scores[rows], relative=True)
    order = np.lexsort((rows, -best))[:k]
    return Ranking(rows[order], best[order])


def root_shares(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the square roots of the scores after scaling them to 0..1; if all scores are equal, return ones."""
    above = scores - scores.min()
    highest = above.max()
    if not highest:
        return np.ones_like(scores)
    roots: npt.NDArray[np.float32] = np.sqrt(above / highest)
    return roots


def _floor(scores: npt.NDArray[np.float32], k: int) -> np.float32:
    """Return a positive bound that at least `k` scores reach, or the least positive number.

    The bound is the k-th highest of the maxima of 256 blocks, which few scores reach. Finding it reads the scores once;
    partitioning all of them, most being 0, would take numpy 20 to 100 times as long.
    """
    width = len(scores) // _BLOCKS
    if k > _BLOCKS or width < 2:
        return _LEAST
    blocks = scores[: width * _BLOCKS].reshape(_BLOCKS, width)
    highest = np.partition(blocks.max(axis=1), -k)[-k]
    return max(highest, _LEAST)


def check_query(query: str, k: int) -> None:
    """Raise ValueError for a blank query or k < 1."""
    if not query.strip():
        raise ValueError("the query is blank")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
