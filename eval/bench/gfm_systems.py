"""The passes of the GFM network that a benchmark compares, each as a function from questions to scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.tools.gfm.cached_rows import CachedRows, cache_rows
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.cpu_kernels import propagate
from ras_agent.tools.gfm.cuda import DeviceGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import (
    GraphTensors,
    layer_count,
    plain_scores,
    project_relations,
    relation_inputs,
    update,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DEVICE_SYSTEMS", "SYSTEMS", "System", "system_named"]

Starts = list[npt.NDArray[np.int64]]
SYSTEMS = ("plain", "plain, kept", "autograd", "fast", "fast, half", "fast, bfloat16")
DEVICE_SYSTEMS: dict[str, dict[str, Any]] = {
    "device": {},
    "device, float32": {"products": "float32"},
    "device, half": {"states": "float16", "products": "bfloat16"},
}


@dataclass(frozen=True, slots=True)
class System:
    """scores: from vectors (B, text width) and each question's entities to logits (B, N). kept: bytes that last."""

    scores: Callable[[Floats, Starts], Floats]
    kept: int = 0
    network: DeviceGFM | None = None


def system_named(name: str, weights: Mapping[str, Tensor], graph: GFMGraph, device: str, rows: int) -> System:
    """A system of SYSTEMS or DEVICE_SYSTEMS over a graph. device, rows: of DeviceGFM."""
    if name in DEVICE_SYSTEMS:
        network = DeviceGFM(weights, graph, device, rows=rows, **DEVICE_SYSTEMS[name])
        return System(_of_starts(network), network.bytes, network)
    if name.startswith("fast"):
        half = name in ("fast, half", "fast, bfloat16")
        fast = FastGFM(weights, graph, half_cache=half, half_products=name == "fast, bfloat16")
        return System(_of_starts(fast), fast.cache.bytes)
    messages = GraphTensors.of(graph)
    if name == "autograd":
        return System(_each(lambda asked, start: _reference(weights, messages, asked, start)))
    kinds: list[CachedRows] | None = None
    if name == "plain, kept":
        inputs = relation_inputs(weights, messages.vectors)
        kinds = [
            cache_rows(project_relations(weights, layer, inputs), half=False) for layer in range(layer_count(weights))
        ]
    kept = sum(kind.values.nbytes for kind in kinds or ())
    return System(_each(lambda asked, start: _published(weights, graph, messages.vectors, asked, start, kinds)), kept)


def _of_starts(network: FastGFM | DeviceGFM) -> Callable[[Floats, Starts], Floats]:
    def scores(vectors: Floats, starts: Starts) -> Floats:
        return network.scores(vectors, [GFMStart(start, np.ones(len(start), np.float32)) for start in starts])

    return scores


def _each(one: Callable[[Floats, Any], Floats]) -> Callable[[Floats, Starts], Floats]:
    def scores(vectors: Floats, starts: Starts) -> Floats:
        return np.stack([one(vector, start) for vector, start in zip(vectors, starts, strict=True)])

    return scores


def _reference(weights: Mapping[str, Tensor], messages: GraphTensors, asked: Floats, start: Any) -> Floats:
    import torch

    dense = torch.zeros(1, messages.entities)
    dense[0, start] = 1
    found: Floats = plain_scores(weights, messages, torch.from_numpy(asked)[None], dense)[0].numpy()
    return found


def _published(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    vectors: Tensor,
    asked: Floats,
    start: Any,
    kinds: list[CachedRows] | None,
) -> Floats:
    """The plain pass as the published code runs it: one kernel for the messages, then whole-graph products."""
    import torch
    from torch.nn.functional import linear, relu

    query = linear(torch.from_numpy(asked), weights["question_mlp.weight"], weights["question_mlp.bias"])
    initial = torch.zeros(graph.entities, len(query))
    initial[start] = query
    inputs = relation_inputs(weights, vectors) if kinds is None else None
    everyone = np.arange(graph.entities)
    state = initial
    for layer in range(layer_count(weights)):
        if inputs is not None:
            kind = cache_rows(project_relations(weights, layer, inputs), half=False)
        else:
            assert kinds is not None
            kind = kinds[layer]
        total = torch.empty_like(state)
        propagate(graph, everyone, everyone, state, kind, total)
        state = update(weights, layer, state, total + initial)
    features = torch.cat((state, query.expand_as(state)), dim=-1)
    hidden = relu(linear(features, weights["entity_model.mlp.0.weight"], weights["entity_model.mlp.0.bias"]))
    out = linear(hidden, weights["entity_model.mlp.2.weight"], weights["entity_model.mlp.2.bias"])
    scores: Floats = out[:, 0].numpy()
    return scores
