"""Makes the path encoder trainable by the training loop: two pairs of low-rank maps, and the triplet loss over
vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.subgraph.scorers.encoders import PARTS
from ras_agent.train.named_weights import NamedWeights


@dataclass(frozen=True, slots=True)
class Triplets:
    """Holds triplets of texts as vectors."""

    vectors: Tensor
    """(V, d), the vectors of all texts"""
    rows: Tensor
    """(T, 3), the indexes of question, right text and wrong text"""


class TrainablePathHead(NamedWeights):
    """Computes the loss of triplets with the weights of a PathHead, as a torch module. `margin` is the margin
    of the loss.
    """

    vectors: Tensor

    def __init__(self, triplets: Triplets, rank: int, margin: float) -> None:
        width = triplets.vectors.shape[1]
        weights = {}
        for part in PARTS:
            if part.endswith("down"):
                weights[part] = torch.randn(width, rank) / width**0.5
            else:
                # so that the head at first changes no vector
                weights[part] = torch.zeros(rank, width)
        super().__init__(weights)
        self.register_buffer("vectors", triplets.vectors, persistent=False)
        self._margin = margin

    def loss(self, rows: Tensor) -> Tensor:
        """Return the mean over triplets of max(0, margin - S(right) + S(wrong)), where S is the cosine to the
        question.

        `rows` is (T, 3), as in Triplets.
        """
        return self._loss(*self._cosines(self.vectors, rows.to(self.vectors.device)))

    def validation(self, triplets: Triplets) -> dict[str, float]:
        """Return the loss of other triplets, and as "order" the share of triplets whose right text scores
        higher.
        """
        device = self.vectors.device
        right, wrong = self._cosines(
            triplets.vectors.to(device), triplets.rows.to(device)
        )
        order = (right > wrong).float().mean()
        return {
            "loss": round(float(self._loss(right, wrong)), 5),
            "order": round(float(order), 5),
        }

    def arrays(self) -> dict[str, Floats]:
        """Return the weights as arrays, by the names that PathHead gives them."""
        return {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in self.tensors().items()
        }

    def _loss(self, right: Tensor, wrong: Tensor) -> Tensor:
        return (self._margin - right + wrong).clamp(min=0).mean()

    def _cosines(self, vectors: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cosines of questions with right and with wrong texts, (T,) each, by PathHead's formula."""
        weights = self.tensors()

        def mapped(places: Tensor, side: str) -> Tensor:
            x = vectors[places]
            return normalize(
                x + (x @ weights[f"{side}_down"]) @ weights[f"{side}_up"], dim=1
            )

        questions = mapped(rows[:, 0], "question")
        right = mapped(rows[:, 1], "text")
        wrong = mapped(rows[:, 2], "text")
        return (questions * right).sum(1), (questions * wrong).sum(1)
