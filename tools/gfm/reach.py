"""Which entities a question changes at the next layer, and by enough to matter.

What an entity hears is at most the sum of its messages' lengths, and its norm answers to a small change by at most
`steep` times as much. So one number a message tells, before any state is touched, who cannot change by more than a
negligible length: behind a hub that hears thousands, that is nearly everyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cache import ROWS, IndexStates, Layer
from ras_agent.tools.gfm.graph import Outgoing, entries
from ras_agent.tools.gfm.network import EPSILON

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Bound", "bounds", "reach"]


@dataclass(frozen=True, slots=True)
class Bound:
    """What bounds a layer's changes: how loud its relations are and how its entities answer.

    loud: (R,), the largest number of each relation state, so that a state of length x is heard as one of at most
    loud * x. steep: (N,), or (1,) where all are alike: how long, at most, a change of the state is for each unit of
    length of a small change of what is heard.
    """

    loud: Floats
    steep: Floats


def bounds(known: IndexStates, layers: Sequence[Layer]) -> list[Bound]:
    """Of each layer whose background is kept."""
    import torch

    found = []
    for kinds, mixed, layer in zip(known.kinds, known.mixed, layers, strict=False):
        blocks = [slice(begin, begin + ROWS) for begin in range(0, len(kinds.values), ROWS)]
        loud = torch.cat([kinds.rows(block).abs().amax(dim=1) for block in blocks] or [torch.zeros(0)])
        # the norm divides by the deviation of its input, and takes the mean out
        longest = torch.linalg.matrix_norm(layer.of_total.float(), 2) * layer.gain.abs().max()
        blocks = [slice(begin, begin + ROWS) for begin in range(0, len(mixed.values), ROWS)]
        spread = [mixed.rows(block).var(dim=1, correction=0) for block in blocks] or [torch.zeros(0)]
        found.append(Bound(loud.numpy(), (longest / (torch.cat(spread) + EPSILON).sqrt()).numpy()))
    return found


def reach(outgoing: Outgoing, speakers: Ints, lengths: Tensor, always: Ints, layer: Bound, negligible: float) -> Ints:
    """(H,), ascending: `speakers` (T,), `always`, and all whose states may change by more than `negligible`.

    For changes that are large beside the background it may be twice as much: layer norm is not a linear map.

    lengths: (T,), of the changes of the speakers' states.
    """
    messages, speaker = entries(outgoing.indptr, speakers)
    heard = lengths.numpy()[speaker] * layer.loud[outgoing.relation[messages]]
    sums = np.bincount(outgoing.hearer[messages], heard, minlength=len(outgoing.indptr) - 1)
    matters = ~(sums * layer.steep <= negligible)  # what is not a number matters, too
    matters[speakers] = matters[always] = True
    return np.flatnonzero(matters)
