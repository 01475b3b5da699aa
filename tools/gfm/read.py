"""The scores' last step: rectify the hidden layer and weigh it, for all entities or for those that have changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cache import ROWS
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.compiled import compiled, has_numba
from ras_agent.tools.gfm.cpu_kernels import in_parts

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["read_all", "read_changed"]


def read_all(background: Kept, parts: Tensor, out: Tensor) -> Floats:
    """(B, N): the weighed hidden layer of every entity as if no question had changed its state.

    background: (N, h), the states' share of the hidden layer. parts: (B, h), the questions' shares. out: (h,).
    """
    scores = np.empty((len(parts), len(background.values)), dtype=np.float32)
    if has_numba():
        arrays = (background.values, background.scales, parts, out)
        values, scales, shares, weights = (tensor.numpy() for tensor in arrays)
        every = _compiled()[0]
        in_parts(len(values), lambda low, high: every(values, scales, shares, weights, scores, low, high))
        return scores
    for begin in range(0, scores.shape[1], ROWS):
        block = background.rows(slice(begin, begin + ROWS))
        for row, part in enumerate(parts):
            scores[row, begin : begin + ROWS] = ((block + part).relu_() @ out).numpy()
    return scores


def read_changed(hidden: Tensor, background: Kept, rows: Ints, part: Tensor, out: Tensor) -> Floats:
    """(H,): the same of one question for the entities `rows` (H,), whose share has changed by `hidden` (H, h)."""
    import torch

    if has_numba():
        scores = np.empty(len(rows), dtype=np.float32)
        arrays = (hidden, background.values, background.scales, part, out)
        changes, values, scales, share, weights = (tensor.numpy() for tensor in arrays)
        some = _compiled()[1]
        in_parts(len(rows), lambda low, high: some(changes, values, scales, rows, share, weights, scores, low, high))
        return scores
    found: Floats = ((background.rows(torch.from_numpy(rows)) + hidden + part).relu_() @ out).numpy()
    return found


@lru_cache(maxsize=1)
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def every(values: Any, scales: Any, parts: Any, out: Any, scores: Any, low: int, high: int) -> None:
        for row in range(low, high):
            scale = scales[row]
            for question in range(len(parts)):
                score = np.float32(0)
                for column in range(len(out)):
                    hidden = np.float32(values[row, column]) * scale + parts[question, column]
                    score += max(hidden, np.float32(0)) * out[column]
                scores[question, row] = score

    def some(
        changes: Any, values: Any, scales: Any, rows: Any, part: Any, out: Any, scores: Any, low: int, high: int
    ) -> None:
        for row in range(low, high):
            at, scale, score = rows[row], scales[rows[row]], np.float32(0)
            for column in range(len(out)):
                hidden = changes[row, column] + np.float32(values[at, column]) * scale + part[column]
                score += max(hidden, np.float32(0)) * out[column]
            scores[row] = score

    return compiled(every, reorder=True), compiled(some, reorder=True)
