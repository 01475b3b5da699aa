"""Scores documents by the scores of the entities they name (GFM-RAG, eq. 14 to 16, and its variants)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.gfm.graph import row_entries
from ras_agent.tools.index.ties import TIE, best_places
from ras_agent.tools.kg.arrays import SparseRows

_LEAST = 1e-16  # lower bound of 1 - probability
Reals = npt.NDArray[np.floating[Any]]
EntityWeight = Literal["rarity", "one", "score", "score-rarity"]


@dataclass(frozen=True, slots=True)
class DocumentRanker:
    """Sets how documents are scored by the entities that they name. The defaults are the paper's."""

    top: int = 20
    """The number of best entities that count; 0 for all."""
    weight: EntityWeight = "rarity"
    """The weight that an entity adds to each document that names it, however often.

    "rarity" is 1 / the number of its documents (eq. 15), "one" is 1, "score" is its probability, and "score-rarity"
    is the product of score and rarity. "score" and "score-rarity" with top 0 are the other rankers of the published
    code.
    """
    power: float = 1.0
    """The exponent of the number of documents in "rarity" and "score-rarity"; not in the paper."""
    length: float = 0.0
    """The exponent of the number of a document's entities, by which its score is divided; not in the paper."""

    def __post_init__(self) -> None:
        if (
            self.top < 0
            or self.weight not in get_args(EntityWeight)
            or min(self.power, self.length) < 0
        ):
            raise ValueError(
                f"a document ranker needs one of the weights {', '.join(get_args(EntityWeight))}, and no number "
                f"below 0: correct {self}"
            )


PACKAGED = DocumentRanker(50, "score-rarity", power=0.5, length=0.5)
"""The rule for the weights that come with the package; chosen on HotpotQA's tuning half."""


def contributions(
    probabilities: Reals,
    mentions: SparseRows,
    ranker: DocumentRanker = DocumentRanker(),
    others: Reals | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the entities that count for the ranking of documents, and the weight that each adds to a document naming
    it.

    The division by the document's length (`DocumentRanker.length`) is not applied yet.

    Args:
        probabilities: (N,), of the entities.
        mentions: (N, D), the documents that name each entity.
        others: the probabilities of nodes that are not entities. They compete for the `ranker.top` best, but add
            nothing.
    """
    frequency = mentions.row_sizes()
    scores = probabilities
    if others is not None:
        scores = np.concatenate((probabilities, others))
    best = np.arange(len(scores))
    if ranker.top and ranker.top < len(scores):
        # compare odds, since the probabilities of high logits differ by less than the tolerance of ties
        odds = scores / np.maximum(1 - scores.astype(np.float64), _LEAST)
        last = np.partition(odds, -ranker.top)[-ranker.top]
        best = np.flatnonzero(odds >= last * (1 - 2 * TIE))
        best = best[best_places(odds[best], ranker.top, relative=True)]
    entities = best[best < len(probabilities)]
    entities = entities[frequency[entities] > 0]
    weights = np.ones(len(entities), dtype=np.float64)
    if ranker.weight in ("score", "score-rarity"):
        weights *= probabilities[entities]
    if ranker.weight in ("rarity", "score-rarity"):
        weights /= frequency[entities] ** ranker.power
    return entities, weights


def document_scores(
    probabilities: Reals,
    mentions: SparseRows,
    ranker: DocumentRanker = DocumentRanker(),
    others: Reals | None = None,
) -> Floats:
    """Return the scores of the D documents (D,), each at least 0.

    Args:
        probabilities: (N,), of the entities.
        mentions: (N, D), the documents that name each entity.
        others: the probabilities of other nodes, see `contributions`.
    """
    entities, weights = contributions(probabilities, mentions, ranker, others)
    cells, which = row_entries(mentions.starts, entities)
    documents = mentions.columns[cells]
    totals = np.bincount(documents, weights[which], mentions.width)
    lengths = np.bincount(mentions.columns, minlength=mentions.width)
    scores = totals / lengths.clip(min=1) ** ranker.length
    return scores.astype(np.float32)
