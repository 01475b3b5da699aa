"""Why an entity was found: the chains of facts that its score depends on most (GFM-RAG, eq. 19, after NBFNet).

Every message of every layer is given a weight of 1, and the score's derivative by that weight tells how much the
message matters. A path takes at most one message a layer, in the layers' order, from one of the question's entities to
the one that is explained; its weight is the sum of the derivatives along it. The best ones are found by beam search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.cpu import Start
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import Messages, layer_count, plain_scores

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MessagePath", "best_paths", "message_gradients", "search"]


@dataclass(frozen=True, slots=True)
class MessagePath:
    """Numbers of messages, the first spoken by one of the question's entities, each by the hearer of the one before."""

    messages: tuple[int, ...]
    weight: float


def message_gradients(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    question: Floats,
    start: Start,
    targets: Sequence[int],
    kinds: Sequence[Kept] | None = None,
) -> list[list[Floats]]:
    """For each of `targets`, (M,) a layer: the derivative of the target's logit by the weight of each message.

    kinds: the layers' relation states where they are known. Takes one plain pass for all targets, and its memory with
    its intermediate states, no more for kinds in 16 bits, on the device of the weights.
    """
    import torch

    on = next(iter(weights.values())).device
    dense = torch.zeros(1, graph.entities)
    dense[0, torch.from_numpy(start.entities)] = torch.from_numpy(start.weights)
    with torch.enable_grad():
        ones = [torch.ones(graph.messages, requires_grad=True, device=on) for _ in range(layer_count(weights))]
        asked = torch.from_numpy(question)[None].to(on)
        logits = plain_scores(weights, Messages.of(graph, str(on)), asked, dense.to(on), kinds, ones)
        found = [torch.autograd.grad(logits[0, target], ones, retain_graph=True) for target in targets]
    return [[gradient.cpu().numpy() for gradient in gradients] for gradients in found]


def search(
    graph: GFMGraph, gradients: Sequence[Floats], starts: Sequence[int], target: int, count: int = 3, beam: int = 10
) -> list[MessagePath]:
    """The `count` heaviest paths from any of `starts` to `target`, heaviest first, each chain of messages once.

    beam: how many partial paths each entity keeps at every layer. Messages that would lower the score are not taken,
    and no path comes back to where it was.
    """
    hearer = graph.hearer
    outgoing: dict[int, list[int]] = {}
    kept: dict[int, list[tuple[float, tuple[int, ...]]]] = {entity: [(0.0, ())] for entity in starts}
    for gradient in gradients:
        useful = np.flatnonzero(gradient > 0)
        useful = useful[np.isin(graph.source[useful], list(kept))]
        outgoing = {}
        for message in useful.tolist():
            outgoing.setdefault(int(graph.source[message]), []).append(message)
        # staying where one is costs nothing: a path may skip layers
        following = {entity: list(paths) for entity, paths in kept.items()}
        for entity, messages in outgoing.items():
            for weight, path in kept[entity]:
                been = {int(graph.source[message]) for message in path} | {entity}
                for message in messages:
                    if int(hearer[message]) not in been:
                        step = (weight + float(gradient[message]), (*path, message))
                        following.setdefault(int(hearer[message]), []).append(step)
        kept = {entity: _heaviest(paths, beam) for entity, paths in following.items()}
    found = [MessagePath(path, weight) for weight, path in kept.get(target, []) if path]
    return found[:count]


def best_paths(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    question: Floats,
    start: Start,
    targets: Sequence[int],
    *,
    kinds: Sequence[Kept] | None = None,
    count: int = 3,
    beam: int = 10,
) -> list[list[MessagePath]]:
    """The heaviest paths that explain why each of `targets` was found for a question; none if nothing leads there."""
    gradients = message_gradients(weights, graph, question, start, targets, kinds)
    starts = start.entities.tolist()
    return [search(graph, one, starts, target, count, beam) for one, target in zip(gradients, targets, strict=True)]


def _heaviest(paths: list[tuple[float, tuple[int, ...]]], beam: int) -> list[tuple[float, tuple[int, ...]]]:
    """The `beam` heaviest, each chain once at its heaviest; ties by the chain."""
    best: dict[tuple[int, ...], float] = {}
    for weight, path in paths:
        best[path] = max(best.get(path, weight), weight)
    return sorted(((weight, path) for path, weight in best.items()), key=lambda one: (-one[0], one[1]))[:beam]
