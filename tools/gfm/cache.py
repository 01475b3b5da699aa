"""What a network computes once for a graph and no question changes.

A relation's states depend on its text alone. And while no entity has been told of a question, every state is the same
for every question: the background. A question changes only what its entities reach (ras_agent.tools.gfm.cpu).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.gfm.cached_rows import Kept, joined, keep
from ras_agent.tools.gfm.cpu_kernels import hear
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import layer_count, relation_inputs, relation_states

if TYPE_CHECKING:
    from torch import Tensor, dtype

__all__ = ["ROWS", "IndexStates", "Layer", "layers_of", "prepare", "rectified"]

ROWS = 2048  # rows at a time: a block of states of width 512 is 4 MB and stays in the cache


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights, as its products want them.

    of_state, of_total: (d, d), the two halves of the linear map of [state; total], transposed. bias, gain, shift: (d,).
    """

    of_state: Tensor
    of_total: Tensor
    bias: Tensor
    gain: Tensor
    shift: Tensor


@dataclass(frozen=True, slots=True)
class IndexStates:
    """Everything that is kept for a graph.

    kinds: the relation states (R, d) of every layer.
    mixed: (N, d) each, what the linear map makes of the background at layers 0, 1, ...; of layer 0 one row for all.
    final: (N, 2d), the part of the score's hidden layer that knows no question; None where it did not fit.
    entering: (N, d), float32, the background states that enter layer len(mixed), or the score; None where `final` is
        there.
    """

    kinds: tuple[Kept, ...]
    mixed: tuple[Kept, ...]
    final: Kept | None
    entering: Tensor | None

    @property
    def bytes(self) -> int:
        """Memory they take."""
        kept = (*self.kinds, *self.mixed, *(() if self.final is None else (self.final,)))
        entering: int = 0
        if self.entering is not None:
            entering = self.entering.untyped_storage().nbytes()
        size: int = sum(one.bytes for one in kept) + entering
        return size


def layers_of(weights: Mapping[str, Tensor], kind: dtype) -> list[Layer]:
    """The weights by layer; the matrices as `kind`."""
    layers = []
    for number in range(layer_count(weights)):
        at = f"entity_model.layers.{number}"
        matrix = weights[f"{at}.linear.weight"]
        of_state, of_total = (half.t().contiguous().to(kind) for half in matrix.chunk(2, dim=1))
        norm = weights[f"{at}.layer_norm.weight"], weights[f"{at}.layer_norm.bias"]
        layers.append(Layer(of_state, of_total, weights[f"{at}.linear.bias"], *norm))
    return layers


def rectified(mixed: Tensor, layer: Layer) -> Tensor:
    """What a layer adds to the states, of what its linear map gave: (rows, d)."""
    from torch.nn.functional import layer_norm

    return layer_norm(mixed, mixed.shape[-1:], layer.gain, layer.shift).relu_()


def prepare(weights: Mapping[str, Tensor], graph: GFMGraph, most: int, half: bool | None) -> IndexStates:
    """Compute what is kept for `graph`: all relation states, and the background from layer 0 on while it fits.

    most: bytes for all of it; the relation states are kept even where they are more. half: see Kept; None: where
    float32 would be more than `most`. The background itself is computed in float32, from float32.
    """
    import torch

    layers = layers_of(weights, torch.float32)
    width, count, relations = layers[0].bias.shape[0], graph.entities, len(graph.vectors)
    if half is None:
        # a row of each layer's background but the first's, and two of the hidden layer
        half = 4 * (width + 1) * (len(layers) * relations + (len(layers) + 1) * count) > most
    row = 2 * width + 4 if half else 4 * width + 4
    left = most - len(layers) * relations * row
    inputs = relation_inputs(weights, torch.from_numpy(graph.vectors))
    # nobody has anything to say at layer 0, so all entities stay alike until layer 1 has been heard
    state: Tensor | None = rectified(layers[0].bias[None], layers[0]).expand(count, width).contiguous()
    kinds, mixed, entering = [keep(relation_states(weights, 0, inputs), half)], [keep(layers[0].bias[None], half)], None
    for number, layer in enumerate(layers[1:], start=1):
        exact = relation_states(weights, number, inputs)
        # what is kept has to be followed by the states that enter the next layer, in float32
        if state is not None and left < count * (row + 4 * width):
            # those that enter layer 1 are one row still
            entering, state = state if number > 1 else state[:1].clone().expand(count, width), None
        if state is not None:
            before, state = _step(graph, layer, state, Kept(exact, torch.ones(relations)), half)
            mixed.append(before)
            left -= count * row
        kinds.append(keep(exact, half))
    final = None
    if state is not None and left < 2 * count * row:
        entering = state
    elif state is not None:
        reader = weights["entity_model.mlp.0.weight"][:, :width].t()
        final = joined([keep(state[begin : begin + ROWS] @ reader, half) for begin in range(0, max(1, count), ROWS)])
    return IndexStates(tuple(kinds), tuple(mixed), final, entering)


def _step(graph: GFMGraph, layer: Layer, state: Tensor, kinds: Kept, half: bool) -> tuple[Kept, Tensor]:
    """One layer of the background: what the linear map gives, to be kept, and the next states (N, d)."""
    import torch

    everyone, total = np.arange(len(state)), torch.empty(min(ROWS, len(state)), state.shape[1])
    before, following = [], torch.empty_like(state)
    for begin in range(0, max(1, len(state)), ROWS):  # a graph without entities is one empty block
        some = everyone[begin : begin + ROWS]
        heard, own = total[: len(some)], state[begin : begin + ROWS]
        hear(graph, some, everyone, state, kinds, heard)
        block = torch.addmm(layer.bias, heard, layer.of_total).addmm_(own, layer.of_state)
        torch.add(rectified(block, layer), own, out=following[begin : begin + ROWS])
        before.append(keep(block, half))
    return joined(before), following
