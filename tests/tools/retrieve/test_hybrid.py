"""Reciprocal rank fusion."""

from typing import Any

import numpy as np
import pytest

from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.hybrid import HybridRetriever, fuse
from ras_agent.tools.retrieve.ranking import Ranking
from ras_agent.tools.retrieve.registered import retriever_over

CORPUS = [
    Passage("rock", "Rock climbing in the Alps."),
    Passage("river", "The river flows through the city."),
    Passage("city", "The city of rock and river."),
    Passage("sea", "Nothing to do with it."),
]


def ranking(*rows: int) -> Ranking:
    return Ranking(np.array(rows, dtype=np.int64), np.arange(len(rows), 0, -1, dtype=np.float32))


def test_a_row_scores_the_sum_of_its_reciprocal_ranks() -> None:
    fused = fuse([ranking(4, 1, 2), ranking(2, 4)], size=6, k=10, constant=60)
    assert fused.rows.tolist() == [4, 2, 1]
    assert fused.scores.tolist() == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62])


def test_rows_that_swap_ranks_tie_in_corpus_order() -> None:
    assert fuse([ranking(5, 0, 3), ranking(3, 0, 5)], size=6, k=2, constant=60).rows.tolist() == [3, 5]


def test_a_small_constant_favours_the_first_ranks() -> None:
    rankings = [ranking(0, 1, 2), ranking(3, 4, 1)]
    assert fuse(rankings, size=5, k=1, constant=60).rows.tolist() == [1]
    assert fuse(rankings, size=5, k=1, constant=0).rows.tolist() == [0]


def test_passages_ranked_by_both_come_first(hash_embedder: Any) -> None:
    hits = retriever_over(PassageIndex.in_memory(CORPUS, hash_embedder), "hybrid").retrieve("city river", 4)
    assert {hit.passage.id for hit in hits[:2]} == {"river", "city"}
    assert hits[0].score == pytest.approx(2 / 61)


def test_depth_limits_how_far_down_a_ranking_counts() -> None:
    class Fixed:
        def __init__(self, *rows: int) -> None:
            self.passages, self._rows = CORPUS, rows

        def rank(self, query: str, k: int) -> Ranking:
            return ranking(*self._rows[:k])

    deep, shallow = (HybridRetriever([Fixed(0, 1, 2), Fixed(3, 1, 2)], depth=depth) for depth in (3, 1))
    assert deep.rank("city", 1).rows.tolist() == [1]
    assert shallow.rank("city", 1).rows.tolist() == [0]
    assert shallow.rank("city", 3).rows.tolist() == [1, 2, 0]  # k asks for more


def test_a_blank_query_is_refused_whatever_the_rankers_do() -> None:
    class Whatever:
        passages = CORPUS

        def rank(self, query: str, k: int) -> Ranking:
            return ranking(0)

    assert HybridRetriever([Whatever()]).rank("city", 1).rows.tolist() == [0]
    with pytest.raises(ValueError, match="blank"):
        HybridRetriever([Whatever()]).rank(" ", 1)


def test_rankers_of_different_corpora_are_refused() -> None:
    with pytest.raises(ValueError, match="rankers over the same passages"):
        HybridRetriever([BM25Retriever.from_passages(CORPUS), BM25Retriever.from_passages(CORPUS[:2])])
    with pytest.raises(ValueError, match="rankers over the same passages"):
        HybridRetriever([])
