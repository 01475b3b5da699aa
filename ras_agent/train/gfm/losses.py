"""What a GFM network is trained to do (GFM-RAG, arXiv:2502.01113, eq. 11 to 13), and the same for documents.

Eq. 12 is printed without a logarithm, which would leave it without a bound; as in the published code, the ranking loss
is the cross entropy of the targets under the entities' probabilities scaled to sum to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["document_loss", "entity_loss", "mean_over", "ranking_loss"]

_LEAST = 1e-9


def mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean (B,) of `values` (B, N) where `chosen` (B, N, 0 or 1); 0 for a row without any."""
    return (values * chosen).sum(-1) / chosen.sum(-1).clamp(min=1)


def entity_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Eq. 11 for a row of logits and of targets (0 or 1), both (B, N): a scalar. All that is no target is negative."""
    from torch.nn.functional import logsigmoid

    positive = mean_over(-logsigmoid(logits), targets)
    negative = mean_over(-logsigmoid(-logits), 1 - targets)
    return (positive + negative).mean()


def ranking_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Eq. 12 with its logarithm, of logits and targets (B, N): a scalar."""
    from torch.nn.functional import logsigmoid

    logs = logsigmoid(logits)
    return mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()


def document_loss(logits: Tensor, shares: Tensor, targets: Tensor) -> Tensor:
    """The ranking loss for documents: their scores are what their entities' probabilities add up to.

    logits: (B, N). shares: sparse (D, N), what each entity gives each document. targets: (B, D), 0 or 1.
    """
    import torch

    scores = torch.sparse.mm(shares, logits.sigmoid().t()).t()  # (B, D)
    logs = (scores + _LEAST).log()
    return mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()
