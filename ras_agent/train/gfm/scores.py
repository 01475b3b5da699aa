"""The network's scores for a batch of questions, with gradients, on the CPU: plain_scores several times faster.

Three things make the difference. States that questions share are computed once (ras_agent.train.gfm.rows). Messages are
added up as they are made, forwards and backwards, and none is stored (ras_agent.train.gfm.kernels). And a layer goes
over its rows in blocks that stay in the processor's cache: messages, linear map, norm and rectifier of a block follow
one another, and so do their gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

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
    add_scores,
    next_states,
    norm_gradients,
    score_gradients,
)
from ras_agent.train.gfm.rows import LayerRows, batch_rows

_NUMBERS_AT_ONCE = 1 << 17  # of a block's states


def batch_scores(
    weights: Mapping[str, Tensor], graph: GFMGraph, questions: Tensor, start: Floats, texts: Tensor | None = None
) -> Tensor:
    """Return the entities' logits (B, N) for sentence vectors `questions` (B, text width); see plain_scores.

    start: (B, N). texts: (N, text width), the nodes' vectors, for a G-reasoner network; see plain_reasoner_scores.
    All tensors are float32 and on the CPU. Needs numba.
    """
    rows = batch_rows(graph, start, layer_count(weights), alike=texts is None)
    query = _map(weights, "question_mlp", questions)  # (B, d)
    marks = torch.from_numpy(start[rows[0].question, rows[0].entity])
    marks[0] = 0
    initial = marks[:, None] * query.index_select(0, torch.from_numpy(rows[0].question))  # (R0, d)
    head = "entity_model.mlp" if texts is None else "predict_mlp"
    of_state, *others = torch.split(weights[f"{head}.0.weight"], query.shape[1], dim=1)
    parts = linear(query, others[0], weights[f"{head}.0.bias"])  # (B, h), once a question instead of once an entity
    nodes = None if texts is None else _map(weights, "ent_mlp", texts)
    if nodes is not None:
        fused = torch.cat((initial, nodes.index_select(0, _entities(rows[0]))), dim=-1)
        initial = _map(weights, "early_fuse_mlp.2", relu(_map(weights, "early_fuse_mlp.0", fused)))
    update: Callable[..., Tensor] = _Layer.apply
    score: Callable[..., Tensor] = _Scores.apply
    state = initial
    for layer, factors in enumerate(_relation_states(weights, torch.from_numpy(graph.vectors))):
        at = f"entity_model.layers.{layer}"
        names = ("linear.weight", "linear.bias", "layer_norm.weight", "layer_norm.bias")
        given = (state, factors, initial, *(weights[f"{at}.{name}"] for name in names))
        state = update(graph, rows[layer], rows[layer + 1], *given)
    hidden = state @ of_state.t()  # (R, h)
    if nodes is not None:
        hidden = hidden + (nodes @ others[1].t()).index_select(0, _entities(rows[-1]))
    scores = score(rows[-1], hidden, parts, weights[f"{head}.2.weight"][0])
    return scores + weights[f"{head}.2.bias"]


def _map(weights: Mapping[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    return linear(inputs, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _entities(rows: LayerRows) -> Tensor:
    """Return (R,), whose state a row is; for row 0, which nobody reads where nodes have texts, the first."""
    return torch.from_numpy(rows.entity).clamp(min=0)


def _relation_states(weights: Mapping[str, Tensor], vectors: Tensor) -> Iterator[Tensor]:
    """Yield the relation states (R, d) of every layer, as network.project_relations.

    What comes before the rectifier is linear, so that inverse relations with negated vectors need no products there.
    """
    half = len(vectors) // 2
    negated = half > 0 and torch.equal(vectors[:half], -vectors[half:])
    inputs = linear(vectors[:half] if negated else vectors, weights["rel_mlp.weight"])
    for layer in range(layer_count(weights)):
        at = f"entity_model.layers.{layer}.relation_projection"
        matrix, bias = weights[f"{at}.0.weight"], weights[f"{at}.0.bias"]
        middle = linear(inputs, matrix)
        offset = torch.addmv(bias, matrix, weights["rel_mlp.bias"])
        hidden = torch.cat((offset + middle, offset - middle)) if negated else middle + offset
        yield linear(relu(hidden), weights[f"{at}.2.weight"], weights[f"{at}.2.bias"])


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
        width, step = states.shape[1], LayerStep(graph, earlier, rows, states, factors, initial)
        inputs = torch.empty(len(rows), 2 * width)  # [state; aggregated messages]
        mixed, following = torch.empty(len(rows), width), torch.empty(len(rows), width)
        for block in _blocks(len(rows), width):
            step.write_inputs(block.start, inputs[block])
            torch.addmm(bias, inputs[block], weight.t(), out=mixed[block])
            next_states(mixed[block], inputs[block], norm_weight, norm_bias, following[block])
        ctx.given = graph, earlier, rows
        ctx.save_for_backward(states, factors, initial, weight, norm_weight, norm_bias, inputs, mixed)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, factors, initial, weight, norm_weight, norm_bias, inputs, mixed = ctx.saved_tensors
        graph, earlier, rows = ctx.given
        step = LayerStep(graph, earlier, rows, states.detach(), factors.detach(), initial.detach())
        norm_weight, norm_bias = norm_weight.detach(), norm_bias.detach()
        sums, gradient, width = step.zeros(), gradient.contiguous(), states.shape[1]
        of_weight, of_bias, of_norm = torch.zeros_like(weight), torch.zeros_like(norm_bias), torch.zeros(2, width)
        size = min(len(mixed), _block_rows(width))
        mixed_buffer, inputs_buffer = torch.empty(size, width), torch.empty(size, 2 * width)
        for block in _blocks(len(mixed), width):
            of_mixed, of_inputs = (one[: block.stop - block.start] for one in (mixed_buffer, inputs_buffer))
            of_norm += norm_gradients(mixed[block], norm_weight, norm_bias, gradient[block], of_mixed)
            of_bias += of_mixed.sum(0)
            of_weight.addmm_(of_mixed.t(), inputs[block])
            torch.mm(of_mixed, weight, out=of_inputs)
            of_inputs[:, :width] += gradient[block]  # the state itself is added to the update
            step.add_gradients(block.start, of_inputs, sums)
        return None, None, None, sums.states, sums.factors, sums.initial, of_weight, of_bias, of_norm[0], of_norm[1]


class _Scores(Function):
    """The logits (B, N), without the last bias, of what rows add to the score's hidden layer (R, h); see add_scores."""

    @staticmethod
    def forward(ctx: Any, rows: LayerRows, hidden: Tensor, parts: Tensor, output: Tensor) -> Tensor:
        shared = relu(hidden[0] + parts) @ output
        scores: Tensor = shared[:, None].repeat(1, len(rows.place))
        add_scores(rows, hidden, parts, output, scores)
        ctx.rows = rows
        ctx.save_for_backward(hidden, parts, output)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        hidden, parts, output = (one.detach() for one in ctx.saved_tensors)
        rows: LayerRows = ctx.rows
        slope = (gradient * torch.from_numpy(rows.place == 0).t()).sum(1)  # (B,), of row 0's scores
        active = relu(hidden[0] + parts)
        of_parts = (active > 0) * slope[:, None] * output
        of_hidden, of_output = torch.zeros_like(hidden), slope @ active
        of_hidden[0] = of_parts.sum(0)
        score_gradients(rows, hidden, parts, output, gradient.contiguous(), of_hidden, of_parts, of_output)
        return None, of_hidden, of_parts, of_output


def _blocks(count: int, width: int) -> Iterator[slice]:
    size = _block_rows(width)
    for low in range(0, count, size):
        yield slice(low, min(low + size, count))


def _block_rows(width: int) -> int:
    return max(512, _NUMBERS_AT_ONCE // width)
