"""The k best of many scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.retrieve.ranking import top_k


@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.integers(1, 400), st.integers(1, 30))
def test_the_k_best_positive_scores_ties_by_row(seed: int, size: int, k: int, levels: int) -> None:
    scores = np.random.default_rng(seed).integers(-1, levels, size).astype(np.float32)
    ranked = sorted((row for row in range(size) if scores[row] > 0), key=lambda row: (-scores[row], row))[:k]
    found = top_k(scores, k)
    assert found.rows.tolist() == ranked
    assert found.scores.tolist() == scores[ranked].tolist()


def test_no_scores_no_rows() -> None:
    assert top_k(np.zeros(0, dtype=np.float32), 5).rows.tolist() == []
    assert top_k(np.zeros(5000, dtype=np.float32), 5).rows.tolist() == []


def test_the_smallest_positive_score_counts() -> None:
    scores = np.zeros(5000, dtype=np.float32)
    scores[4321] = np.finfo(np.float32).smallest_subnormal
    assert top_k(scores, 3).rows.tolist() == [4321]
