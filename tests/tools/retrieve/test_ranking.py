"""The k best of many scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3000),
    st.integers(1, 400),
    st.integers(1, 30),
)
def test_the_k_best_positive_scores_ties_by_row(
    seed: int, size: int, k: int, levels: int
) -> None:
    scores = np.random.default_rng(seed).integers(-1, levels, size).astype(np.float32)
    ranked = sorted(
        (row for row in range(size) if scores[row] > 0),
        key=lambda row: (-scores[row], row),
    )[:k]
    found = top_k(scores, k)
    assert found.rows.tolist() == ranked
    assert found.scores.tolist() == scores[ranked].tolist()


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3000),
    st.integers(1, 400),
    st.floats(0, 1),
)
def test_the_k_best_of_scores_that_all_differ(
    seed: int, size: int, k: int, share: float
) -> None:
    random = np.random.default_rng(seed)
    places = random.permutation(size)
    # some of them are 0
    scores = ((places + 1) / size * (random.random(size) <= share)).astype(np.float32)
    ranked = sorted(np.flatnonzero(scores).tolist(), key=lambda row: -scores[row])[:k]
    found = top_k(scores, k)
    assert found.rows.tolist() == ranked
    assert found.scores.tolist() == scores[ranked].tolist()


@pytest.mark.parametrize("seed", range(10))
def test_a_third_of_many_scores_are_the_best_third(seed: int) -> None:
    scores = (np.random.default_rng(seed).permutation(3000) + 1).astype(np.float32)
    assert top_k(scores, 1000).scores.tolist() == list(range(3000, 2000, -1))


def test_of_large_scores_those_that_differ_by_rounding_tie() -> None:
    assert top_k(np.array([199.9999, 200, 1], dtype=np.float32), 2).rows.tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize("k", [1, 2, 100, 256])
@pytest.mark.parametrize("behind", [0, 100])
def test_the_k_th_best_is_found_where_each_block_of_the_corpus_has_one_hit(
    k: int, behind: int
) -> None:
    scores = np.zeros(256 * 10 + behind, dtype=np.float32)
    scores[5 : 256 * 10 : 10] = np.arange(1, 257)
    assert top_k(scores, k).rows.tolist() == [
        10 * block + 5 for block in range(255, 255 - k, -1)
    ]


def test_the_best_row_may_be_the_last_of_all() -> None:
    scores = np.zeros(256 * 10 + 100, dtype=np.float32)
    scores[[7, -1]] = [0.5, 1]
    assert top_k(scores, 1).rows.tolist() == [256 * 10 + 99]
    assert top_k(scores, 2).rows.tolist() == [256 * 10 + 99, 7]


def test_what_ties_with_the_k_th_best_comes_first_in_the_corpus() -> None:
    scores = np.full(5000, 0.1, dtype=np.float32)
    scores[[40, 4000]] = [1 - 5e-7, 1]
    assert top_k(scores, 1).rows.tolist() == [40]
    assert top_k(scores, 1).scores.tolist() == [1]
    scores[40] = 1 - 2e-6  # too far apart for a tie
    assert top_k(scores, 1).rows.tolist() == [4000]


def test_no_scores_no_rows() -> None:
    assert top_k(np.zeros(0, dtype=np.float32), 5).rows.tolist() == []
    assert top_k(np.zeros(5000, dtype=np.float32), 5).rows.tolist() == []


def test_the_smallest_positive_score_counts() -> None:
    scores = np.zeros(5000, dtype=np.float32)
    scores[4321] = np.finfo(np.float32).smallest_subnormal
    assert top_k(scores, 3).rows.tolist() == [4321]


def test_a_ranking_of_nothing_has_neither_rows_nor_scores() -> None:
    assert [len(column) for column in Ranking.empty()] == [0, 0]


def test_a_blank_query_and_fewer_than_one_hit_are_refused() -> None:
    check_query("q", 1)
    with pytest.raises(ValueError, match="the query is blank"):
        check_query(" \n", 1)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        check_query("q", 0)
