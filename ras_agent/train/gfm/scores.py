"""The network's scores for a batch of questions, with gradients, on the CPU: plain_scores several times faster.

Three things make the difference. States that are computed of the same are there once (ras_agent.train.gfm.rows).
Messages are added up as they are made, forwards and backwards, and none is stored (ras_agent.train.gfm.kernels). And
relations and a layer's rows go in blocks that stay in the processor's cache: messages, linear map, norm and rectifier
of a block follow one another, and so do their gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, relu

from ras_agent.arrays import Floats
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import layer_count
from ras_agent.train.gfm.kernels import (
    LayerStep,
    add_layer_gradients,
    add_score_gradients,
    write_next_states,
    write_norm_gradients,
    write_scores,
    write_sums,
)
from ras_agent.train.gfm.rows import LayerRows, Places, batch_rows, layer_graphs

_NUMBERS_AT_ONCE = 1 << 17  # of a block's states


def batch_scores(
    weights: Mapping[str, Tensor], graph: GFMGraph, questions: Tensor, start: Floats, texts: Tensor | None = None
) -> Tensor:
    """Return the entities' logits (B, N) for sentence vectors `questions` (B, text width); see plain_scores.

    start: (B, N). texts: (N, text width), the nodes' vectors, for a G-reasoner network; see plain_reasoner_scores.
    All tensors are float32 and on the CPU. Needs numba.
    """
    graphs = layer_graphs(graph, start, layer_count(weights), alike=texts is None)
    rows = batch_rows(graphs, start, alike=texts is None)
    query = _map(weights, "question_mlp", questions)  # (B, d)
    marks = torch.from_numpy(start[rows[0].question, rows[0].entity])
    initial = marks[:, None] * query.index_select(0, torch.from_numpy(rows[0].question))  # (R0, d)
    head = "entity_model.mlp" if texts is None else "predict_mlp"
    of_state, *others = torch.split(weights[f"{head}.0.weight"], query.shape[1], dim=1)
    parts = linear(query, others[0], weights[f"{head}.0.bias"])  # (B, h), once a question instead of once an entity
    nodes = None if texts is None else _map(weights, "ent_mlp", texts)
    if nodes is not None:
        fused = torch.cat((initial, nodes.index_select(0, torch.from_numpy(rows[0].entity))), dim=-1)
        initial = _map(weights, "early_fuse_mlp.2", relu(_map(weights, "early_fuse_mlp.0", fused)))
    update: Callable[..., Tensor] = _Layer.apply
    score: Callable[..., Tensor] = _Scores.apply
    state = initial
    for layer, factors in enumerate(_relation_states(weights, graphs)):
        at = f"entity_model.layers.{layer}"
        names = ("linear.weight", "linear.bias", "layer_norm.weight", "layer_norm.bias")
        given = (state, factors, initial, *(weights[f"{at}.{name}"] for name in names))
        state = update(graphs[layer], rows[layer], rows[layer + 1], *given)
    hidden = state @ of_state.t()  # (R, h)
    if nodes is not None:
        hidden = hidden + (nodes @ others[1].t()).index_select(0, torch.from_numpy(rows[-1].entity))
    scores = score(rows[-1].place, hidden, parts, weights[f"{head}.2.weight"][0])
    return scores + weights[f"{head}.2.bias"]


def _map(weights: Mapping[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    return linear(inputs, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _relation_states(weights: Mapping[str, Tensor], graphs: Sequence[GFMGraph]) -> Iterator[Tensor]:
    """Yield the relation states (R, d) of every layer's graph, as network.project_relations."""
    states: Callable[..., Tensor] = _RelationStates.apply
    before, of_bias = weights["rel_mlp.weight"], weights["rel_mlp.bias"]  # (d, text width), (d,)
    # before the rectifier all is linear: one product with the vectors, which need no gradient, or narrower ones
    at_once = 2 * before.shape[1] <= 3 * before.shape[0]
    inputs = {}
    for graph in (graphs[0], graphs[-1]):
        vectors = graph.relation_vectors if graph.inverse_vectors is None else graph.vectors
        rows = torch.from_numpy(np.array(vectors, dtype=np.float32))
        inputs[id(graph)] = rows if at_once else linear(rows, before)
    for layer, graph in enumerate(graphs):
        at = f"entity_model.layers.{layer}.relation_projection"
        matrix, bias = weights[f"{at}.0.weight"], weights[f"{at}.0.bias"]
        offset = torch.addmv(bias, matrix, of_bias)
        given = offset, weights[f"{at}.2.weight"], weights[f"{at}.2.bias"]
        negated = graph.inverse_vectors is None
        yield states(negated, inputs[id(graph)], matrix @ before if at_once else matrix, *given)


