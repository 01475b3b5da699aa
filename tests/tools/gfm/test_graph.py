"""The vectors of a graph's relations and of their inverses."""

from __future__ import annotations

import numpy as np

from ras_agent.tools.gfm.graph import GFMGraph

BORN_AND_LIVES = np.array([[1.0, 0.5], [0.0, -2.0]], dtype=np.float16)
FACTS = np.array([[0, 0, 1], [0, 1, 2]])


def test_inverses_without_vectors_have_their_relations_times_minus_one() -> None:
    graph = GFMGraph.from_edges(3, FACTS, BORN_AND_LIVES, None)
    assert graph.relations == 4
    assert graph.vectors.tolist() == [[1, 0.5], [0, -2], [-1, -0.5], [0, 2]]


def test_inverses_may_have_vectors_of_their_own() -> None:
    graph = GFMGraph.from_edges(
        3, FACTS, BORN_AND_LIVES, np.array([[7, 7], [8, 8]], dtype=np.float16)
    )
    assert graph.relations == 4
    assert graph.vectors_of(np.array([3, 0, 2, 3])).tolist() == [
        [8, 8],
        [1, 0.5],
        [7, 7],
        [8, 8],
    ]


def test_vectors_stay_as_they_are_stored_and_are_read_as_float32() -> None:
    graph = GFMGraph.from_edges(3, FACTS, BORN_AND_LIVES, None)
    assert graph.relation_vectors is BORN_AND_LIVES
    assert graph.vectors.dtype == graph.vectors_of(np.array([1])).dtype == np.float32
