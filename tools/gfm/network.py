"""The GFM network, plainly: every state of every entity at every layer (GFM-RAG, arXiv:2502.01113, eq. 4 to 10).

Where the paper and its published code differ, this follows the code, since its weights were trained with it: the
initial states enter the sum of messages at every layer, and what the linear layer makes of [state; sum] is normalised,
rectified and added to the state; the score reads [state; question].
`weights` maps the names of GFMConfig.shapes to float tensors. All functions are differentiable in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.config import GFMConfig
from ras_agent.tools.gfm.graph import GFMGraph

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "EPSILON",
    "RELATIONS",
    "Messages",
    "initial_weights",
    "layer_count",
    "layer_relations",
    "plain_scores",
    "relation_inputs",
    "relation_states",
    "update",
]

EPSILON = 1e-5  # of torch's layer norm
RELATIONS = 8192  # relations at a time


@dataclass(frozen=True, slots=True)
class Messages:
    """A graph's messages as tensors on one device: source, relation and hearer (M,), int64; vectors (R, text width)."""

    entities: int
    source: Tensor
    relation: Tensor
    hearer: Tensor
    vectors: Tensor

    @classmethod
    def of(cls, graph: GFMGraph, device: str = "cpu") -> Messages:
        """The tensors of `graph`."""
        import torch

        arrays = (graph.source, graph.relation, graph.hearer, graph.vectors)
        return cls(graph.entities, *(torch.from_numpy(array).to(device) for array in arrays))


def initial_weights(config: GFMConfig, seed: int) -> dict[str, Tensor]:
    """Untrained weights: linear layers uniform in +-1/sqrt(inputs), as torch makes them, norms the identity."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    shapes = config.shapes()
    weights = {}
    for name, shape in shapes.items():
        if ".layer_norm." in name:
            weights[name] = torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
        else:
            bound = shapes[f"{name.rpartition('.')[0]}.weight"][1] ** -0.5
            weights[name] = (2 * torch.rand(shape, generator=generator) - 1) * bound
    return weights


def layer_count(weights: Mapping[str, Tensor]) -> int:
    """How many layers the weights have."""
    return sum(name.endswith(".layer_norm.weight") for name in weights)


def relation_inputs(weights: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
    """(R, d): what every layer's relation states start from, of sentence vectors (R, text width)."""
    from torch.nn.functional import linear

    return linear(vectors, weights["rel_mlp.weight"], weights["rel_mlp.bias"])


def layer_relations(weights: Mapping[str, Tensor], layer: int, inputs: Tensor) -> Tensor:
    """(R, d): the relation states g(h_r) of one layer (eq. 8), of `inputs` (R, d)."""
    from torch.nn.functional import linear, relu

    at = f"entity_model.layers.{layer}.relation_projection"
    hidden = relu(linear(inputs, weights[f"{at}.0.weight"], weights[f"{at}.0.bias"]))
    return linear(hidden, weights[f"{at}.2.weight"], weights[f"{at}.2.bias"])


def relation_states(weights: Mapping[str, Tensor], layer: int, inputs: Tensor) -> Tensor:
    """`layer_relations` in blocks, for a graph of many relations."""
    import torch

    return torch.cat([layer_relations(weights, layer, block) for block in torch.split(inputs, RELATIONS)])


def update(weights: Mapping[str, Tensor], layer: int, state: Tensor, total: Tensor) -> Tensor:
    """The next states (..., d) of `state` (..., d) and the sum of what it hears (..., d): eq. 9."""
    import torch
    from torch.nn.functional import layer_norm, linear, relu

    at = f"entity_model.layers.{layer}"
    mixed = linear(torch.cat((state, total), dim=-1), weights[f"{at}.linear.weight"], weights[f"{at}.linear.bias"])
    norm = layer_norm(mixed, mixed.shape[-1:], weights[f"{at}.layer_norm.weight"], weights[f"{at}.layer_norm.bias"])
    return relu(norm) + state


def plain_scores(
    weights: Mapping[str, Tensor],
    graph: Messages,
    questions: Tensor,
    start: Tensor,
    relations: Sequence[Kept] | None = None,
    edge_weights: list[Tensor] | None = None,
) -> Tensor:
    """Logits (B, N) of the entities for sentence vectors `questions` (B, text width); eq. 10 is their sigmoid.

    start: (B, N), how much each entity belongs to the question, 0 for most (eq. 6).
    relations: the relation states (R, d) of every layer where they are known already; only the rows that messages
        speak in are read, a layer at a time.
    edge_weights: a weight (M,) for each message of every layer; all 1 where not given.
    """
    import torch
    from torch.nn.functional import linear, relu

    asked = linear(questions, weights["question_mlp.weight"], weights["question_mlp.bias"])  # (B, d)
    # entities first: an entity's states of all questions lie together, and are gathered and added up as one row
    initial = start.t()[..., None] * asked  # (N, B, d)
    inputs = relation_inputs(weights, graph.vectors) if relations is None else None
    state = initial
    for layer in range(layer_count(weights)):
        if inputs is not None:
            spoken = layer_relations(weights, layer, inputs).index_select(0, graph.relation)  # (M, d)
        else:
            assert relations is not None
            spoken = relations[layer].rows(graph.relation)
        if edge_weights is not None:
            spoken = spoken * edge_weights[layer][:, None]
        said = state.index_select(0, graph.source) * spoken[:, None]  # (M, B, d)
        total = initial.index_add(0, graph.hearer, said.to(initial.dtype))
        state = update(weights, layer, state, total)
    features = torch.cat((state, asked.expand_as(state)), dim=-1)  # (N, B, 2d)
    hidden = relu(linear(features, weights["entity_model.mlp.0.weight"], weights["entity_model.mlp.0.bias"]))
    return linear(hidden, weights["entity_model.mlp.2.weight"], weights["entity_model.mlp.2.bias"]).squeeze(-1).t()
