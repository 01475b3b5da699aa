"""Which entities a question can change: the targets of its first messages, and those that a bound cannot rule out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cache import ScoreHead, build_cache, layer_weights  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph, OutgoingMessages  # noqa: E402
from ras_agent.tools.gfm.reach import LayerBound, first_messages, layer_bounds, reached_entities  # noqa: E402

VECTORS = np.zeros((2, 1), dtype=np.float32)
# toward the head: 1 sends to 0 by relation 0, 2 to 0 by relation 1, and 0 to 1 and 2 by the inverses, 2 and 3
GRAPH = GFMGraph.from_edges(4, np.array([[0, 0, 1], [0, 1, 2]]), VECTORS, VECTORS)


def _reached(
    sources: list[int], lengths: list[float], *, update_gain: tuple[float, ...] = (1.0,), always: tuple[int, ...] = ()
) -> list[int]:
    bound = LayerBound(np.array([2, 3, 5, 7], dtype=np.float32), np.array(update_gain, dtype=np.float32))
    given = np.array(sources, dtype=np.int64), torch.tensor(lengths), np.array(always, dtype=np.int64)
    return reached_entities(OutgoingMessages.of(GRAPH), *given, bound, 1.0).tolist()


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([0.19, 0.19], [1, 2]),  # 2 * 0.19 + 3 * 0.19 = 0.95 reaches entity 0
        ([0.21, 0.21], [0, 1, 2]),  # 1.05
        ([0.6, 0.0], [0, 1, 2]),
        ([0.0, 0.3], [1, 2]),
    ],
)
def test_lengths_of_messages_add_up_by_the_gain_of_their_relations(lengths: list[float], expected: list[int]) -> None:
    assert _reached([1, 2], lengths) == expected


def test_a_messages_length_counts_by_the_gain_of_its_targets_update() -> None:
    # the messages to 1 and 2 are at most 0.1 * 5 and 0.1 * 7 long
    assert _reached([0], [0.1], update_gain=(1, 1, 1, 1)) == [0]
    assert _reached([0], [0.1], update_gain=(1, 2.1, 1, 1)) == [0, 1]
    assert _reached([0], [0.1], update_gain=(1, 1, 1.5, 1)) == [0, 2]
    assert _reached([0], [1.0], update_gain=(1, 0.1, 0.2, 1)) == [0, 2]


def test_a_questions_own_entities_and_changed_entities_are_always_reached() -> None:
    assert _reached([], [], always=(3,)) == [3]
    assert _reached([2], [0.0], always=(1,)) == [1, 2]


def test_a_length_that_is_not_a_number_reaches_its_targets() -> None:
    assert _reached([0], [float("nan")]) == [0, 1, 2]


def test_the_bounds_of_a_layer_are_its_largest_factors(small: dict[str, Any]) -> None:
    weights = {name: torch.from_numpy(array) for name, array in small["weights"].items()}
    layers = layer_weights(weights, torch.float32)
    cache = build_cache(weights, small["graph"], ScoreHead.of(weights, "entity_model.mlp", 8), 10**9, False)
    bounds = layer_bounds(cache, layers)
    for number, bound in enumerate(bounds):
        states = cache.relation_states[number].values.numpy()
        np.testing.assert_allclose(bound.message_gain, np.abs(states).max(1))
        matrix = small["weights"][f"entity_model.layers.{number}.linear.weight"][:, 8:].astype(np.float64)
        norm = small["weights"][f"entity_model.layers.{number}.layer_norm.weight"]
        slope = np.linalg.svd(matrix, compute_uv=False)[0] * np.abs(norm).max()
        deviation = np.sqrt(cache.pre_norm[number].values.numpy().astype(np.float64).var(1) + 1e-5)
        np.testing.assert_allclose(bound.update_gain, slope / deviation, rtol=1e-4)
    assert [len(bound.update_gain) for bound in bounds] == [1, 40, 40]  # all entities are alike at the first layer


def test_a_small_change_of_the_messages_changes_no_state_by_more_than_the_bound(small: dict[str, Any]) -> None:
    weights = {name: torch.from_numpy(array).double() for name, array in small["weights"].items()}
    single = {name: tensor.float() for name, tensor in weights.items()}
    layer = layer_weights(weights, torch.float64)[1]
    cache = build_cache(single, small["graph"], ScoreHead.of(single, "entity_model.mlp", 8), 10**9, False)
    bound = layer_bounds(cache, layer_weights(single, torch.float32))[1]
    background = cache.pre_norm[1].values.double()
    change = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 1, 8))) * 1e-6

    def state(mixed: Any) -> Any:
        norm = torch.nn.functional.layer_norm(mixed, (8,), layer.norm_weight, layer.norm_bias)
        return norm.relu()

    moved = (state(background + change @ layer.total_weight) - state(background)).norm(dim=2)  # (500, 40)
    ratio = (moved / change.norm(dim=2)).amax(0) / torch.from_numpy(bound.update_gain)
    assert float(ratio.max()) <= 1.001
    assert float(ratio.max()) > 0.3  # the bound is of the right size


def test_the_first_messages_of_two_questions_come_from_their_own_entities() -> None:
    # the first question starts from 0, the second from 1 and 3
    found = first_messages(OutgoingMessages.of(GRAPH), np.array([0 * 2, 1 * 2 + 1, 3 * 2 + 1]), 2)
    assert [divmod(row, 2) for row in found.rows.tolist()] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 1)]
    assert found.indptr.tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert found.start.tolist() == [1, 0, 0]
    assert found.relation.tolist() == [0, 2, 3]


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 3))
def test_each_message_of_a_start_is_listed_once(seed: int, facts: int, batch: int) -> None:
    rng = np.random.default_rng(seed)
    edges = np.column_stack((rng.integers(0, 8, facts), rng.integers(0, 2, facts), rng.integers(0, 8, facts)))
    graph = GFMGraph.from_edges(8, edges, VECTORS, VECTORS)
    starts = np.flatnonzero(rng.integers(0, 3, 8 * batch) == 0)
    found = first_messages(OutgoingMessages.of(graph), starts, batch)
    listed = [
        (int(row), int(starts[found.start[place]]), int(found.relation[place]))
        for number, row in enumerate(found.rows)
        for place in range(found.indptr[number], found.indptr[number + 1])
    ]
    messages = list(zip(graph.target.tolist(), graph.source.tolist(), graph.relation.tolist(), strict=True))
    expected = [
        (target * batch + start % batch, int(start), relation)
        for start in starts
        for target, source, relation in messages
        if source == start // batch
    ]
    assert sorted(listed) == sorted(expected)
    assert found.rows.tolist() == sorted({*starts.tolist(), *(row for row, _, _ in expected)})
