"""Gather, multiply and sum in one pass: what each entity hears, without a message ever being stored.

With numba the pass is compiled at its first use, for the processor at hand and without a compiler installed. Without
numba, torch does the same in blocks, several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.tools.encode.gfm.graph import GFMGraph
from ras_agent.tools.encode.gfm.kept import Kept

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TURN", "has_numba", "hear"]

Ints = npt.NDArray[np.int64]
BLOCK = 2048  # messages at a time without numba: two blocks of 512 floats each stay in a core's cache
TURN = Lock()  # one of numba's threading layers cannot be entered twice


def hear(graph: GFMGraph, hearers: Ints, place: Ints, states: Tensor, kinds: Kept, total: Tensor) -> None:
    """Write to `total` (H, d) what each of `hearers` (H,) hears: the sum over its messages of state * relation state.

    place: (N,), where in `states` (T, d) an entity's state stands; -1 for those that say nothing. All on the CPU.
    """
    compiled = _compiled() if has_numba() else None
    if compiled is None:
        _in_blocks(graph, hearers, place, states, kinds, total)
        return
    with TURN:
        compiled(
            graph.indptr,
            graph.source,
            graph.relation,
            hearers,
            place,
            states.numpy(),
            kinds.values.numpy(),
            kinds.scales.numpy(),
            total.numpy(),
        )


def _in_blocks(graph: GFMGraph, hearers: Ints, place: Ints, states: Tensor, kinds: Kept, total: Tensor) -> None:
    import torch

    total.zero_()
    heard = graph.indptr[hearers + 1] - graph.indptr[hearers]
    ends = np.cumsum(heard)
    messages = np.arange(heard.sum()) + np.repeat(graph.indptr[hearers] - (ends - heard), heard)
    row, stands = np.repeat(np.arange(len(hearers)), heard), place[graph.source[messages]]
    speaks = stands >= 0
    arrays = row[speaks], stands[speaks], graph.relation[messages[speaks]]
    hearer, speaker, kind = (torch.from_numpy(array) for array in arrays)
    for begin in range(0, len(hearer), BLOCK):
        part = slice(begin, begin + BLOCK)
        total.index_add_(0, hearer[part], states[speaker[part]] * kinds.rows(kind[part]))


@lru_cache(maxsize=1)
def has_numba() -> bool:
    """Is numba installed?"""
    from importlib.util import find_spec

    return find_spec("numba") is not None


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True, nogil=True, cache=True)
    def heard(
        indptr: Any,
        source: Any,
        relation: Any,
        hearers: Any,
        place: Any,
        states: Any,
        values: Any,
        scales: Any,
        total: Any,
    ) -> None:
        for row in prange(len(hearers)):
            total[row] = 0
            for message in range(indptr[hearers[row]], indptr[hearers[row] + 1]):
                speaker, kind = place[source[message]], relation[message]
                if speaker >= 0:
                    scale = scales[kind]
                    for column in range(states.shape[1]):
                        total[row, column] += states[speaker, column] * (np.float32(values[kind, column]) * scale)

    found: Callable[..., Any] = heard
    return found
