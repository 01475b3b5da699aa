"""What a network computes once for a graph, since no question changes it.

Relation states depend on the relations' texts alone. And before any question every state is the same for every
question: the background. A question changes only what its entities reach (ras_agent.tools.gfm.cpu).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.gfm.cached_rows import CachedRows, cache_rows, join_rows
from ras_agent.tools.gfm.cpu_kernels import ROWS_AT_ONCE, propagate
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import layer_count, project_relations_in_blocks, relation_inputs

if TYPE_CHECKING:
    from torch import Tensor, dtype


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer, in the form in which its products use them.

    state_weight, total_weight: (d, d), the two halves of the linear map of [state; total], transposed.
    bias: (d,), of the linear map. norm_weight, norm_bias: (d,), of the layer norm.
    """

    state_weight: Tensor
    total_weight: Tensor
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor


@dataclass(frozen=True, slots=True)
class ScoreHead:
    """The weights of the score, rectify(state @ state_weight + query @ query_weight + ... + bias) @ output.

    state_weight, query_weight: (d, h). node_weight: (d, h) of a node's own vector, None for a network that reads none.
    bias, output: (h,). output_bias: added to every score.
    """

    state_weight: Tensor
    query_weight: Tensor
    node_weight: Tensor | None
    bias: Tensor
    output: Tensor
    output_bias: float

    @classmethod
    def of(cls, weights: Mapping[str, Tensor], name: str, width: int) -> ScoreHead:
        """Take the two layers `name`.0 and `name`.2, whose inputs are state, query and, if any, the node's vector."""
        import torch

        state, query, *node = (part.t().contiguous() for part in torch.split(weights[f"{name}.0.weight"], width, 1))
        output, output_bias = weights[f"{name}.2.weight"][0].contiguous(), float(weights[f"{name}.2.bias"])
        return cls(state, query, node[0] if node else None, weights[f"{name}.0.bias"], output, output_bias)


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """What a network reads of the nodes themselves, before any question. Only G-reasoner has it: its nodes have texts.

    vectors: (N, d), of the nodes. initial: (N, d), the states that they start with; they enter every sum of messages.
    """

    vectors: Tensor
    initial: Tensor


@dataclass(frozen=True, slots=True)
class GraphCache:
    """Everything that does not depend on the question and is computed once for a graph.

    relation_states: (R, d) of every layer.
    pre_norm: (N, d) for each cached layer 0, 1, ...: the output of its linear map for the background, before the layer
        norm. At layer 0 all entities are alike and share one row, unless nodes have inputs.
    score_hidden: (N, h), what the background's last states add to the score's hidden layer; None where it did not fit.
    uncached_from: (N, d), float32, the background states that enter layer len(pre_norm), which is the first layer
        without a cached output (or the score, if all layers are cached); None where `score_hidden` is there.
    """

    relation_states: tuple[CachedRows, ...]
    pre_norm: tuple[CachedRows, ...]
    score_hidden: CachedRows | None
    uncached_from: Tensor | None

    @property
    def bytes(self) -> int:
        """Return the memory of all arrays."""
        cached = (*self.relation_states, *self.pre_norm, *(() if self.score_hidden is None else (self.score_hidden,)))
        states: int = 0
        if self.uncached_from is not None:
            states = self.uncached_from.untyped_storage().nbytes()
        size: int = sum(rows.bytes for rows in cached) + states
        return size


def layer_weights(weights: Mapping[str, Tensor], dtype: dtype) -> list[LayerWeights]:
    """Return the weights layer by layer, the matrices as `dtype`."""
    layers = []
    for number in range(layer_count(weights)):
        at = f"entity_model.layers.{number}"
        matrix = weights[f"{at}.linear.weight"]
        of_state, of_total = (half.t().contiguous().to(dtype) for half in matrix.chunk(2, dim=1))
        norm_weight, norm_bias = weights[f"{at}.layer_norm.weight"], weights[f"{at}.layer_norm.bias"]
        layers.append(LayerWeights(of_state, of_total, weights[f"{at}.linear.bias"], norm_weight, norm_bias))
    return layers


