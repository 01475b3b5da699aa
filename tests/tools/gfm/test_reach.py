"""Who is spoken to at the first layer."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.gfm.first_layer import first_messages
from ras_agent.tools.gfm.graph import GFMGraph, Outgoing

VECTORS = np.zeros((2, 1), dtype=np.float32)


def test_hearers_of_two_questions_hear_what_their_own_entities_say() -> None:
    # toward the head: 1 tells 0 by relation 0, and 0 tells 1 by its inverse, 2; 3 is alone
    graph = GFMGraph.from_edges(4, np.array([[0, 0, 1], [0, 1, 2]]), VECTORS, VECTORS)
    # the first question starts from 0, the second from 1 and 3
    found = first_messages(Outgoing.of(graph), np.array([0 * 2, 1 * 2 + 1, 3 * 2 + 1]), 2)
    assert [divmod(row, 2) for row in found.rows.tolist()] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 1)]
    assert found.indptr.tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert found.speaker.tolist() == [1, 0, 0]
    assert found.relation.tolist() == [0, 2, 3]


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 3))
def test_each_message_of_a_start_is_heard_once(seed: int, facts: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.column_stack((rng.integers(0, 8, facts), rng.integers(0, 2, facts), rng.integers(0, 8, facts)))
    graph = GFMGraph.from_edges(8, edges, VECTORS, VECTORS)
    starts = np.flatnonzero(rng.integers(0, 3, 8 * batch) == 0)
    found = first_messages(Outgoing.of(graph), starts, batch)
    told = [
        (int(row), int(starts[found.speaker[place]]), int(found.relation[place]))
        for number, row in enumerate(found.rows)
        for place in range(found.indptr[number], found.indptr[number + 1])
    ]
    expected = [
        (hearer * batch + start % batch, int(start), relation)
        for start in starts
        for hearer, source, relation in zip(
            graph.hearer.tolist(), graph.source.tolist(), graph.relation.tolist(), strict=True
        )
        if source == start // batch
    ]
    assert sorted(told) == sorted(expected)
    assert found.rows.tolist() == sorted({*starts.tolist(), *(row for row, _, _ in expected)})
