"""The loops of a training step on the CPU, forwards and backwards; each goes once over a block of rows.

A loop adds up what it may in any order of its own, always the same: threads share rows where a row is written once, and
columns where many rows add to one. Its last two arguments are the first and the last plus one of a thread's part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cpu_kernels import cpu_loop
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import NORM_EPSILON
from ras_agent.train.gfm.rows import LayerRows, Places

if TYPE_CHECKING:
    from torch import Tensor


class LayerStep(NamedTuple):
    """One layer's messages: from the rows of states before it to those after it, as the loops read them.

    indptr, source, relation: see GFMGraph. place: (N, B), each state's row before the layer.
    entity, question, before, origin: (R,), of the rows after it; see LayerRows.
    states: (R before the layer, d). factors: (relations, d), the relations' states. initial: (R0, d), the states before
    the first layer, which enter every sum of messages.
    """

    indptr: Ints
    source: Ints
    relation: Ints
    place: Places
    entity: Ints
    question: Ints
    before: Ints
    origin: Ints
    states: Floats
    factors: Floats
    initial: Floats

    @classmethod
    def of(
        cls, graph: GFMGraph, earlier: LayerRows, rows: LayerRows, states: Tensor, factors: Tensor, initial: Tensor
    ) -> LayerStep:
        """Return the layer from the rows `earlier` to the rows `rows`; the tensors keep their memory."""
        messages = graph.indptr, graph.source, graph.relation, earlier.place
        numbers = (one.detach().numpy() for one in (states, factors, initial))
        return cls(*messages, rows.entity, rows.question, rows.before, rows.origin, *numbers)


@cpu_loop()
def write_sums(layer: Any, low: int, sums: Any, begin: int, end: int) -> None:
    """Write to `sums` (rows, d) the sums of messages of the rows from `low` on."""
    width = layer.states.shape[1]
    states, factors = layer.states, layer.factors
    for row in range(begin, end):
        first, line = layer.initial[layer.origin[low + row]], sums[row]
        for column in range(width):
            line[column] = first[column]
        target, asked = layer.entity[low + row], layer.question[low + row]
        message, last = layer.indptr[target], layer.indptr[target + 1]
        while message + 1 < last:
            # two messages at once: the sum is read and written half as often
            state, factor = states[layer.place[layer.source[message], asked]], factors[layer.relation[message]]
            message += 1
            state2, factor2 = states[layer.place[layer.source[message], asked]], factors[layer.relation[message]]
            message += 1
            for column in range(width):
                line[column] += state[column] * factor[column] + state2[column] * factor2[column]
        if message < last:
            state, factor = states[layer.place[layer.source[message], asked]], factors[layer.relation[message]]
            for column in range(width):
                line[column] += state[column] * factor[column]


@cpu_loop(reorder=True)
def write_next_states(
    layer: Any, low: int, own: Any, mixed: Any, norm_weight: Any, norm_bias: Any, following: Any, begin: int, end: int
) -> None:
    """Complete `mixed` (rows, d), and write to `following` (rows, d) its layer norm, rectified, plus the states before.

    own: (R before the layer, d), what the linear map makes of these states; `mixed` has the sums' part so far. Rows are
    those from `low` on.
    """
    width = mixed.shape[1]
    for row in range(begin, end):
        state, part = layer.states[layer.before[low + row]], own[layer.before[low + row]]
        line, to = mixed[row], following[row]
        mean = np.float32(0)
        for column in range(width):
            line[column] += part[column]
            mean += line[column]
        mean /= np.float32(width)
        square = np.float32(0)
        for column in range(width):
            square += (line[column] - mean) * (line[column] - mean)
        scale = np.float32(1) / np.sqrt(square / np.float32(width) + np.float32(NORM_EPSILON))
        for column in range(width):
            normed = (line[column] - mean) * scale * norm_weight[column] + norm_bias[column]
            to[column] = max(normed, np.float32(0)) + state[column]


@cpu_loop()
def add_layer_gradients(
    layer: Any, low: int, gradient: Any, of_mixed: Any, of_sums: Any, totals: Any, of_own: Any, begin: int, end: int
) -> None:
    """Add the gradients of the states, factors and initial states to the layer `totals`, and of their maps to `of_own`.

    gradient, of_mixed, of_sums: (rows, d), of the next states, of the linear map and of the sums of messages. of_own:
    (R before the layer, d), of what the linear map makes of these states.
    """
    part, states, factors = end - begin, layer.states, layer.factors
    of_states, of_factors = totals.states, totals.factors
    for row in range(len(of_sums)):
        given, of_line, of_sum = gradient[row, begin:end], of_mixed[row, begin:end], of_sums[row, begin:end]
        before = layer.before[low + row]
        of_state, of_part = of_states[before, begin:end], of_own[before, begin:end]
        of_first = totals.initial[layer.origin[low + row], begin:end]
        for column in range(part):
            of_state[column] += given[column]
        for column in range(part):
            of_part[column] += of_line[column]
        for column in range(part):
            of_first[column] += of_sum[column]
        target, asked = layer.entity[low + row], layer.question[low + row]
        for message in range(layer.indptr[target], layer.indptr[target + 1]):
            sender, kind = layer.place[layer.source[message], asked], layer.relation[message]
            state, factor = states[sender, begin:end], factors[kind, begin:end]
            of_sender, of_factor = of_states[sender, begin:end], of_factors[kind, begin:end]
            for column in range(part):
                of_sender[column] += of_sum[column] * factor[column]
            for column in range(part):
                of_factor[column] += of_sum[column] * state[column]


@cpu_loop(reorder=True)
def write_norm_gradients(
    mixed: Any, norm_weight: Any, norm_bias: Any, gradient: Any, of_mixed: Any, begin: int, end: int
) -> Any:
    """Write to `of_mixed` (rows, d) the gradient of `mixed`, given that of the next states, `gradient` (rows, d).

    Returns (3, d): the gradients of the norm's weight and of its bias, and the sum of `of_mixed`.
    """
    width = mixed.shape[1]
    sums = np.zeros((3, width), dtype=np.float32)
    of_weight, of_bias, of_all = sums[0], sums[1], sums[2]
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
            of_all[column] += to[column]
    return sums


@cpu_loop(reorder=True)
def write_scores(place: Any, hidden: Any, parts: Any, output: Any, scores: Any, begin: int, end: int) -> None:
    """Write to `scores` (B, N) the entities' scores without the last bias. place: (N, B), each state's row.

    hidden: (R, h), what the rows add to the score's hidden layer. parts: (B, h), what the questions add. output: (h,),
    the weights of the last layer.
    """
    for entity in range(begin, end):
        for question in range(len(parts)):
            line, part, total = hidden[place[entity, question]], parts[question], np.float32(0)
            for column in range(len(output)):
                total += max(line[column] + part[column], np.float32(0)) * output[column]
            scores[question, entity] = total


@cpu_loop()
def add_score_gradients(
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
    """Add to the gradients of `hidden`, `parts` and `output`. gradient: (B, N), of the scores; see write_scores."""
    weight, of_weight = output[begin:end], of_output[begin:end]
    for entity in range(len(place)):
        for question in range(len(parts)):
            row, slope = place[entity, question], gradient[question, entity]
            if slope == 0:
                continue
            line, part = hidden[row, begin:end], parts[question, begin:end]
            of_line, of_part = of_hidden[row, begin:end], of_parts[question, begin:end]
            for column in range(end - begin):
                active = max(line[column] + part[column], np.float32(0))
                of_weight[column] += slope * active
                passed = slope * weight[column] if active > 0 else np.float32(0)
                of_part[column] += passed
                of_line[column] += passed