def norm_and_rectify(mixed: Tensor, layer: LayerWeights) -> Tensor:
    """Return rectify(layer norm(`mixed`)), (rows, d), which is added to the states. mixed: a linear map's output."""
    from torch.nn.functional import layer_norm

    return layer_norm(mixed, mixed.shape[-1:], layer.norm_weight, layer.norm_bias).relu_()


def build_cache(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    head: ScoreHead,
    cache_bytes: int,
    half_cache: bool | None,
    nodes: NodeInputs | None = None,
) -> GraphCache:
    """Compute all relation states, and the background from layer 0 on as far as it fits.

    cache_bytes: for all of it; the relation states are cached even if they alone take more.
    half_cache: cache 16-bit integers; None: do so if float32 would take more than `cache_bytes`. The background itself
        is computed in float32, from float32.
    nodes: without them all states that enter layer 0 are zeros, and so are its messages.
    """
    import torch

    layers = layer_weights(weights, torch.float32)
    width, count, relations = layers[0].bias.shape[0], graph.entities, len(graph.vectors)
    hidden = len(head.bias) // width  # rows of a state's width
    alike = nodes is None  # all entities leave layer 0 alike
    if half_cache is None:
        rows = len(layers) * relations + (len(layers) - alike + hidden) * count
        half_cache = 4 * (width + 1) * rows > cache_bytes
    row = 2 * width + 4 if half_cache else 4 * width + 4
    bytes_left = cache_bytes - len(layers) * relations * row
    inputs = relation_inputs(weights, torch.from_numpy(graph.vectors))
    relation_states, pre_norm, uncached_from = [], [], None
    state: Tensor | None = None if nodes is None else nodes.initial
    for number, layer in enumerate(layers):
        exact = project_relations_in_blocks(weights, number, inputs)
        relation_states.append(cache_rows(exact, half_cache))
        if number == 0 and alike:
            state = norm_and_rectify(layer.bias[None], layer).expand(count, width).contiguous()
            pre_norm.append(cache_rows(layer.bias[None], half_cache))
            continue
        # a cached layer needs room for its output and for the float32 states that enter the next
        if state is not None and bytes_left < count * (row + 4 * width):
            # the states that enter layer 1 are still one row
            uncached_from = state[:1].clone().expand(count, width) if alike and number == 1 else state
            state = None
        if state is not None:
            factors = CachedRows(exact, torch.ones(relations))
            output, state = _background_layer(graph, layer, state, factors, half_cache, nodes)
            pre_norm.append(output)
            bytes_left -= count * row
    score_hidden = None
    if state is not None and bytes_left < hidden * count * row:
        uncached_from = state
    elif state is not None:
        blocks = (slice(begin, begin + ROWS_AT_ONCE) for begin in range(0, max(1, count), ROWS_AT_ONCE))
        score_hidden = join_rows(
            [cache_rows(background_share(head, state[block], nodes, block), half_cache) for block in blocks]
        )
    return GraphCache(tuple(relation_states), tuple(pre_norm), score_hidden, uncached_from)


def background_share(head: ScoreHead, state: Tensor, nodes: NodeInputs | None, block: slice) -> Tensor:
    """Return (rows, h): what the states of the entities `block` and their vectors add to the score's hidden layer."""
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
) -> tuple[CachedRows, Tensor]:
    """Compute one layer of the background: the linear map's output, cached, and the next states (N, d)."""
    import torch

    everyone, total = np.arange(len(state)), torch.empty(min(ROWS_AT_ONCE, len(state)), state.shape[1])
    outputs, following = [], torch.empty_like(state)
    for begin in range(0, max(1, len(state)), ROWS_AT_ONCE):  # a graph without entities is one empty block
        block = slice(begin, begin + ROWS_AT_ONCE)
        targets, block_states = everyone[block], state[block]
        sums = total[: len(targets)]
        propagate(graph, targets, everyone, state, relation_states, sums)
        if nodes is not None:
            sums += nodes.initial[block]
        mixed = torch.addmm(layer.bias, sums, layer.total_weight).addmm_(block_states, layer.state_weight)
        torch.add(norm_and_rectify(mixed, layer), block_states, out=following[block])
        outputs.append(cache_rows(mixed, half_cache))
    return join_rows(outputs), following
