"""Several rankings of one corpus mixed by their scores, each brought to 0..1 first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Self

import numpy as np

from ras_agent.tools.retrieve.ranker import ExplainedRetriever, Explaining, Ranker
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k

__all__ = ["DEPTH", "MixedRetriever", "mixed"]

DEPTH = 1000
"""How far down each ranking counts."""
_TRIFLE = np.float32(1e-6)


def mixed(rankings: Sequence[Ranking], weights: Sequence[float], size: int, k: int) -> Ranking:
    """The `k` best of `size` rows by the weighted mean of scores; a ranking's best row scores 1 there, its last 0.

    A row that a ranking does not hold scores 0 in it; where all it holds are equal, they score 1.
    """
    scores = np.zeros(size, dtype=np.float32)
    for ranking, weight in zip(rankings, weights, strict=True):
        if not len(ranking.rows):
            continue
        lowest, highest = ranking.scores.min(), ranking.scores.max()
        # what is held scores a trifle more than what is not, so that it stays a hit
        span = max(float(highest - lowest), float(_TRIFLE))
        scores[ranking.rows] += np.float32(weight) * ((ranking.scores - lowest) / np.float32(span) + _TRIFLE)
        if highest == lowest:
            scores[ranking.rows] += np.float32(weight)
    return top_k(scores, k)


class MixedRetriever(ExplainedRetriever):
    """Mixes rankers of the same passages by score."""

    def __init__(
        self, rankers: Sequence[Ranker], weights: Sequence[float], *, name: str = "", depth: int = DEPTH
    ) -> None:
        """depth: how far down each ranking counts, at least k. Raises ValueError for rankers of different passages."""
        if not rankers or any(len(ranker.passages) != len(rankers[0].passages) for ranker in rankers):
            raise ValueError("a mix needs rankers over the same passages")
        if len(weights) != len(rankers) or min(weights) < 0 or not sum(weights) > 0:
            raise ValueError(f"a mix of {len(rankers)} needs as many weights, none negative, got {list(weights)}")
        self.name = name or "+".join(getattr(ranker, "name", type(ranker).__name__) for ranker in rankers)
        self.passages = rankers[0].passages
        self._rankers: tuple[Ranker, ...] = tuple(rankers)
        self._depth, self._weights = depth, [weight / sum(weights) for weight in weights]

    def rank(self, query: str, k: int) -> Ranking:
        """The `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        rankings = [ranker.rank(query, max(k, self._depth)) for ranker in self._rankers]
        return mixed(rankings, self._weights, len(self.passages), k)

    def explained(self, paths: int) -> Self:
        """The same mix, whose hits say why, as far as its rankers can."""
        other = super().explained(paths)
        other._rankers = tuple(
            ranker.explained(paths) if isinstance(ranker, Explaining) else ranker for ranker in self._rankers
        )
        return other

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """What its rankers tell of each passage, one after another."""
        told = [ranker.why(query, passage_ids) for ranker in self._rankers if isinstance(ranker, Explaining)]
        return [tuple(chain.from_iterable(of_one)) for of_one in zip(*told, strict=True)] or [()] * len(passage_ids)
