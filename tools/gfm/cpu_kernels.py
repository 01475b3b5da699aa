"""Runs the network's loops on the CPU, each in one pass over memory: messages and their sums, updates, scores.

With numba, a loop is compiled at its first use, for the processor at hand; no other compiler is needed. Without
numba, torch's operations compute the same in blocks, several times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from os import cpu_count
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.graph import GFMGraph, row_entries
from ras_agent.tools.gfm.network import NORM_EPSILON

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

ROWS_AT_ONCE = 1024  # a block of rows of width 512 is 2 MB and stays in the CPU's cache
_FEW_ROWS = 256  # rows that one thread processes as fast as two
_SETTING = Lock()
# without "nnan", so that NaN stays NaN
_REORDERED_SUMS = {"reassoc", "nsz", "contract"}


@lru_cache(maxsize=1)
def has_numba() -> bool:
    """Return whether numba can be imported, which it cannot with a numpy that is too new for it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def run_in_threads(rows: int, work: Callable[[int, int], T]) -> list[T]:
    """Call `work(first row, last row + 1)` for each part of `rows`, in torch's number of threads. Returns the results.

    numba's own threads would idle next to torch's, keeping a processor busy while they wait.
    """
    import torch

    parts = min(torch.get_num_threads(), 1 + rows // _FEW_ROWS)
    if parts == 1:
        return [work(0, rows)]
    ends = [rows * part // parts for part in range(parts + 1)]
    return [
        future.result()
        for future in [_pool().submit(work, low, high) for low, high in pairwise(ends)]
    ]


class CpuLoop:
    """Holds a function of arrays, which numba compiles at its first call to machine code that releases the GIL.

    The code is cached on disk if a folder is writable.
    """

    def __init__(self, function: Callable[..., Any], *, reorder: bool = False) -> None:
        """Take the function.

        Args:
            reorder: whether sums may be computed in another order, which is faster.
        """
        self._function = function
        self._options: dict[str, Any] = {"nogil": True}
        if reorder:
            self._options["fastmath"] = _REORDERED_SUMS
        self.__doc__ = function.__doc__

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """Return the loop's machine code, which takes arrays and numbers."""
        from numba import njit

        loop: Callable[..., Any]
        try:
            loop = njit(cache=True, **self._options)(self._function)
        except RuntimeError:  # neither the package's folder nor the user's is writable
            loop = njit(**self._options)(self._function)
        return loop

    def share(self, rows: int, *arguments: Any) -> list[Any]:
        """Run the loop in torch's threads, each with its part of `rows` as the last two arguments. Returns the result
        of each part.

        Args:
            arguments: tensors among them, which must be on the CPU, are passed as arrays.
        """
        arrays = [one.numpy() if hasattr(one, "numpy") else one for one in arguments]
        return run_in_threads(
            rows, lambda begin, end: self.compiled(*arrays, begin, end)
        )


_reordered = partial(CpuLoop, reorder=True)


def on_one_thread(work: Callable[[], T]) -> T:
    """Call `work` in a thread in which torch does not split products, and return its result.

    A thread that waits for its next piece of a product keeps a processor busy, and is late if others need that
    processor. For products of a few thousand rows that takes several times the processor time of a single thread.
    """
    return _threads_alone().submit(work).result()


@lru_cache(maxsize=1)
def _threads_alone() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(
        cpu_count() or 1, thread_name_prefix="gfm-alone", initializer=_compute_alone
    )


def _compute_alone() -> None:
    """Let torch use one thread for products in this thread, and as many as before everywhere else.

    `torch.set_num_threads` affects the calling thread, and threads that have not used the number yet.
    """
    import torch

    with _SETTING:
        number = torch.get_num_threads()
        torch.set_num_threads(1)
        other = Thread(target=torch.set_num_threads, args=(number,))
        other.start()
        other.join()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="gfm")


def propagate(
    graph: GFMGraph,
    targets: Ints,
    row_of: Ints,
    states: Tensor,
    relation_states: CachedRows,
    total: Tensor,
) -> None:
    """Write to `total` (H, d) the sum of the messages to each of the entities `targets` (H,). All tensors are on the
    CPU.

    Args:
        row_of: (N,), the row of `states` with an entity's state; -1 for an entity that sends no messages.
        states: (T, d).
        relation_states: (R, d).
    """
    if not has_numba():
        _propagate_in_blocks(graph, targets, row_of, states, relation_states, total)
        return
    messages = graph.indptr, graph.source, graph.relation, targets, row_of
    _propagate_rows.share(
        len(targets),
        *messages,
        states,
        relation_states.values,
        relation_states.scales,
        total,
    )


def _propagate_in_blocks(
    graph: GFMGraph,
    targets: Ints,
    row_of: Ints,
    states: Tensor,
    relation_states: CachedRows,
    total: Tensor,
) -> None:
    import torch

    total.zero_()
    messages, row = row_entries(graph.indptr, targets)
    source_row = row_of[graph.source[messages]]
    has_state = source_row >= 0
    arrays = row[has_state], source_row[has_state], graph.relation[messages[has_state]]
    target, source, relation = (torch.from_numpy(array) for array in arrays)
    for begin in range(0, len(target), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        total.index_add_(
            0, target[part], states[source[part]] * relation_states.rows(relation[part])
        )


@CpuLoop
def _propagate_rows(
    indptr: Any,
    source: Any,
    relation: Any,
    targets: Any,
    row_of: Any,
    states: Any,
    values: Any,
    scales: Any,
    total: Any,
    low: int,
    high: int,
) -> None:
    """Write to `total` the sums of the messages to the targets; see propagate."""
    for row in range(low, high):
        sums = total[row]
        sums[:] = 0
        message = indptr[targets[row]]
        end = indptr[targets[row] + 1]
        while message < end:
            source_row = row_of[source[message]]
            number = relation[message]
            message += 1
            if source_row < 0:
                continue
            while message < end and row_of[source[message]] < 0:
                message += 1
            state = states[source_row]
            value = values[number]
            scale = scales[number]
            if message == end:
                for column in range(len(sums)):
                    sums[column] += state[column] * (np.float32(value[column]) * scale)
                break
            # two messages at once, so that the sum is read and written half as often
            state2 = states[row_of[source[message]]]
            number = relation[message]
            value2 = values[number]
            scale2 = scales[number]
            message += 1
            for column in range(len(sums)):
                product = state[column] * (np.float32(value[column]) * scale)
                sums[column] += product + state2[column] * (
                    np.float32(value2[column]) * scale2
                )


def update_changes(
    change: Tensor,
    state_part: Tensor,
    state_change: Tensor,
    own_row: Ints,
    background: CachedRows,
    background_row: Ints,
    norm_weight: Tensor,
    norm_bias: Tensor,
) -> None:
    """Replace `change`, that of the linear map's output, by the change of the next states, in place.

    The next state changes by relu(norm(x + change)) - relu(norm(x)), where x is the background, plus the change of
    the state itself. Both terms use the same x, so an error in x has little effect: it alters the slope, not the
    change.

    Args:
        change: (H, d).
        state_part: (T, d), the changes of states, mapped by the linear map.
        state_change: (T, d), the changes of the states that changed.
        own_row: (H,), for each row of `change` its row in these two, -1 for a state that did not change.
        background: the cached outputs of the linear map for the background.
        background_row: (H,), for each row of `change` its row in `background`.
        norm_weight, norm_bias: (d,), of the layer norm.
    """
    import torch
    from torch.nn.functional import layer_norm

    if has_numba():
        changes = change, state_part, state_change, own_row
        cached = background.values, background.scales, background_row
        _update_rows.share(
            len(background_row), *changes, *cached, norm_weight, norm_bias
        )
        return
    changed = torch.from_numpy(np.flatnonzero(own_row >= 0))
    row = torch.from_numpy(own_row[own_row >= 0])
    change[changed] += state_part[row]
    before = background.rows(torch.from_numpy(background_row))
    after = layer_norm(
        before + change, norm_weight.shape, norm_weight, norm_bias, NORM_EPSILON
    ).relu_()
    torch.sub(
        after,
        layer_norm(
            before, norm_weight.shape, norm_weight, norm_bias, NORM_EPSILON
        ).relu_(),
        out=change,
    )
    change[changed] += state_change[row]


@_reordered
def _update_rows(
    change: Any,
    state_part: Any,
    state_change: Any,
    own_row: Any,
    values: Any,
    scales: Any,
    background_row: Any,
    norm_weight: Any,
    norm_bias: Any,
    low: int,
    high: int,
) -> None:
    """Replace `change` by the change of the next states; see update_changes."""
    width = change.shape[1]
    for row in range(low, high):
        at = background_row[row]
        scale = scales[background_row[row]]
        place = own_row[row]
        if place >= 0:
            for column in range(width):
                change[row, column] += state_part[place, column]
        sum_before = np.float32(0)
        sum_after = np.float32(0)
        for column in range(width):
            before = np.float32(values[at, column]) * scale
            sum_before += before
            sum_after += before + change[row, column]
        mean_before = sum_before / np.float32(width)
        mean_after = sum_after / np.float32(width)
        square_before = np.float32(0)
        square_after = np.float32(0)
        for column in range(width):
            before = np.float32(values[at, column]) * scale
            centred = before - mean_before
            square_before += centred * centred
            centred = before + change[row, column] - mean_after
            square_after += centred * centred
        of_before = np.float32(1) / np.sqrt(
            square_before / np.float32(width) + np.float32(NORM_EPSILON)
        )
        of_after = np.float32(1) / np.sqrt(
            square_after / np.float32(width) + np.float32(NORM_EPSILON)
        )
        for column in range(width):
            before = np.float32(values[at, column]) * scale
            old = (before - mean_before) * of_before * norm_weight[column] + norm_bias[
                column
            ]
            new = (before + change[row, column] - mean_after) * of_after * norm_weight[
                column
            ] + norm_bias[column]
            change[row, column] = max(new, np.float32(0)) - max(old, np.float32(0))
        if place >= 0:
            for column in range(width):
                change[row, column] += state_change[place, column]


def score_background(background: CachedRows, parts: Tensor, output: Tensor) -> Floats:
    """Return the scores (B, N) of the entities, without the last bias, as if no question had changed a state.

    Args:
        background: (N, h), the part of the score's hidden layer from the states.
        parts: (B, h), the part from each question.
        output: (h,), the weights of the last layer.
    """
    scores = np.empty((len(parts), len(background.values)), dtype=np.float32)
    if has_numba():
        cached = background.values, background.scales
        _score_background_rows.share(
            len(background.values), *cached, parts, output, scores
        )
        return scores
    for begin in range(0, scores.shape[1], ROWS_AT_ONCE):
        block = background.rows(slice(begin, begin + ROWS_AT_ONCE))
        for row, part in enumerate(parts):
            scores[row, begin : begin + ROWS_AT_ONCE] = (
                (block + part).relu_() @ output
            ).numpy()
    return scores


def score_changed(
    hidden: Tensor, background: CachedRows, entities: Ints, part: Tensor, output: Tensor
) -> Floats:
    """Return the scores (H,) of `entities` (H,) for one question that changed their hidden layer by `hidden` (H, h).

    Args:
        background, output: as in `score_background`.
        part: (h,), the question's part of the hidden layer.
    """
    import torch

    if has_numba():
        scores = np.empty(len(entities), dtype=np.float32)
        cached = background.values, background.scales
        _score_changed_rows.share(
            len(entities), hidden, *cached, entities, part, output, scores
        )
        return scores
    logits: Floats = (
        (background.rows(torch.from_numpy(entities)) + hidden + part).relu_() @ output
    ).numpy()
    return logits


@_reordered
def _score_background_rows(
    values: Any, scales: Any, parts: Any, output: Any, scores: Any, low: int, high: int
) -> None:
    """Write the scores to `scores` (B, N); see score_background."""
    for row in range(low, high):
        scale = scales[row]
        for question in range(len(parts)):
            score = np.float32(0)
            for column in range(len(output)):
                hidden = (
                    np.float32(values[row, column]) * scale + parts[question, column]
                )
                score += max(hidden, np.float32(0)) * output[column]
            scores[question, row] = score


@_reordered
def _score_changed_rows(
    changes: Any,
    values: Any,
    scales: Any,
    entities: Any,
    part: Any,
    output: Any,
    scores: Any,
    low: int,
    high: int,
) -> None:
    """Write the scores to `scores` (H,); see score_changed."""
    for row in range(low, high):
        at = entities[row]
        scale = scales[entities[row]]
        score = np.float32(0)
        for column in range(len(output)):
            hidden = (
                changes[row, column]
                + np.float32(values[at, column]) * scale
                + part[column]
            )
            score += max(hidden, np.float32(0)) * output[column]
        scores[row] = score
