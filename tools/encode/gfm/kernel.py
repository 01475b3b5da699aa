"""Gather, multiply and sum in one pass: what each entity hears, without a message ever being stored.

With numba the pass is compiled at its first use, for the processor at hand and without a compiler installed; it is
bound by memory, so relation states may be bfloat16. Without numba, torch does the same in blocks, several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["hear"]

Ints = npt.NDArray[np.int64]
BLOCK = 2048  # messages at a time without numba: two blocks of 512 floats each stay in a core's cache
_turn = Lock()  # one of numba's threading layers cannot be entered twice


def hear(indptr: Ints, source: Ints, relation: Ints, states: Tensor, kinds: Tensor) -> Tensor:
    """(H, d), float32: for each hearer h the sum over its messages m of states[source[m]] * kinds[relation[m]].

    indptr: (H + 1,), ascending; hearer h has the messages indptr[h] to indptr[h + 1]. source, relation: (M,).
    states: (rows, d), float32. kinds: (R, d), float32 or bfloat16. Both on the CPU.
    """
    import torch

    compiled = _compiled()
    if compiled is None:
        return _in_blocks(indptr, source, relation, states, kinds)
    total = torch.zeros(len(indptr) - 1, states.shape[1])
    plain, halves = compiled
    with _turn:
        if kinds.dtype == torch.bfloat16:
            halves(indptr, source, relation, states.numpy(), kinds.view(torch.int16).numpy(), total.numpy())
        else:
            plain(indptr, source, relation, states.numpy(), kinds.numpy(), total.numpy())
    return total


def _in_blocks(indptr: Ints, source: Ints, relation: Ints, states: Tensor, kinds: Tensor) -> Tensor:
    import torch

    total = torch.zeros(len(indptr) - 1, states.shape[1])
    hearer = torch.from_numpy(np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)))
    first = int(indptr[0])
    for begin in range(0, len(hearer), BLOCK):
        end = min(begin + BLOCK, len(hearer))
        said = states[torch.from_numpy(source[first + begin : first + end])]
        said = said * kinds[torch.from_numpy(relation[first + begin : first + end])].float()
        total.index_add_(0, hearer[begin:end], said)
    return total


@lru_cache(maxsize=1)
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """The compiled pass for float32 and for bfloat16 relation states; None without numba."""
    try:
        from numba import njit, prange
    except ImportError:
        return None

    @njit(parallel=True, nogil=True, cache=True)
    def plain(indptr: Any, source: Any, relation: Any, states: Any, kinds: Any, total: Any) -> None:
        for row in prange(len(indptr) - 1):
            for message in range(indptr[row], indptr[row + 1]):
                speaker, kind = source[message], relation[message]
                for column in range(states.shape[1]):
                    total[row, column] += states[speaker, column] * kinds[kind, column]

    @njit(parallel=True, nogil=True, cache=True)
    def halves(indptr: Any, source: Any, relation: Any, states: Any, kinds: Any, total: Any) -> None:
        for row in prange(len(indptr) - 1):
            for message in range(indptr[row], indptr[row + 1]):
                speaker, kind = source[message], relation[message]
                for column in range(states.shape[1]):
                    # a bfloat16 is the upper half of the float32 of the same value
                    bits = np.uint32(np.uint32(np.uint16(kinds[kind, column])) << np.uint32(16))
                    total[row, column] += states[speaker, column] * bits.view(np.float32)

    return plain, halves
