"""Which entities a question can change: the targets of its first messages, and those that a bound cannot rule out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cache import (
    GraphCache,
    LayerWeights,
    ScoreHead,
    build_cache,
    deviation_of,
    layer_weights,
)
from ras_agent.tools.gfm.cached_rows import cache_rows
from ras_agent.tools.gfm.graph import GFMGraph, OutgoingMessages
from ras_agent.tools.gfm.reach import (
    LayerBound,
    layer_bounds,
    possible_changes,
    reached_entities,
    spectral_norms,
    worth_scoring,
)

VECTORS = np.zeros((2, 1), dtype=np.float32)
# toward the head: 1 sends to 0 by relation 0, 2 to 0 by relation 1, and 0 to 1 and 2 by the inverses, 2 and 3
GRAPH = GFMGraph.from_edges(4, np.array([[0, 0, 1], [0, 1, 2]]), VECTORS, VECTORS)


def _possible(
    sources: list[int],
    lengths: list[float],
    update_gain: tuple[float, ...] = (1.0,),
    state_gain: float = 1.0,
) -> Any:
    gains = (
        np.array(numbers, dtype=np.float32)
        for numbers in ([2, 3, 5, 7], update_gain, (state_gain,))
    )
    given = np.array(sources, dtype=np.int64), torch.tensor(lengths)
    return possible_changes(OutgoingMessages.of(GRAPH), *given, LayerBound(*gains))


def test_in_a_graph_of_two_entities_each_has_its_own_gain() -> None:
    graph = GFMGraph.from_edges(2, np.array([[0, 0, 1]]), VECTORS, VECTORS)
    bound = LayerBound(
        *(np.array(gain, dtype=np.float32) for gain in ([2, 3, 5, 7], [1, 1], [1.5, 4]))
    )
    possible = possible_changes(
        OutgoingMessages.of(graph), np.array([1]), torch.tensor([10.0]), bound
    )
    np.testing.assert_allclose(possible, [20, 40])


def _reached(
    sources: list[int],
    lengths: list[float],
    *,
    update_gain: tuple[float, ...] = (1.0,),
    always: tuple[int, ...] = (),
) -> list[int]:
    possible, given = _possible(sources, lengths, update_gain), (sources, always)
    return reached_entities(
        possible, *(np.array(one, dtype=np.int64) for one in given), 1.0
    ).tolist()


def test_a_change_is_possible_by_messages_and_by_an_entitys_own_state() -> None:
    # from 1 to 0 by relation 0, from 0 to 1 and 2 by the inverses
    np.testing.assert_allclose(
        _possible([0, 1], [0.1, 10.0], state_gain=1.5), [20 + 0.15, 0.5 + 15, 0.7, 0]
    )
    np.testing.assert_allclose(_possible([0], [1.0], (4, 3, 2, 1)), [1, 15, 14, 0])
    np.testing.assert_allclose(_possible([], []), [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([0.19, 0.19], [1, 2]),  # 2 * 0.19 + 3 * 0.19 = 0.95 reaches entity 0
        ([0.21, 0.21], [0, 1, 2]),  # 1.05
        ([0.6, 0.0], [0, 1, 2]),
        ([0.0, 0.3], [1, 2]),
    ],
)
def test_lengths_of_messages_add_up_by_the_gain_of_their_relations(
    lengths: list[float], expected: list[int]
) -> None:
    assert _reached([1, 2], lengths) == expected


def test_a_messages_length_counts_by_the_gain_of_its_targets_update() -> None:
    # the messages to 1 and 2 are at most 0.1 * 5 and 0.1 * 7 long
    assert _reached([0], [0.1], update_gain=(1, 1, 1, 1)) == [0]
    assert _reached([0], [0.1], update_gain=(1, 2.1, 1, 1)) == [0, 1]
    assert _reached([0], [0.1], update_gain=(1, 1, 1.5, 1)) == [0, 2]
    assert _reached([0], [1.0], update_gain=(1, 0.1, 0.2, 1)) == [0, 2]


def test_a_change_that_is_just_negligible_reaches_nothing() -> None:
    assert _reached([1], [0.5]) == [1]  # 2 * 0.5 is the 1.0 that is negligible
    assert _reached([1], [0.5001]) == [0, 1]


def test_a_questions_own_entities_and_changed_entities_are_always_reached() -> None:
    assert _reached([], [], always=(3,)) == [3]
    assert _reached([2], [0.0], always=(1,)) == [1, 2]


def test_a_length_that_is_not_a_number_reaches_its_targets() -> None:
    assert _reached([0], [float("nan")]) == [0, 1, 2]


def _worth(
    background: list[float],
    possible: list[float],
    tolerance: float,
    always: tuple[int, ...] = (),
) -> list[int]:
    reached = np.arange(1, 1 + len(possible))
    given = (
        np.array(always, dtype=np.int64),
        np.array(background, dtype=np.float32),
        np.array(possible),
    )
    return worth_scoring(reached, *given, tolerance).tolist()


def test_a_score_matters_if_its_probability_can_move_by_more_than_the_tolerance() -> (
    None
):
    # 60 others are far ahead; of the four that are reached the probabilities are 0.5, 0.5, 0.0025 and 0.9975
    background = [9.0, 0.0, 0.0, -6.0, 6.0, *[9.0] * 60]
    assert _worth(background, [0.05, 0.03, 0.05, 0.05], 0.01) == [1]
    # from -6 to -4.3 it is 0.011 more, to -4.4 0.0097; 6 may fall by as much
    assert _worth(background, [0.0, 0.0, 1.7, 1.7], 0.01) == [3, 4]
    assert _worth(background, [0.0, 0.0, 1.6, 1.6], 0.01) == []
    assert _worth(background, [0.0, 1e-3, 0.0, 0.0], 0.0) == [2]


def test_a_score_matters_if_it_can_get_among_the_fifty_best() -> None:
    background = [-9.0, -8.5, -8.5, -9.0, *[-8.0] * 49, -8.1]  # the fiftieth has -8.1
    assert _worth(background, [0.35, 0.45, 0.8], 0.01) == [2]
    # among fifty all are
    assert _worth(background[:50], [0.0, 0.0, 0.0], 0.01) == [
        1,
        2,
        3,
    ]


def test_a_score_that_can_tie_with_the_fiftieth_matters() -> None:
    background = [-9.0, -8.5, -8.5, *[-8.0] * 51]
    assert _worth(background, [0.5, 0.499], 0.01) == [1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 120) | st.just(2000))
def test_the_fiftieth_of_any_order_is_the_mark(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    # no probability moves by much
    background = rng.normal(-12, 1, count).astype(np.float32)
    possible = rng.uniform(0, 0.5, count)
    found = worth_scoring(
        np.arange(count), np.empty(0, dtype=np.int64), background, possible, 0.5
    )
    fiftieth = (
        sorted(background.tolist(), reverse=True)[:50][-1] if count > 50 else -np.inf
    )
    assert found.tolist() == [
        entity
        for entity in range(count)
        if background[entity] + possible[entity] >= fiftieth
    ]


def test_a_questions_own_entities_and_what_is_not_a_number_are_always_scored() -> None:
    background = [9.0, -9.0, -9.0, -9.0, *[9.0] * 60]
    assert _worth(background, [0.0, 0.0, 0.0], 0.01, always=(2,)) == [2]
    assert _worth(background, [0.0, 0.0, float("nan")], 0.01) == [3]


def test_the_bounds_of_a_layer_are_its_largest_factors(small: dict[str, Any]) -> None:
    weights = {
        name: torch.from_numpy(array) for name, array in small["weights"].items()
    }
    layers = list(layer_weights(weights, torch.float32))
    cache = build_cache(
        weights,
        small["graph"],
        ScoreHead.of(weights, "entity_model.mlp", 8),
        10**9,
        False,
    )
    bounds = layer_bounds(cache, layers)
    for number, bound in enumerate(bounds):
        states = cache.relation_states[number].values.numpy()
        np.testing.assert_allclose(bound.message_gain, np.abs(states).max(1))
        matrix = small["weights"][f"entity_model.layers.{number}.linear.weight"].astype(
            np.float64
        )
        norm = small["weights"][f"entity_model.layers.{number}.layer_norm.weight"]
        of_state, of_total = (
            np.linalg.svd(half, compute_uv=False)[0] * np.abs(norm).max()
            for half in (matrix[:, :8], matrix[:, 8:])
        )
        deviation = np.sqrt(
            cache.pre_norm[number].values.numpy().astype(np.float64).var(1) + 1e-5
        )
        np.testing.assert_allclose(bound.update_gain, of_total / deviation, rtol=1e-4)
        np.testing.assert_allclose(
            bound.state_gain, 1 + of_state / deviation, rtol=1e-4
        )
    # all entities are alike at the first layer
    assert [len(bound.update_gain) for bound in bounds] == [
        1,
        40,
        40,
    ]


def _bounds(relation_states: Any, pre_norm: Any) -> list[LayerBound]:
    """The bounds of a network of two layers, of which the first is cached; its maps lengthen by 3 and by 2 at most."""
    layer = LayerWeights(
        torch.eye(2) * 2,
        torch.eye(2) * 3,
        torch.zeros(2),
        torch.ones(2),
        torch.zeros(2),
    )
    states, outputs = (
        tuple(cache_rows(torch.tensor(rows).reshape(-1, 2), False) for rows in table)
        for table in (relation_states, pre_norm)
    )
    deviation = tuple(deviation_of(rows.values) for rows in outputs)
    return layer_bounds(
        GraphCache(states, outputs, deviation, None, None), [layer, layer]
    )


def test_where_the_background_hardly_varies_the_epsilon_of_the_norm_bounds_the_gain() -> (
    None
):
    (bound,) = _bounds(
        [[[1.0, -3.0], [0.5, 2.0]], [[9.0, 9.0]]], [[[0.001, -0.001], [1.0, -1.0]]]
    )
    np.testing.assert_allclose(bound.message_gain, [3, 2])
    # variances of 0.000001 and 1, and 0.00001 added to each
    deviation = np.array([0.0033166, 1.000005])
    np.testing.assert_allclose(bound.update_gain, 3 / deviation, rtol=1e-4)
    np.testing.assert_allclose(bound.state_gain, 1 + 2 / deviation, rtol=1e-4)


def test_a_graph_without_relations_and_entities_has_no_bounds() -> None:
    (bound,) = _bounds([[]], [[]])
    assert [
        len(gain) for gain in (bound.message_gain, bound.update_gain, bound.state_gain)
    ] == [0, 0, 0]


def test_a_small_change_of_the_messages_changes_no_state_by_more_than_the_bound(
    small: dict[str, Any],
) -> None:
    weights = {
        name: torch.from_numpy(array).double()
        for name, array in small["weights"].items()
    }
    single = {name: tensor.float() for name, tensor in weights.items()}
    layer = list(layer_weights(weights, torch.float64))[1]
    cache = build_cache(
        single,
        small["graph"],
        ScoreHead.of(single, "entity_model.mlp", 8),
        10**9,
        False,
    )
    bound = layer_bounds(cache, list(layer_weights(single, torch.float32)))[1]
    background = cache.pre_norm[1].values.double()
    change = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 1, 8))) * 1e-6

    def state(mixed: Any) -> Any:
        norm = torch.nn.functional.layer_norm(
            mixed, (8,), layer.norm_weight, layer.norm_bias
        )
        return norm.relu()

    gains = (
        (layer.total_weight, 0, bound.update_gain),
        (layer.state_weight, 1, bound.state_gain),
    )
    for weight, kept, gain in gains:
        moved = (
            state(background + change @ weight) - state(background) + kept * change
        ).norm(dim=2)  # (500, 40)
        ratio = (moved / change.norm(dim=2)).amax(0) / torch.from_numpy(gain)
        assert float(ratio.max()) <= 1.001
        assert float(ratio.max()) > 0.3  # the bound is of the right size


def test_the_largest_singular_value_is_that_of_the_whole_decomposition() -> None:
    matrices = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 7, 4)))
    expected = np.linalg.svd(matrices.numpy(), compute_uv=False)[:, 0]
    np.testing.assert_allclose(spectral_norms(matrices).numpy(), expected, rtol=1e-9)
