"""Scores that differ only by rounding count as equal."""

import numpy as np

from ras_agent.tools.index.ties import TIE, best_places, level
from ras_agent.tools.index.vector_index import VectorIndex, VectorSettings
from ras_agent.tools.retrieve.ranking import top_k


def test_a_group_of_ties_has_the_score_of_its_best_and_is_no_wider_than_the_tolerance() -> (
    None
):
    scores = np.array([0.5, 0.4999995, 0.4999992, 0.4999985, 0.4999980, 0.2])
    assert level(scores, relative=False).tolist() == [
        0.5,
        0.5,
        0.5,
        0.4999985,
        0.4999985,
        0.2,
    ]


def test_scores_that_are_just_the_tolerance_apart_tie() -> None:
    assert level(np.array([TIE, 0.0]), relative=False).tolist() == [TIE, TIE]


def test_the_tolerance_is_a_share_of_positive_sums() -> None:
    scores = np.array([200, 199.9999, 0.0002, 0.0001])
    assert level(scores, relative=True).tolist() == [200, 200, 0.0002, 0.0001]


def test_places_of_scores_that_tie_keep_their_order() -> None:
    scores = np.array([0.1, 0.7, 0.7 + 3e-7, -0.2, 0.8])
    assert best_places(scores, 3, relative=True).tolist() == [4, 1, 2]
    assert best_places(scores, 9, relative=False).tolist() == [4, 1, 2, 0, 3]
    assert best_places(scores[:0], 2, relative=True).tolist() == []


def test_rounding_does_not_decide_which_of_the_best_are_hits() -> None:
    scores = np.array([3, 2, 2 + 3e-7, 2 - 3e-7, 2 + 5e-7, 1], dtype=np.float32)
    assert top_k(scores, 3).rows.tolist() == [0, 1, 2]
    assert top_k(scores, 6).rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert np.all(np.diff(top_k(scores, 6).scores) <= 0)


def test_what_is_truly_better_stays_first() -> None:
    scores = np.array([2, 2.00002, 2.00001], dtype=np.float32)
    assert top_k(scores, 2).rows.tolist() == [1, 2]


def test_vectors_that_differ_by_rounding_come_in_their_order() -> None:
    near = np.array(
        [[0.8, 0.6], [0.8000001, 0.5999999], [0.7999999, 0.6000001], [1, 0]],
        dtype=np.float32,
    )
    index = VectorIndex.build(near[[2, 0, 1, 2, 3]], VectorSettings())
    numbers, products = index.search(np.array([1, 0], dtype=np.float32), 3)
    assert numbers.tolist() == [4, 0, 1]
    assert np.all(np.diff(products) <= 0)
