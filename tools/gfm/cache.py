"""Caches the states that a network computes once for a graph, since no question changes them.

Relation states depend only on the relations' texts. And without any question every entity has a state that is the
same for all questions: the background. A question changes only the states that its entities reach
(ras_agent.tools.gfm.cpu).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.gfm.cached_rows import CachedRows, cache_rows, empty_rows
from ras_agent.tools.gfm.cpu_kernels import ROWS_AT_ONCE, propagate
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import (
    NORM_EPSILON,
    layer_count,
    project_relations,
    relation_inputs,
)

if TYPE_CHECKING:
    from torch import Tensor, dtype


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Holds the weights of one layer, in the form in which its products use them.

    `state_weight` and `total_weight`, (d, d), are the two halves of the linear map of [state; total], transposed.
    """

    state_weight: Tensor
    total_weight: Tensor
    bias: Tensor
    """(d,), of the linear map."""
    norm_weight: Tensor
    """(d,), of the layer norm."""
    norm_bias: Tensor
    """(d,), of the layer norm."""


@dataclass(frozen=True, slots=True)
class ScoreHead:
    """Holds the weights of the score, relu(state @ state_weight + query @ query_weight + ... + bias) @ output +
    output_bias.

    `state_weight` and `query_weight` are (d, h), `bias` and `output` (h,).
    """

    state_weight: Tensor
    query_weight: Tensor
    node_weight: Tensor | None
    """(d, h), for a node's own vector; None for a network without such vectors."""
    bias: Tensor
    output: Tensor
    output_bias: float

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], name: str, width: int) -> ScoreHead:
        """Return the head with the layers `name`.0 and `name`.2 of a network.

        The inputs of the first layer are the state, the query and, if the network has them, the node's vector, each
        of `width`.
        """
        import torch

        state, query, *node = (
            part.t().contiguous()
            for part in torch.split(weights[f"{name}.0.weight"], width, 1)
        )
        output = weights[f"{name}.2.weight"][0].contiguous()
        output_bias = float(weights[f"{name}.2.bias"])
        return cls(
            state,
            query,
            node[0] if node else None,
            weights[f"{name}.0.bias"],
            output,
            output_bias,
        )


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Holds the inputs of a network from the nodes themselves, before any question. Only G-reasoner has them: its
    nodes have texts.
    """

    vectors: Tensor
    """(N, d), the nodes' own vectors."""
    initial: Tensor
    """(N, d), the states with which they start; these enter every sum of messages."""


@dataclass(frozen=True, slots=True)
class GraphCache:
    """Holds everything that is independent of the question and computed once for a graph."""

    relation_states: tuple[CachedRows, ...]
    """(R, d) of every layer."""
    pre_norm: tuple[CachedRows, ...]
    """(N, d) for each cached layer 0, 1, ...: the output of its linear map for the background, before the layer norm.
    At layer 0 all entities are alike and share one row, unless nodes have inputs.
    """
    deviation: tuple[Tensor, ...]
    """(N,) for each of these layers, or (1,): the square root of the output's variance, by which the layer norm
    divides.
    """
    score_hidden: CachedRows | None
    """(N, h), the part of the score's hidden layer from the background's last states; None if it did not fit."""
    uncached_from: Tensor | None
    """(N, d), float32, the background states that enter layer len(pre_norm), which is the first layer without a cached
    output (or the score, if all layers are cached); None if `score_hidden` is there.
    """


def layer_weights(
    weights: Mapping[str, Tensor], dtype: dtype
) -> Iterator[LayerWeights]:
    """Yield each layer's weights, with the matrices as `dtype`."""
    for number in range(layer_count(weights)):
        at = f"entity_model.layers.{number}"
        matrix = weights[f"{at}.linear.weight"]
        of_state, of_total = (
            half.t().contiguous().to(dtype) for half in matrix.chunk(2, dim=1)
        )
        norm_weight = weights[f"{at}.layer_norm.weight"]
        norm_bias = weights[f"{at}.layer_norm.bias"]
        yield LayerWeights(
            of_state, of_total, weights[f"{at}.linear.bias"], norm_weight, norm_bias
        )


def norm_and_rectify(mixed: Tensor, layer: LayerWeights) -> Tensor:
    """Return relu(layer norm(`mixed`)), (rows, d), which is added to the states.

    Args:
        mixed: (rows, d), the output of the layer's linear map.
    """
    from torch.nn.functional import layer_norm

    return layer_norm(
        mixed, mixed.shape[-1:], layer.norm_weight, layer.norm_bias
    ).relu_()


