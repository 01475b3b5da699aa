"""The loops of a training step on the CPU, forwards and backwards; each goes once over a block of rows.

A loop adds up what it may in any order of its own, always the same: threads share rows where a row is written once, and
columns where many rows add to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.tools.gfm.cpu_kernels import compile_loop, run_in_threads
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import NORM_EPSILON
from ras_agent.train.gfm.rows import LayerRows

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer's messages: from the rows `earlier` to the rows `rows`.

    states: (R, d), of the rows `earlier`. factors: (relations, d), the relations' states. initial: (R0, d), the states
    before the first layer, which enter every sum of messages.
    """

    graph: GFMGraph
    earlier: LayerRows
    rows: LayerRows
    states: Tensor
    factors: Tensor
    initial: Tensor

    def write_inputs(self, low: int, inputs: Tensor) -> None:
        """Write to `inputs` (rows, 2d) the states of the rows from `low` on, and beside them the sums of messages."""
        loop, given = _layer_loops()[0], (*self._arrays(), low, inputs.numpy())
        run_in_threads(len(inputs), lambda begin, end: loop(*given, begin, end))

    def add_gradients(self, low: int, of_inputs: Tensor, sums: LayerStep) -> None:
        """Add to the states, factors and initial states of `sums` their gradients by those of the inputs (rows, 2d)."""
        arrays = (one.numpy() for one in (of_inputs, sums.states, sums.factors, sums.initial))
        loop, given = _layer_loops()[1], (*self._arrays(), low, *arrays)
        run_in_threads(self.states.shape[1], lambda begin, end: loop(*given, begin, end))

    def zeros(self) -> LayerStep:
        """Return the same layer with zeros for its states, factors and initial states."""
        import torch

        numbers = (self.states, self.factors, self.initial)
        return LayerStep(self.graph, self.earlier, self.rows, *(torch.zeros_like(one) for one in numbers))

    def _arrays(self) -> tuple[Any, ...]:
        graph, rows = self.graph, self.rows
        messages = graph.indptr, graph.source, graph.relation, self.earlier.place
        places = rows.entity, rows.question, rows.before, rows.origin
        return (*messages, *places, self.states.numpy(), self.factors.numpy(), self.initial.numpy())


@lru_cache(maxsize=1)
def _layer_loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def write_inputs(
        indptr: Any,
        source: Any,
        relation: Any,
        place: Any,
        entity: Any,
        question: Any,
        before: Any,
        origin: Any,
        states: Any,
        factors: Any,
        initial: Any,
        low: int,
        inputs: Any,
        begin: int,
        end: int,
    ) -> None:
        width = states.shape[1]
        for row in range(begin, end):
            own, first = states[before[low + row]], initial[origin[low + row]]
            line, sums = inputs[row, :width], inputs[row, width:]
            for column in range(width):
                line[column] = own[column]
            for column in range(width):
                sums[column] = first[column]
            target, asked = entity[low + row], question[low + row]
            if target < 0:
                continue
            message, last = indptr[target], indptr[target + 1]
            while message + 1 < last:
                # two messages at once: the sum is read and written half as often
                state, factor = states[place[source[message], asked]], factors[relation[message]]
                state2, factor2 = states[place[source[message + 1], asked]], factors[relation[message + 1]]
                for column in range(width):
                    sums[column] += state[column] * factor[column] + state2[column] * factor2[column]
                message += 2
            if message < last:
                state, factor = states[place[source[message], asked]], factors[relation[message]]
                for column in range(width):
                    sums[column] += state[column] * factor[column]

    def add_gradients(
        indptr: Any,
        source: Any,
        relation: Any,
        place: Any,
        entity: Any,
        question: Any,
        before: Any,
        origin: Any,
        states: Any,
        factors: Any,
        initial: Any,
        low: int,
        gradient: Any,
        of_states: Any,
        of_factors: Any,
        of_initial: Any,
        begin: int,
        end: int,
    ) -> None:
        width, part = states.shape[1], end - begin
        for row in range(len(gradient)):
            of_line, of_sum = gradient[row, begin:end], gradient[row, width + begin : width + end]
            of_own, of_first = of_states[before[low + row], begin:end], of_initial[origin[low + row], begin:end]
            for column in range(part):
                of_own[column] += of_line[column]
            for column in range(part):
                of_first[column] += of_sum[column]
            target, asked = entity[low + row], question[low + row]
            if target < 0:
                continue
            for message in range(indptr[target], indptr[target + 1]):
                sender, kind = place[source[message], asked], relation[message]
                state, factor = states[sender, begin:end], factors[kind, begin:end]
                of_state, of_factor = of_states[sender, begin:end], of_factors[kind, begin:end]
                for column in range(part):
                    of_state[column] += of_sum[column] * factor[column]
                for column in range(part):
                    of_factor[column] += of_sum[column] * state[column]

    return compile_loop(write_inputs), compile_loop(add_gradients)


def next_states(mixed: Tensor, states: Tensor, norm_weight: Tensor, norm_bias: Tensor, following: Tensor) -> None:
    """Write to `following` (rows, d) the layer norm of `mixed` (rows, d), rectified, plus `states` (rows, >= d)."""
    loop = _norm_loops()[0]
    given = tuple(one.numpy() for one in (mixed, states, norm_weight, norm_bias, following))
    run_in_threads(len(mixed), lambda begin, end: loop(*given, begin, end))


