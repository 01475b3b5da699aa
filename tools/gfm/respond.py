"""How the states answer to a change of what the linear map gave: rectify(norm(x + change)) - rectify(norm(x)).

Both terms are made of the same x, the background, so that an error in x hardly shows: it changes the slope, not the
change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Ints
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.compiled import compiled, has_numba
from ras_agent.tools.gfm.cpu_kernels import in_parts
from ras_agent.tools.gfm.network import EPSILON

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["respond"]


def respond(
    change: Tensor, own: Tensor, before: Tensor, stands: Ints, background: Kept, rows: Ints, gain: Tensor, shift: Tensor
) -> None:
    """Turn `change` (H, d), of what the linear map gave, into the change of the next states, in place.

    own: (T, d), what the linear map adds for those whose state had changed by `before` (T, d); it stays in the next
    state. stands: (H,), where in them each of `change` stands, -1 for none. rows: (H,), where its background stands in
    `background`. gain, shift: (d,), of the norm.
    """
    import torch
    from torch.nn.functional import layer_norm

    if has_numba():
        values, scales = background.values.numpy(), background.scales.numpy()
        changes = change.numpy(), own.numpy(), before.numpy(), stands
        kept = values, scales, rows, gain.numpy(), shift.numpy()
        work = _compiled()
        in_parts(len(rows), lambda low, high: work(*changes, *kept, low, high))
        return
    there = torch.from_numpy(np.flatnonzero(stands >= 0))
    place = torch.from_numpy(stands[stands >= 0])
    change[there] += own[place]
    quiet = background.rows(torch.from_numpy(rows))
    after = layer_norm(quiet + change, gain.shape, gain, shift, EPSILON).relu_()
    torch.sub(after, layer_norm(quiet, gain.shape, gain, shift, EPSILON).relu_(), out=change)
    change[there] += before[place]


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    def answered(
        change: Any,
        own: Any,
        previous: Any,
        stands: Any,
        values: Any,
        scales: Any,
        rows: Any,
        gain: Any,
        shift: Any,
        low: int,
        high: int,
    ) -> None:
        width = change.shape[1]
        for row in range(low, high):
            at, scale, place = rows[row], scales[rows[row]], stands[row]
            if place >= 0:
                for column in range(width):
                    change[row, column] += own[place, column]
            sum_before, sum_after = np.float32(0), np.float32(0)
            for column in range(width):
                before = np.float32(values[at, column]) * scale
                sum_before += before
                sum_after += before + change[row, column]
            mean_before, mean_after = sum_before / np.float32(width), sum_after / np.float32(width)
            square_before, square_after = np.float32(0), np.float32(0)
            for column in range(width):
                before = np.float32(values[at, column]) * scale
                centred = before - mean_before
                square_before += centred * centred
                centred = before + change[row, column] - mean_after
                square_after += centred * centred
            of_before = np.float32(1) / np.sqrt(square_before / np.float32(width) + np.float32(EPSILON))
            of_after = np.float32(1) / np.sqrt(square_after / np.float32(width) + np.float32(EPSILON))
            for column in range(width):
                before = np.float32(values[at, column]) * scale
                old = (before - mean_before) * of_before * gain[column] + shift[column]
                new = (before + change[row, column] - mean_after) * of_after * gain[column] + shift[column]
                change[row, column] = max(new, np.float32(0)) - max(old, np.float32(0))
            if place >= 0:
                for column in range(width):
                    change[row, column] += previous[place, column]

    return compiled(answered, reorder=True)
