"""Explains an entity's score by the chains of messages on which it depends most (GFM-RAG, eq. 19, after NBFNet).

Every message of every layer gets a weight of 1, and the derivative of the score with respect to that weight says
how much the message matters. A path leads from one of the question's entities to the one that is explained, with at
most one message for each layer, in the layers' order. Beam search finds the heaviest paths by one of two
definitions, since the paper leaves it open:

heaviest_paths     ours: the weight is the sum of the derivatives, layers may be skipped, no entity is visited
                   twice, and no message that lowers the score is taken
published_paths    the published code's: the weight is their mean, over the first layers without a gap, and an
                   entity may be visited again; so short paths rank higher
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors, layer_count, plain_scores
from ras_agent.tools.gfm.reasoner import plain_reasoner_scores

if TYPE_CHECKING:
    from torch import Tensor

_Partial = tuple[float, tuple[int, ...]]  # a path's weight and messages


@dataclass(frozen=True, slots=True)
class MessagePath:
    """Holds a chain of messages by number: the first leaves a question's entity, each later one its predecessor's
    target.
    """

    messages: tuple[int, ...]
    weight: float


def message_gradients(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    question: Floats,
    start: GFMStart,
    targets: Sequence[int],
    relation_states: Sequence[CachedRows] | None = None,
    nodes: Floats | None = None,
) -> list[list[Floats]]:
    """Return, for each entity in `targets` and each layer, the derivative of its logit by each message's weight, (M,).

    One plain pass serves all targets. It runs on the weights' device and needs memory for all intermediate states;
    relation states cached in 16 bits add little to that.

    Args:
        question: (text width,), the question's vector.
        relation_states: those of every layer, if they are known.
        nodes: (N, text width), the vectors of the nodes' texts, for G-reasoner's network.
    """
    import torch

    device = next(iter(weights.values())).device
    dense = torch.zeros(1, graph.entities)
    dense[0, torch.from_numpy(start.entities)] = torch.from_numpy(start.weights)
    with torch.enable_grad():
        ones = [
            torch.ones(graph.messages, requires_grad=True, device=device)
            for _ in range(layer_count(weights))
        ]
        vectors = torch.from_numpy(question)[None].to(device)
        tensors = GraphTensors.of(graph, str(device), vectors=relation_states is None)
        if nodes is None:
            logits = plain_scores(
                weights, tensors, vectors, dense.to(device), relation_states, ones
            )
        else:
            texts = torch.from_numpy(nodes).to(device)
            logits = plain_reasoner_scores(
                weights,
                tensors,
                texts,
                vectors,
                dense.to(device),
                relation_states,
                ones,
            )
        by_target = [
            torch.autograd.grad(logits[0, target], ones, retain_graph=True)
            for target in targets
        ]
    return [
        [gradient.cpu().numpy() for gradient in gradients] for gradients in by_target
    ]


def heaviest_paths(
    graph: GFMGraph,
    gradients: Sequence[Floats],
    starts: Sequence[int],
    goal: int,
    count: int = 3,
    beam: int = 10,
) -> list[MessagePath]:
    """Return the `count` heaviest paths from any of `starts` to `goal`, heaviest first, each chain of messages once.

    No message that would lower the score is taken, and no path returns to an entity.

    Args:
        gradients: for each layer (M,), the derivatives of the goal's logit.
        beam: the number of partial paths that are continued from each entity at every layer.
    """
    target = graph.target
    paths: dict[int, list[_Partial]] = {entity: [(0.0, ())] for entity in starts}
    for gradient in gradients:
        useful = np.flatnonzero(gradient > 0)
        useful = useful[np.isin(graph.source[useful], list(paths))]
        outgoing: dict[int, list[int]] = {}
        for message in useful.tolist():
            outgoing.setdefault(int(graph.source[message]), []).append(message)
        # a path may skip a layer without changing its weight
        longer = {entity: list(partial) for entity, partial in paths.items()}
        for entity, messages in outgoing.items():
            for weight, path in paths[entity]:
                visited = {int(graph.source[message]) for message in path}
                visited.add(entity)
                for message in messages:
                    end = int(target[message])
                    if end in visited:
                        continue
                    step = (weight + float(gradient[message]), (*path, message))
                    longer.setdefault(end, []).append(step)
        paths = {entity: _heaviest(partial, beam) for entity, partial in longer.items()}
    ranked = [MessagePath(path, weight) for weight, path in paths.get(goal, []) if path]
    return ranked[:count]


def published_paths(
    graph: GFMGraph,
    gradients: Sequence[Floats],
    starts: Sequence[int],
    goal: int,
    count: int = 3,
    beam: int = 10,
) -> list[MessagePath]:
    """Return the `count` paths with the highest mean derivative, as the published code ranks them.

    A path of n messages takes one at each of the first n layers, whatever its sign, and ends when it arrives at
    `goal`.

    Args:
        gradients: for each layer (M,), the derivatives of the goal's logit.
        beam: the number of paths that are continued from each entity at every layer.
    """
    target = graph.target
    paths: dict[int, list[_Partial]] = {entity: [(0.0, ())] for entity in starts}
    complete: list[_Partial] = []
    for length, gradient in enumerate(gradients, 1):
        longer: dict[int, list[_Partial]] = {}
        goes_on = np.isin(graph.source, [one for one in paths if one != goal])
        for message in np.flatnonzero(goes_on).tolist():
            step = float(gradient[message])
            arrived = longer.setdefault(int(target[message]), [])
            for weight, path in paths[int(graph.source[message])]:
                arrived.append((weight + step, (*path, message)))
        paths = {entity: _heaviest(partial, beam) for entity, partial in longer.items()}
        complete += [(weight / length, path) for weight, path in paths.get(goal, [])]
    return [MessagePath(path, weight) for weight, path in _heaviest(complete, count)]


def best_paths(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    question: Floats,
    start: GFMStart,
    targets: Sequence[int],
    *,
    relation_states: Sequence[CachedRows] | None = None,
    nodes: Floats | None = None,
    count: int = 3,
    beam: int = 10,
    published: bool = False,
) -> list[list[MessagePath]]:
    """Return, for each entity in `targets`, the heaviest paths that explain its score; [] if no message leads there.

    Args:
        relation_states, nodes: see message_gradients.
        count, beam: see heaviest_paths.
        published: whether to rank as `published_paths` does.
    """
    gradients = message_gradients(
        weights, graph, question, start, targets, relation_states, nodes
    )
    starts = start.entities.tolist()
    ranked = published_paths if published else heaviest_paths
    return [
        ranked(graph, gradient, starts, goal, count, beam)
        for gradient, goal in zip(gradients, targets, strict=True)
    ]


def _heaviest(paths: list[_Partial], beam: int) -> list[_Partial]:
    """Return the `beam` heaviest paths; of equal chains only the heaviest is kept. Ties are broken by the chain."""
    best: dict[tuple[int, ...], float] = {}
    for weight, path in paths:
        best[path] = max(best.get(path, weight), weight)
    ranked = sorted((-weight, path) for path, weight in best.items())
    return [(-weight, path) for weight, path in ranked[:beam]]