class _RelationStates(Function):
    """The relation states (R, d): rectified linear maps of `inputs`, by (d, t) and an offset (d,), mapped once more.

    negated: whether the inputs are those of half the relations, and the other half's are these negated.
    """

    @staticmethod
    def forward(
        ctx: Any, negated: bool, inputs: Tensor, matrix: Tensor, offset: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        signs, width = (1, -1) if negated else (1,), len(offset)
        hidden = torch.empty(len(signs), len(inputs), width)
        states = torch.empty_like(hidden)
        for block in _blocks(len(inputs), width):
            mapped = inputs[block] @ matrix.t()
            for side, sign in enumerate(signs):
                torch.add(offset, mapped, alpha=sign, out=hidden[side, block]).relu_()
                torch.addmm(bias, hidden[side, block], weight.t(), out=states[side, block])
        ctx.signs = signs
        ctx.save_for_backward(inputs, matrix, weight, hidden)
        return states.flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        inputs, matrix, weight, hidden = ctx.saved_tensors
        gradient = gradient.view_as(hidden)
        of_inputs = torch.empty_like(inputs) if ctx.needs_input_grad[1] else None
        of_matrix, of_weight = torch.zeros_like(matrix), torch.zeros_like(weight)
        of_offset, of_bias = torch.zeros(2, len(weight))
        ones = torch.ones(_block_rows(len(weight)))
        mask = torch.ops.aten.threshold_backward.grad_input  # in place and at once, unlike a product with `after > 0`
        for block in _blocks(len(inputs), len(weight)):
            of_mapped = torch.zeros(len(inputs[block]), len(weight))
            for side, sign in enumerate(ctx.signs):
                after, given = hidden[side, block], gradient[side, block]
                of_hidden = torch.mm(given, weight)
                mask(of_hidden, after, 0, grad_input=of_hidden)
                of_mapped.add_(of_hidden, alpha=sign)
                of_weight.addmm_(given.t(), after)
                of_offset.addmv_(of_hidden.t(), ones[: len(given)])
                of_bias.addmv_(given.t(), ones[: len(given)])
            of_matrix.addmm_(of_mapped.t(), inputs[block])
            if of_inputs is not None:
                torch.mm(of_mapped, matrix, out=of_inputs[block])
        return None, of_inputs, of_matrix, of_offset, of_weight, of_bias


class _Layer(Function):
    """One layer: from the states (R, d) of the rows `earlier` to those of `rows`; see LayerStep."""

    @staticmethod
    def forward(
        ctx: Any,
        graph: GFMGraph,
        earlier: LayerRows,
        rows: LayerRows,
        states: Tensor,
        factors: Tensor,
        initial: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm_weight: Tensor,
        norm_bias: Tensor,
    ) -> Tensor:
        width, step = states.shape[1], LayerStep.of(graph, earlier, rows, states, factors, initial)
        of_state, of_sum = weight.chunk(2, dim=1)
        own = torch.empty_like(states)  # mapped before the layer, where more entities are one row than after it
        for block in _blocks(len(states), width):
            torch.addmm(bias, states[block], of_state.t(), out=own[block])
        sums, mixed, following = (torch.empty(len(rows), width) for _ in range(3))
        for block in _blocks(len(rows), width):
            write_sums.share(len(sums[block]), step, block.start, sums[block])
            torch.mm(sums[block], of_sum.t(), out=mixed[block])
            given = own, mixed[block], norm_weight, norm_bias, following[block]
            write_next_states.share(len(mixed[block]), step, block.start, *given)
        ctx.given = graph, earlier, rows
        ctx.save_for_backward(states, factors, initial, weight, norm_weight, norm_bias, sums, mixed)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, factors, initial, weight, norm_weight, norm_bias, sums, mixed = ctx.saved_tensors
        graph, earlier, rows = ctx.given
        step = LayerStep.of(graph, earlier, rows, states, factors, initial)
        totals = [torch.zeros_like(one) for one in (states, factors, initial)]
        of_own = torch.zeros_like(states)
        layer_totals = LayerStep.of(graph, earlier, rows, *totals)
        norm_weight, norm_bias = norm_weight.detach(), norm_bias.detach()
        gradient, width = gradient.contiguous(), states.shape[1]
        of_weight, of_vectors = torch.zeros_like(weight), torch.zeros(3, width)
        (for_state, for_sum), (of_state, of_sum) = weight.chunk(2, dim=1), of_weight.chunk(2, dim=1)
        buffers = torch.empty(2, min(len(mixed), _block_rows(width)), width)
        for block in _blocks(len(mixed), width):
            of_mixed, of_sums = buffers[:, : block.stop - block.start]
            given = mixed[block], norm_weight, norm_bias, gradient[block], of_mixed
            for part in write_norm_gradients.share(len(of_mixed), *given):
                of_vectors += torch.from_numpy(part)
            of_sum.addmm_(of_mixed.t(), sums[block])
            torch.mm(of_mixed, for_sum, out=of_sums)
            of_layer = gradient[block], of_mixed, of_sums, layer_totals, of_own
            add_layer_gradients.share(width, step, block.start, *of_layer)
        for block in _blocks(len(states), width):
            of_state.addmm_(of_own[block].t(), states[block])
            totals[0][block].addmm_(of_own[block], for_state)
        of_norm_weight, of_norm_bias, of_bias = of_vectors
        return None, None, None, *totals, of_weight, of_bias, of_norm_weight, of_norm_bias


class _Scores(Function):
    """The logits (B, N) without the last bias, of what rows add to the score's hidden layer; see write_scores."""

    @staticmethod
    def forward(ctx: Any, place: Places, hidden: Tensor, parts: Tensor, output: Tensor) -> Tensor:
        scores = torch.empty(len(parts), len(place))
        write_scores.share(len(place), place, hidden, parts, output, scores)
        ctx.place = place
        ctx.save_for_backward(hidden, parts, output)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        numbers = [one.detach() for one in ctx.saved_tensors]
        sums = [torch.zeros_like(one) for one in numbers]
        add_score_gradients.share(numbers[0].shape[1], ctx.place, *numbers, gradient.contiguous(), *sums)
        return None, *sums


def _blocks(count: int, width: int) -> Iterator[slice]:
    size = _block_rows(width)
    for low in range(0, count, size):
        yield slice(low, min(low + size, count))


def _block_rows(width: int) -> int:
    return max(512, _NUMBERS_AT_ONCE // width)
