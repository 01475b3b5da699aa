"""The retriever "hybrid": BM25 and dense fused by reciprocal rank (Cormack, Clarke and Büttcher, 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.bm25 import bm25
from ras_agent.tools.retrieve.dense import dense
from ras_agent.tools.retrieve.ranker import RankedRetriever, Ranker
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k


def fuse(rankings: Sequence[Ranking], size: int, k: int, constant: float) -> Ranking:
    """Return the `k` best of `size` rows by the sum of 1 / (constant + rank) over rankings; the best row has rank 1."""
    scores = np.zeros(size, dtype=np.float32)
    for ranking in rankings:
        scores[ranking.rows] += (1 / (constant + np.arange(1, len(ranking.rows) + 1))).astype(np.float32)
    return top_k(scores, k)


class HybridRetriever(RankedRetriever):
    """Retriever that fuses rankers of the same passages, so that what several rank well comes first."""

    name = "hybrid"

    def __init__(self, rankers: Sequence[Ranker], *, constant: float = 60, depth: int = 100) -> None:
        """Take rankers of the same passages. Raises ValueError for others.

        constant: dampens the lead of the first ranks. depth: how far down each ranking counts, at least k.
        """
        if not rankers or any(len(ranker.passages) != len(rankers[0].passages) for ranker in rankers):
            raise ValueError("hybrid retrieval needs rankers over the same passages")
        self.passages = rankers[0].passages
        self._rankers, self._constant, self._depth = tuple(rankers), constant, depth

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        rankings = [ranker.rank(query, max(k, self._depth)) for ranker in self._rankers]
        return fuse(rankings, len(self.passages), k, self._constant)


def hybrid(index: PassageIndex, *, constant: float = 60, depth: int = 100) -> HybridRetriever:
    """Build the retriever. Raises IndexMismatch for an index without vectors."""
    return HybridRetriever([bm25(index), dense(index)], constant=constant, depth=depth)
