"""Makes the networks trainable by the training loop: the losses of the questions of a step (GFM-RAG, eq. 11 to 13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, mse_loss

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.gfm.cpu_kernels import has_numba
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.reasoner import plain_reasoner_scores
from ras_agent.train.gfm.batches import GFMExample
from ras_agent.train.gfm.fused import FusedGraph
from ras_agent.train.gfm.reasoner_sets import ReasonerExample
from ras_agent.train.named_weights import NamedWeights

E = TypeVar("E")

_LEAST = 1e-9  # keeps the logarithm of a document's score finite


class TrainableNetwork(NamedWeights, Generic[E]):
    """Computes the loss of an example with the weights of a network, as a torch module."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        losses: Callable[[Mapping[str, Tensor], E], dict[str, Tensor]],
    ) -> None:
        """Take the weights, and a function that returns the loss of an example under "loss", and its parts."""
        super().__init__(weights)
        self._losses = losses

    def loss(self, example: E) -> dict[str, Tensor]:
        """Return the loss of an example under "loss", and its parts."""
        return self._losses(self.tensors(), example)


def losses(
    weights: Mapping[str, Tensor],
    example: GFMExample,
    *,
    alpha: float = 0.3,
    document: float = 0.0,
    adversarial: float = 0.0,
) -> dict[str, Tensor]:
    """Return the loss of an example under "loss", and its parts; scalars on the weights' device.

    Args:
        weights: The weights of a GFM network by name.
        example: The questions and their graph.
        alpha: The weight of eq. 11 in the loss of retrieval (eq. 13).
        document: The weight of the loss for documents.
        adversarial: See `entity_loss`.
    """
    device = next(iter(weights.values())).device
    vectors = torch.from_numpy(example.vectors).to(device)
    targets = torch.from_numpy(example.targets).to(device)
    logits = _scores(weights, example.graph, vectors, example.start)
    # the losses are sums over all entities
    with torch.autocast(device.type, enabled=False):
        if example.candidates is not None:
            candidates = torch.from_numpy(example.candidates).to(device)
            loss = entity_loss(
                logits.gather(1, candidates), targets.gather(1, candidates), adversarial
            )
            return {"loss": loss, "entity": loss}
        parts = _ranking_parts(logits, targets, adversarial)
        loss = _mixed(parts, alpha)
        if (
            document
            and example.shares is not None
            and example.document_targets is not None
        ):
            document_targets = torch.from_numpy(example.document_targets).to(device)
            shares = example.shares.to(device)
            parts["document"] = document_loss(logits, shares, document_targets)
            loss = loss + document * parts["document"]
    return {"loss": loss, **parts}


def reasoner_losses(
    weights: Mapping[str, Tensor],
    example: ReasonerExample,
    *,
    alpha: float,
    adversarial: float,
    distillation: float,
) -> dict[str, Tensor]:
    """Return the loss of an example under "loss", and its parts; scalars on the weights' device.

    `alpha`, `adversarial` and `distillation` are the options of ReasonerTrainingConfig.
    """
    device = next(iter(weights.values())).device
    nodes = torch.from_numpy(example.nodes).to(device)
    vectors = torch.from_numpy(example.vectors).to(device)
    targets = torch.from_numpy(example.targets).to(device)
    logits = _scores(weights, example.graph, vectors, example.start, nodes)
    logits = logits[:, example.documents :]
    with torch.autocast(device.type, enabled=False):
        parts = _ranking_parts(logits, targets, adversarial)
        cosines = vectors @ nodes[example.documents :].t()
        probabilities = (cosines + 1) / 2  # of cosines from -1 to 1
        parts["distillation"] = mse_loss(logits.sigmoid(), probabilities)
    loss = _mixed(parts, alpha) + distillation * parts["distillation"]
    return {"loss": loss, **parts}


def _scores(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    vectors: Tensor,
    start: Floats,
    nodes: Tensor | None = None,
) -> Tensor:
    """Return the logits (B, N), float32, of a GFM network; given `nodes`, the vectors of the nodes, those of a
    G-reasoner network.
    """
    device = vectors.device
    starts = torch.from_numpy(start).to(device)
    tensors: GraphTensors
    if device.type == "cpu" and not torch.is_autocast_enabled("cpu") and has_numba():
        tensors = FusedGraph.of_graph(graph)
    else:
        tensors = GraphTensors.of(graph, str(device))
    if nodes is None:
        return plain_scores(weights, tensors, vectors, starts).float()
    return plain_reasoner_scores(weights, tensors, nodes, vectors, starts).float()


def _ranking_parts(
    logits: Tensor, targets: Tensor, adversarial: float
) -> dict[str, Tensor]:
    return {
        "entity": entity_loss(logits, targets, adversarial),
        "ranking": ranking_loss(logits, targets),
    }


def _mixed(parts: Mapping[str, Tensor], alpha: float) -> Tensor:
    """Return eq. 13: `alpha` times eq. 11 plus `1 - alpha` times eq. 12."""
    return alpha * parts["entity"] + (1 - alpha) * parts["ranking"]


def _mean_over(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each row of `values` (B, N) over the places where `mask` (B, N) is 1, as (B,); 0 if
    there are none.
    """
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def entity_loss(logits: Tensor, targets: Tensor, adversarial: float = 0.0) -> Tensor:
    """Return eq. 11 as a scalar: the mean binary cross entropy of the targets plus that of all other entities.

    Args:
        logits: (B, N).
        targets: (B, N), 1 for a target, else 0.
        adversarial: The temperature of the softmax of logits by which the published code weighs negatives,
            through which no gradient goes; 0 for the mean over them.
    """
    positive = _mean_over(-logsigmoid(logits), targets)
    if not adversarial:
        negative = _mean_over(-logsigmoid(-logits), 1 - targets)
    else:
        scaled = (logits.detach() / adversarial).masked_fill(targets > 0, -math.inf)
        # a row with only targets has no negatives
        shares = scaled.softmax(-1).nan_to_num(0)
        negative = (-logsigmoid(-logits) * shares).sum(-1)
    return (positive + negative).mean()


def ranking_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return eq. 12 of logits and targets, both (B, N), as a scalar.

    The paper prints the equation without a logarithm, which would make it unbounded. As in the published code, this is
    the cross entropy of the targets under the entities' probabilities scaled to sum to 1.
    """
    logs = logsigmoid(logits)
    return _mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()


def document_loss(logits: Tensor, shares: Tensor, targets: Tensor) -> Tensor:
    """Return the ranking loss of documents as a scalar. A document's score is the weighted sum of its entities'
    probabilities.

    Args:
        logits: (B, N).
        shares: Sparse (D, N), the factor of each entity in each document.
        targets: (B, D), 0 or 1.
    """
    scores = torch.sparse.mm(shares, logits.sigmoid().t()).t()  # (B, D)
    logs = (scores + _LEAST).log()
    return _mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()