def norm_gradients(mixed: Tensor, norm_weight: Tensor, norm_bias: Tensor, gradient: Tensor, of_mixed: Tensor) -> Tensor:
    """Write to `of_mixed` (rows, d) the gradient of `mixed`, given that of the next states, `gradient` (rows, d).

    Returns (2, d): the gradients of the norm's weight and of its bias.
    """
    import torch

    loop = _norm_loops()[1]
    given = tuple(one.numpy() for one in (mixed, norm_weight, norm_bias, gradient, of_mixed))
    parts: dict[int, Floats] = {}

    def work(begin: int, end: int) -> None:
        sums = np.zeros((2, mixed.shape[1]), dtype=np.float32)
        loop(*given, sums, begin, end)
        parts[begin] = sums

    run_in_threads(len(mixed), work)
    return torch.from_numpy(sum(parts[begin] for begin in sorted(parts)))  # the same order whoever was first


@lru_cache(maxsize=1)
def _norm_loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def norm(mixed: Any, states: Any, norm_weight: Any, norm_bias: Any, following: Any, begin: int, end: int) -> None:
        width = mixed.shape[1]
        for row in range(begin, end):
            line, state, to = mixed[row], states[row], following[row]
            mean = np.float32(0)
            for column in range(width):
                mean += line[column]
            mean /= np.float32(width)
            square = np.float32(0)
            for column in range(width):
                square += (line[column] - mean) * (line[column] - mean)
            scale = np.float32(1) / np.sqrt(square / np.float32(width) + np.float32(NORM_EPSILON))
            for column in range(width):
                normed = (line[column] - mean) * scale * norm_weight[column] + norm_bias[column]
                to[column] = max(normed, np.float32(0)) + state[column]

    def norm_back(
        mixed: Any, norm_weight: Any, norm_bias: Any, gradient: Any, of_mixed: Any, sums: Any, begin: int, end: int
    ) -> None:
        width = mixed.shape[1]
        of_weight, of_bias = sums[0], sums[1]
        for row in range(begin, end):
            line, given, to = mixed[row], gradient[row], of_mixed[row]
            mean = np.float32(0)
            for column in range(width):
                mean += line[column]
            mean /= np.float32(width)
            square = np.float32(0)
            for column in range(width):
                square += (line[column] - mean) * (line[column] - mean)
            scale = np.float32(1) / np.sqrt(square / np.float32(width) + np.float32(NORM_EPSILON))
            total, along = np.float32(0), np.float32(0)
            for column in range(width):
                centred = (line[column] - mean) * scale
                passed = given[column] if centred * norm_weight[column] + norm_bias[column] > 0 else np.float32(0)
                of_weight[column] += passed * centred
                of_bias[column] += passed
                passed *= norm_weight[column]
                to[column] = passed
                total += passed
                along += passed * centred
            total /= np.float32(width)
            along /= np.float32(width)
            for column in range(width):
                to[column] = scale * (to[column] - total - (line[column] - mean) * scale * along)

    return compile_loop(norm, reorder=True), compile_loop(norm_back, reorder=True)


def add_scores(rows: LayerRows, hidden: Tensor, parts: Tensor, output: Tensor, scores: Tensor) -> None:
    """Write to `scores` (B, N) the scores, without the last bias, of the entities that do not share row 0.

    hidden: (R, h), what the rows add to the score's hidden layer. parts: (B, h), what the questions add. output: (h,),
    the weights of the last layer.
    """
    loop, given = _score_loops()[0], (rows.place, *(one.numpy() for one in (hidden, parts, output, scores)))
    run_in_threads(len(rows.place), lambda begin, end: loop(*given, begin, end))


def score_gradients(
    rows: LayerRows,
    hidden: Tensor,
    parts: Tensor,
    output: Tensor,
    gradient: Tensor,
    of_hidden: Tensor,
    of_parts: Tensor,
    of_output: Tensor,
) -> None:
    """Add to the gradients of `hidden`, `parts` and `output`. gradient: (B, N), of the scores; see add_scores."""
    arrays = (hidden, parts, output, gradient, of_hidden, of_parts, of_output)
    loop, given = _score_loops()[1], (rows.place, *(one.numpy() for one in arrays))
    run_in_threads(hidden.shape[1], lambda begin, end: loop(*given, begin, end))


@lru_cache(maxsize=1)
def _score_loops() -> tuple[Callable[..., Any], Callable[..., Any]]:
    def score(place: Any, hidden: Any, parts: Any, output: Any, scores: Any, begin: int, end: int) -> None:
        for entity in range(begin, end):
            for question in range(len(parts)):
                row = place[entity, question]
                if row:
                    line, part, total = hidden[row], parts[question], np.float32(0)
                    for column in range(len(output)):
                        total += max(line[column] + part[column], np.float32(0)) * output[column]
                    scores[question, entity] = total

    def score_back(
        place: Any,
        hidden: Any,
        parts: Any,
        output: Any,
        gradient: Any,
        of_hidden: Any,
        of_parts: Any,
        of_output: Any,
        begin: int,
        end: int,
    ) -> None:
        weight, of_weight = output[begin:end], of_output[begin:end]
        for entity in range(len(place)):
            for question in range(len(parts)):
                row, slope = place[entity, question], gradient[question, entity]
                if row == 0 or slope == 0:
                    continue
                line, part = hidden[row, begin:end], parts[question, begin:end]
                of_line, of_part = of_hidden[row, begin:end], of_parts[question, begin:end]
                for column in range(end - begin):
                    active = max(line[column] + part[column], np.float32(0))
                    of_weight[column] += slope * active
                    passed = slope * weight[column] if active > 0 else np.float32(0)
                    of_part[column] += passed
                    of_line[column] += passed

    return compile_loop(score, reorder=True), compile_loop(score_back)
