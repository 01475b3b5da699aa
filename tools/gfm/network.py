"""Computes the GFM network plainly: every entity's state at every layer (GFM-RAG, arXiv:2502.01113, eq. 4 to 10).

A message is the elementwise product of the source's state and the relation's state (DistMult); an entity sums its
messages; a linear map, a layer norm and a ReLU update its state. `message`, `aggregate` and `update` below are the
reference. For speed the same three steps are also written in other forms, and all these files have to agree:

    weights.py         rejects the configuration of a network with other steps
    network.py         is the reference; training on a device takes gradients through it
    cpu_kernels.py     `propagate` is message and aggregate (a numba kernel, and torch's operations in its absence);
                       `update_changes` is update, of a state's change instead of the state
    cache.py           computes the states before any question; relies on a state of zeros sending messages of zeros
    cpu.py             propagates changes of states instead of states; relies on a message being linear in the state
    reach.py           bounds the length of a message by the largest number of the relation's state, and the change of
                       an update by the norm's slope
    cuda.py            calls the reference's steps block by block, and sums the messages to each entity separately
    ras_agent.train.gfm.fused: message and aggregate with their gradients, for training on the CPU
    paths.py           weights each message by a factor of 1; its derivative is the weight of the message
    tests/tools/gfm/conftest.py has a network to compare with

Where the paper and its published code differ, this follows the code, since its weights were trained with it: the
initial states enter the sum of messages at every layer, and the linear layer's output for [state; sum] is normalised,
rectified and added to the state; the score reads [state; question]. `weights` maps the names of GFMConfig.shapes to
float tensors. All functions are differentiable in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.graph import GFMGraph

if TYPE_CHECKING:
    from torch import Tensor

NORM_EPSILON = 1e-5  # that of torch's layer norm
RELATIONS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class GraphTensors:
    """Holds a GFMGraph as tensors on one device: source, relation, target (M,), int64; vectors (R, text width)."""

    entities: int
    source: Tensor
    relation: Tensor
    target: Tensor
    vectors: Tensor

    @classmethod
    def of(
        cls, graph: GFMGraph, device: str = "cpu", *, vectors: bool = True
    ) -> GraphTensors:
        """Copy the arrays of `graph` to a device; the relations' vectors only if `vectors`."""
        import torch

        if vectors:
            given = graph.vectors
        else:
            given = np.empty((0, 0), dtype=np.float32)
        arrays = (graph.source, graph.relation, graph.target, given)
        return cls(
            graph.entities, *(torch.from_numpy(array).to(device) for array in arrays)
        )

    def sums(self, initial: Tensor, states: Tensor, factors: Tensor) -> Tensor:
        """Return each entity's initial state plus the sum of its messages, (N, B, d).

        Args:
            initial, states: (N, B, d), the states that the entities start with, and their present ones.
            factors: (R, d), the relations' states.
        """
        return self.weighted_sums(
            initial, states, factors.index_select(0, self.relation)
        )

    def weighted_sums(self, initial: Tensor, states: Tensor, factors: Tensor) -> Tensor:
        """Return the same as `sums`, but with separate factors (M, d) for each message."""
        messages = message(states.index_select(0, self.source), factors)  # (M, B, d)
        return aggregate(initial, self.target, messages)


def message(source_states: Tensor, relation_states: Tensor) -> Tensor:
    """Return the messages (M, B, d) for the sources' states (M, B, d) and the relations' states (M, d)."""
    return source_states * relation_states[:, None]


def aggregate(initial: Tensor, target: Tensor, messages: Tensor) -> Tensor:
    """Return, for each entity, its initial state plus the messages to it, (N, B, d).

    Args:
        initial: (N, B, d).
        target: (M,), the entity that each message goes to.
        messages: (M, B, d).
    """
    return initial.index_add(0, target, messages.to(initial.dtype))


def update(
    weights: Mapping[str, Tensor], layer: int, state: Tensor, total: Tensor
) -> Tensor:
    """Return the next states (..., d) for states (..., d) and aggregated messages (..., d): eq. 9."""
    import torch
    from torch.nn.functional import layer_norm, linear, relu

    at = f"entity_model.layers.{layer}"
    mixed = linear(
        torch.cat((state, total), dim=-1),
        weights[f"{at}.linear.weight"],
        weights[f"{at}.linear.bias"],
    )
    norm = layer_norm(
        mixed,
        mixed.shape[-1:],
        weights[f"{at}.layer_norm.weight"],
        weights[f"{at}.layer_norm.bias"],
    )
    return relu(norm) + state