def build_cache(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    head: ScoreHead,
    cache_bytes: int,
    half_cache: bool | None,
    nodes: NodeInputs | None = None,
) -> GraphCache:
    """Compute all relation states, and the background from layer 0 on, as far as it fits into memory.

    Args:
        cache_bytes: the bytes for everything; relation states are cached even if they take more.
        half_cache: whether to cache 16-bit integers; by default if float32 would take more than `cache_bytes`. The
            background itself is computed in float32, from float32.
        nodes: the nodes' own inputs; without them all states that enter layer 0 are zeros, and so are their
            messages.
    """
    import torch

    layers = layer_count(weights)
    width = len(weights["rel_mlp.bias"])
    count = graph.entities
    relations = graph.relations
    hidden = len(head.bias) // width  # width of the hidden layer, in widths of a state
    alike = nodes is None  # all entities have the same state after layer 0
    if half_cache is None:
        rows = layers * relations + (layers - alike + hidden) * count
        half_cache = 4 * (width + 1) * rows > cache_bytes
    row = 2 * width + 4 if half_cache else 4 * width + 4
    bytes_left = cache_bytes - layers * relations * row
    pre_norm = []
    deviations = []
    uncached_from = None
    if nodes is None:
        state = torch.zeros(1, width).expand(count, width)
    else:
        state = nodes.initial
    relation_states = _relation_states(weights, graph, half_cache)
    for number, layer in enumerate(layer_weights(weights, torch.float32)):
        if alike and not number:
            output = layer.bias[None]  # one row for all
            pre_norm.append(cache_rows(output, half_cache))
            deviations.append(deviation_of(output))
            state = norm_and_rectify(output, layer).expand(count, width)
            continue
        # a cached layer needs room for its output and for the float32 states that enter the next
        if bytes_left < count * (row + 4 * width):
            uncached_from = state
            break
        outputs, deviation, state = _background_layer(
            graph,
            layer,
            state.contiguous(),
            relation_states[number],
            half_cache,
            nodes,
        )
        pre_norm.append(outputs)
        deviations.append(deviation)
        bytes_left -= count * row
    score_hidden = None
    if uncached_from is None and bytes_left < hidden * count * row:
        uncached_from = state
    elif uncached_from is None:
        score_hidden = empty_rows(count, len(head.bias), half_cache)
        for begin in range(0, count, ROWS_AT_ONCE):
            block = slice(begin, begin + ROWS_AT_ONCE)
            share = background_share(head, state[block], nodes, block)
            score_hidden.write(begin, share)
    return GraphCache(
        relation_states,
        tuple(pre_norm),
        tuple(deviations),
        score_hidden,
        uncached_from,
    )


def _relation_states(
    weights: Mapping[str, Tensor], graph: GFMGraph, half_cache: bool
) -> tuple[CachedRows, ...]:
    """Return every layer's relation states (R, d), computed from the sentence vectors in blocks."""
    import torch

    inputs = relation_inputs(weights, torch.from_numpy(graph.vectors))
    every = []
    for layer in range(layer_count(weights)):
        states = empty_rows(len(inputs), inputs.shape[1], half_cache)
        for begin in range(0, len(inputs), ROWS_AT_ONCE):
            block = inputs[begin : begin + ROWS_AT_ONCE]
            states.write(begin, project_relations(weights, layer, block))
        every.append(states)
    return tuple(every)


def deviation_of(rows: Tensor) -> Tensor:
    """Return the square root of each row's variance (rows,), by which a layer norm divides it."""
    import torch

    variance = torch.var(rows, dim=1, correction=0)
    return (variance + NORM_EPSILON).sqrt_()


def background_share(
    head: ScoreHead, state: Tensor, nodes: NodeInputs | None, block: slice
) -> Tensor:
    """Return the part (rows, h) of the score's hidden layer that comes from the states and vectors of the entities
    `block`.
    """
    share = state @ head.state_weight
    if nodes is not None and head.node_weight is not None:
        share += nodes.vectors[block] @ head.node_weight
    return share


def _background_layer(
    graph: GFMGraph,
    layer: LayerWeights,
    state: Tensor,
    relation_states: CachedRows,
    half_cache: bool,
    nodes: NodeInputs | None,
) -> tuple[CachedRows, Tensor, Tensor]:
    """Compute one layer of the background; return the linear map's output, cached, its deviation, and the next states.

    Args:
        state: (N, d).
    """
    import torch

    count, width = state.shape
    everyone = np.arange(count)
    following = torch.empty(count, width)
    total = torch.empty(min(ROWS_AT_ONCE, count), width)
    outputs = empty_rows(count, width, half_cache)
    deviation = torch.empty(count)
    for begin in range(0, count, ROWS_AT_ONCE):
        block = slice(begin, begin + ROWS_AT_ONCE)
        targets = everyone[block]
        sums = total[: len(targets)]
        propagate(graph, targets, everyone, state, relation_states, sums)
        if nodes is not None:
            sums += nodes.initial[block]
        mixed = torch.addmm(layer.bias, sums, layer.total_weight)
        mixed.addmm_(state[block], layer.state_weight)
        normed, _, inverse = torch.native_layer_norm(
            mixed, [width], layer.norm_weight, layer.norm_bias, NORM_EPSILON
        )
        torch.add(normed.relu_(), state[block], out=following[block])
        deviation[block] = 1 / inverse[:, 0]
        outputs.write(begin, mixed)
    return outputs, deviation, following
