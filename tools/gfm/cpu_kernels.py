"""Gather, multiply and sum in one pass: what each entity hears, without a message ever being stored.

With numba the pass is compiled at its first use, for the processor at hand and without a compiler installed. Without
numba, torch does the same in blocks, several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Ints
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.compiled import compiled, has_numba
from ras_agent.tools.gfm.graph import GFMGraph, entries

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["hear", "in_parts"]

BLOCK = 2048  # messages at a time without numba: two blocks of 512 floats each stay in a core's cache
FEW = 256  # rows that one thread does as fast as two


def hear(graph: GFMGraph, hearers: Ints, place: Ints, states: Tensor, kinds: Kept, total: Tensor) -> None:
    """Write to `total` (H, d) what each of `hearers` (H,) hears: the sum over its messages of state * relation state.

    place: (N,), where in `states` (T, d) an entity's state stands; -1 for those that say nothing. All on the CPU.
    """
    if not has_numba():
        _in_blocks(graph, hearers, place, states, kinds, total)
        return
    work = _compiled()
    graphs = graph.indptr, graph.source, graph.relation, hearers, place
    arrays = states.numpy(), kinds.values.numpy(), kinds.scales.numpy(), total.numpy()
    in_parts(len(hearers), lambda low, high: work(*graphs, *arrays, low, high))


def _in_blocks(graph: GFMGraph, hearers: Ints, place: Ints, states: Tensor, kinds: Kept, total: Tensor) -> None:
    import torch

    total.zero_()
    messages, row = entries(graph.indptr, hearers)
    stands = place[graph.source[messages]]
    speaks = stands >= 0
    arrays = row[speaks], stands[speaks], graph.relation[messages[speaks]]
    hearer, speaker, kind = (torch.from_numpy(array) for array in arrays)
    for begin in range(0, len(hearer), BLOCK):
        part = slice(begin, begin + BLOCK)
        total.index_add_(0, hearer[part], states[speaker[part]] * kinds.rows(kind[part]))


def in_parts(rows: int, work: Callable[[int, int], object]) -> None:
    """Call `work` with the first and the last row + 1 of each part of `rows`, in as many threads as torch has.

    numba's own threads would wait beside torch's, and keep a processor busy while they do.
    """
    import torch

    parts = min(torch.get_num_threads(), 1 + rows // FEW)
    if parts == 1:
        work(0, rows)
        return
    ends = [rows * part // parts for part in range(parts + 1)]
    for done in [_pool().submit(work, low, high) for low, high in pairwise(ends)]:
        done.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="gfm")


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any]:
    def all_heard(
        indptr: Any,
        source: Any,
        relation: Any,
        hearers: Any,
        place: Any,
        states: Any,
        values: Any,
        scales: Any,
        total: Any,
        low: int,
        high: int,
    ) -> None:
        for row in range(low, high):
            heard = total[row]
            heard[:] = 0
            message, end = indptr[hearers[row]], indptr[hearers[row] + 1]
            while message < end:
                speaker, kind = place[source[message]], relation[message]
                message += 1
                if speaker < 0:
                    continue
                while message < end and place[source[message]] < 0:
                    message += 1
                state, value, scale = states[speaker], values[kind], scales[kind]
                if message == end:
                    for column in range(len(heard)):
                        heard[column] += state[column] * (np.float32(value[column]) * scale)
                    break
                # two messages at once: the sum is read and written half as often
                other, kind = states[place[source[message]]], relation[message]
                value2, scale2 = values[kind], scales[kind]
                message += 1
                for column in range(len(heard)):
                    one = state[column] * (np.float32(value[column]) * scale)
                    heard[column] += one + other[column] * (np.float32(value2[column]) * scale2)

    return compiled(all_heard)
