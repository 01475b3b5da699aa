"""What a network computes once for a graph and no question changes.

A relation's states depend on its text alone. And while no entity has been told of a question, every state is the same
for every question: the background. A question changes only what its entities reach (ras_agent.tools.encode.gfm.fast).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ras_agent.tools.encode.gfm.graph import GFMGraph
from ras_agent.tools.encode.gfm.kernel import hear
from ras_agent.tools.encode.gfm.network import layer_count, layer_relations, relation_inputs

if TYPE_CHECKING:
    from torch import Tensor, dtype

__all__ = ["ROWS", "IndexStates", "Layer", "layers_of", "prepare", "rectified"]

ROWS = 2048  # rows at a time: a block of states of width 512 is 4 MB and stays in the cache
RELATIONS = 8192


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
    states: (N, d) each, the background states that enter layers 0, 1, ...; at least layer 0's.
    mixed: (N, d) each, what the linear map makes of the background at layers 0, 1, ...; one fewer than `states`.
    final: (N, 2d), the part of the score's hidden layer that knows no question; None where not all layers are kept.
    """

    kinds: tuple[Tensor, ...]
    states: tuple[Tensor, ...]
    mixed: tuple[Tensor, ...]
    final: Tensor | None

    @property
    def bytes(self) -> int:
        """Memory they take."""
        kept = (*self.kinds, *self.states, *self.mixed, *(() if self.final is None else (self.final,)))
        return sum(tensor.untyped_storage().nbytes() for tensor in kept)


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


def prepare(weights: Mapping[str, Tensor], graph: GFMGraph, most: int, kind: dtype) -> IndexStates:
    """Compute what is kept for `graph`: all relation states, and the background from layer 0 on while it fits.

    most: bytes for relation states and background together; the relation states are kept even where they are more.
    kind: float32 or bfloat16, what is kept as.
    """
    import torch

    layers = layers_of(weights, torch.float32)
    vectors = torch.from_numpy(graph.vectors)
    inputs = relation_inputs(weights, vectors)
    kinds = []
    for number in range(len(layers)):
        kept = torch.empty(inputs.shape, dtype=kind)
        for begin in range(0, len(inputs), RELATIONS):
            part = slice(begin, begin + RELATIONS)
            kept[part] = layer_relations(weights, number, inputs[part])
        kinds.append(kept)
    del inputs
    return _background(weights, graph, tuple(kinds), layers, most)


def _background(
    weights: Mapping[str, Tensor], graph: GFMGraph, kinds: tuple[Tensor, ...], layers: list[Layer], most: int
) -> IndexStates:
    import torch

    shape = graph.entities, layers[0].bias.shape[0]
    kind = kinds[0].dtype
    full = shape[0] * shape[1] * kinds[0].element_size()
    spent = sum(tensor.nbytes for tensor in kinds)
    # nobody has anything to say at layer 0, so all entities stay alike until layer 1 has been heard
    states, mixed = [torch.zeros(1, shape[1], dtype=kind).expand(shape)], []
    alike = layers[0].bias[None]
    mixed.append(alike.to(kind).expand(shape))
    state = rectified(alike, layers[0]).expand(shape)
    states.append(state[:1].to(kind).expand(shape))
    for number, layer in enumerate(layers[1:], start=1):
        if spent + 2 * full > most:
            return IndexStates(kinds, tuple(states), tuple(mixed), None)
        spent += 2 * full
        state, before = state.contiguous(), torch.empty(shape, dtype=kind)
        following = torch.empty(shape)
        for begin in range(0, shape[0], ROWS):
            part = slice(begin, begin + ROWS)
            total = hear(graph.indptr[begin : begin + ROWS + 1], graph.source, graph.relation, state, kinds[number])
            block = torch.addmm(layer.bias, total, layer.of_total).addmm_(state[part], layer.of_state)
            before[part] = block
            following[part] = rectified(block, layer).add_(state[part])
        mixed.append(before)
        state = following
        states.append(state if kind == torch.float32 else state.to(kind))
    if spent + 2 * full > most:
        return IndexStates(kinds, tuple(states), tuple(mixed), None)
    reader = weights["entity_model.mlp.0.weight"][:, : shape[1]].t()
    final = torch.empty(shape[0], 2 * shape[1], dtype=kind)
    for begin in range(0, shape[0], ROWS):
        part = slice(begin, begin + ROWS)
        final[part] = state[part] @ reader
    return IndexStates(kinds, tuple(states), tuple(mixed), final)