def plain_scores(
    weights: Mapping[str, Tensor],
    graph: GraphTensors,
    questions: Tensor,
    start: Tensor,
    relation_states: Sequence[CachedRows] | None = None,
    message_weights: list[Tensor] | None = None,
) -> Tensor:
    """Return the entities' logits (B, N) for sentence vectors `questions` (B, text width); eq. 10 is their sigmoid.

    Args:
        start: (B, N), how much each entity belongs to the question, 0 for most (eq. 6).
        relation_states: (R, d) of every layer, if they are already known; only the rows of relations that occur are
            read, one layer at a time.
        message_weights: a factor (M,) for each message of every layer; 1 by default.
    """
    from torch.nn.functional import linear

    # (B, d)
    query = linear(
        questions, weights["question_mlp.weight"], weights["question_mlp.bias"]
    )
    # entities first, so that an entity's states for all questions are adjacent and are gathered and summed as one row
    initial = start.t()[..., None] * query  # (N, B, d)
    state = last_states(weights, graph, initial, relation_states, message_weights)
    return entity_logits(weights, state, query).t()


def entity_logits(
    weights: Mapping[str, Tensor], states: Tensor, queries: Tensor
) -> Tensor:
    """Return the logits (N, B) of entities' last states (N, B, d), for the questions' states (B, d): eq. 10."""
    import torch
    from torch.nn.functional import linear, relu

    features = torch.cat((states, queries.expand_as(states)), dim=-1)  # (N, B, 2d)
    hidden = relu(
        linear(
            features,
            weights["entity_model.mlp.0.weight"],
            weights["entity_model.mlp.0.bias"],
        )
    )
    return linear(
        hidden, weights["entity_model.mlp.2.weight"], weights["entity_model.mlp.2.bias"]
    ).squeeze(-1)


def last_states(
    weights: Mapping[str, Tensor],
    graph: GraphTensors,
    initial: Tensor,
    relation_states: Sequence[CachedRows] | None = None,
    message_weights: list[Tensor] | None = None,
) -> Tensor:
    """Return the states (N, B, d) after all layers for nodes that begin with `initial` (N, B, d): eq. 7 to 9.

    Args:
        relation_states, message_weights: see plain_scores.
    """
    if relation_states is None:
        inputs = relation_inputs(weights, graph.vectors)
    else:
        inputs = None
    state = initial
    for layer in range(layer_count(weights)):
        if inputs is None:
            assert relation_states is not None
            factors = relation_states[layer].rows(graph.relation)  # (M, d)
        else:
            factors = project_relations(weights, layer, inputs)  # (R, d)
        if inputs is not None and message_weights is None:
            total = graph.sums(initial, state, factors)
        else:
            if inputs is not None:
                factors = factors.index_select(0, graph.relation)
            if message_weights is not None:
                factors = factors * message_weights[layer][:, None]
            total = graph.weighted_sums(initial, state, factors)
        state = update(weights, layer, state, total)
    return state


def isolated_scores(weights: Mapping[str, Tensor], questions: Tensor) -> Tensor:
    """Return the logit (B,) of a node at which no question starts and to which no message leads. All such nodes have
    the same.
    """
    import torch

    none = torch.zeros(0, dtype=torch.int64, device=questions.device)
    graph = GraphTensors(1, none, none, none, questions[:0])
    return plain_scores(
        weights, graph, questions, questions.new_zeros(len(questions), 1)
    )[:, 0]


def layer_count(weights: Mapping[str, Tensor]) -> int:
    """Return the number of layers of a network."""
    return sum(name.endswith(".layer_norm.weight") for name in weights)


def relation_inputs(weights: Mapping[str, Tensor], vectors: Tensor) -> Tensor:
    """Return the sentence vectors (R, text width) mapped to (R, d), the input of every layer's relation states."""
    from torch.nn.functional import linear

    return linear(vectors, weights["rel_mlp.weight"], weights["rel_mlp.bias"])


def project_relations(
    weights: Mapping[str, Tensor], layer: int, inputs: Tensor
) -> Tensor:
    """Return the relation states g(h_r) of one layer (R, d), for relation inputs (R, d): eq. 8."""
    from torch.nn.functional import linear, relu

    at = f"entity_model.layers.{layer}.relation_projection"
    hidden = relu(linear(inputs, weights[f"{at}.0.weight"], weights[f"{at}.0.bias"]))
    return linear(hidden, weights[f"{at}.2.weight"], weights[f"{at}.2.bias"])


def project_relations_in_blocks(
    weights: Mapping[str, Tensor], layer: int, inputs: Tensor
) -> Tensor:
    """Return the same as `project_relations`, computed in blocks, for a graph with many relations."""
    import torch

    blocks = torch.split(inputs, RELATIONS_AT_ONCE)
    return torch.cat([project_relations(weights, layer, block) for block in blocks])
