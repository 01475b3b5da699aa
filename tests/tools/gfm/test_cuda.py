"""The network on a device of torch, here the CPU, gives the plain network's scores."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cuda import ROWS_PER_BLOCK, DeviceGFM, bytes_needed
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.paths import best_paths
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights


@pytest.fixture(scope="module")
def case() -> dict[str, Any]:
    """2,000 entities, one of which is the target of 500 messages."""
    rng = np.random.default_rng(1)
    facts = rng.integers(0, 2000, (4000, 3))
    facts[:500, 0] = 7
    facts[:, 1] %= 50
    weights = initial_weights(GFMConfig(text_width=24, width=16, layers=5), 3)
    return _with_plain(
        {name: tensor * 1.5 for name, tensor in weights.items()},
        GFMGraph.from_edges(
            2000, facts, *rng.normal(size=(2, 50, 24)).astype(np.float32)
        ),
        rng.normal(size=(5, 24)).astype(np.float32),
        [
            GFMStart(np.array([11]), np.array([1.0])),
            GFMStart(np.array([7]), np.array([0.01])),
            GFMStart(np.array([1999, 0, 500]), np.array([0.5, 1.0, 0.25])),
            GFMStart(np.array([], dtype=np.int64), np.array([])),
            GFMStart(np.array([11, 7]), np.array([1.0, 0.1])),
        ],
    )


def _with_plain(
    weights: Any, graph: GFMGraph, questions: Any, starts: list[GFMStart]
) -> dict[str, Any]:
    dense = torch.zeros(len(starts), graph.entities)
    for row, start in enumerate(starts):
        dense[row, start.entities] = torch.from_numpy(start.weights).float()
    plain = plain_scores(
        weights, GraphTensors.of(graph), torch.from_numpy(questions), dense
    ).numpy()
    return {
        "weights": weights,
        "graph": graph,
        "questions": questions,
        "starts": starts,
        "plain": plain,
    }


def _network(case: dict[str, Any], **options: Any) -> DeviceGFM:
    return DeviceGFM(case["weights"], case["graph"], "cpu", **options)


def _probability(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits))


# one block; uneven blocks; a question at a time
@pytest.mark.parametrize(
    "options", [{}, {"rows": 700}, {"rows": 1}, {"batch_bytes": 1, "rows": 333}]
)
def test_scores_equal_the_plain_networks(
    case: dict[str, Any], options: dict[str, int]
) -> None:
    small = case if options.get("rows") != 1 else _tiny()
    found = _network(small, **options).scores(small["questions"], small["starts"])
    assert np.ptp(small["plain"]) > 0.5
    assert np.abs(found - small["plain"]).max() < 1e-5


def _tiny() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    weights = initial_weights(GFMConfig(text_width=4, width=8, layers=2), 0)
    graph = GFMGraph.from_edges(
        9, rng.integers(0, 3, (20, 3)), *rng.normal(size=(2, 3, 4)).astype(np.float32)
    )
    starts = [
        GFMStart(np.array([2, 0]), np.ones(2)),
        GFMStart(np.array([8]), np.ones(1)),
    ]
    weights["entity_model.mlp.2.weight"] *= 9
    return _with_plain(
        weights, graph, rng.normal(size=(2, 4)).astype(np.float32), starts
    )


def test_the_same_question_gets_the_same_scores_every_time(
    case: dict[str, Any],
) -> None:
    network = _network(case)
    first, second = (
        network.scores(case["questions"], case["starts"]) for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_questions_of_several_threads_take_turns(case: dict[str, Any]) -> None:
    network = _network(case)
    with ThreadPoolExecutor(4) as pool:
        rows = [
            (case["questions"][row : row + 1], case["starts"][row : row + 1])
            for row in range(5)
        ]
        found = list(pool.map(lambda one: network.scores(*one)[0], rows))
    assert np.abs(np.array(found) - case["plain"]).max() < 1e-5


@pytest.mark.slow("large examples")
@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 400),
    hubs=st.booleans(),
    rows=st.integers(1, 200),
)
@settings(max_examples=40, deadline=None)
def test_any_graph_gets_the_plain_networks_scores(
    seed: int, facts: int, hubs: bool, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 120, (2, facts)) * (
        rng.integers(0, 2, (2, facts)) if hubs else 1
    )
    edges = np.column_stack((ends[0], rng.integers(0, 7, facts), ends[1]))
    config = GFMConfig(text_width=12, width=16, layers=4)
    graph = GFMGraph.from_edges(
        120, edges, *rng.normal(size=(2, 7, 12)).astype(np.float32)
    )
    starts = [
        GFMStart(rng.permutation(120)[:count], rng.random(count))
        for count in (1, 0, 30)
    ]
    questions = rng.normal(size=(3, 12)).astype(np.float32)
    case = _with_plain(initial_weights(config, seed % 1000), graph, questions, starts)
    assert (
        np.abs(
            _network(case, rows=rows).scores(questions, starts) - case["plain"]
        ).max()
        < 1e-4
    )


@pytest.mark.parametrize("entities", [0, 5])
def test_a_graph_without_messages_or_entities_is_scored_too(
    case: dict[str, Any], entities: int
) -> None:
    vectors = np.zeros((0, 24), dtype=np.float32)
    graph = GFMGraph.from_edges(
        entities, np.zeros((0, 3), dtype=np.int64), vectors, vectors
    )
    nobody = [GFMStart(np.array([], dtype=np.int64), np.array([]))]
    small = _with_plain(case["weights"], graph, case["questions"][:1], nobody)
    np.testing.assert_allclose(
        _network(small).scores(small["questions"], nobody), small["plain"], atol=1e-5
    )
    assert _network(small).scores(small["questions"][:0], []).shape == (0, entities)


# weights that are copied, as they are to another device, and those that are not
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_explained_by_the_same_paths(
    case: dict[str, Any], dtype: torch.dtype
) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in case["weights"].items()}
    network, graph = _network({**case, "weights": weights}), case["graph"]
    start, target = (
        GFMStart(graph.source[:1], np.ones(1, np.float32)),
        int(graph.target[0]),
    )
    given = graph, case["questions"][0], start, [target]
    (paths,) = best_paths(
        network.weights, *given, relation_states=network.relation_states
    )
    assert paths
    (others,) = best_paths(case["weights"], *given)
    assert [path.messages for path in paths] == [path.messages for path in others]


def test_the_memory_it_needs_is_estimated_before(case: dict[str, Any]) -> None:
    weights, graph = case["weights"], case["graph"]
    blocks = 4 * 8 * ROWS_PER_BLOCK * 16  # of states on their way, which nothing stores
    network = _network(case)
    tensors = [*network.weights.values(), network._source, network._relation]
    tensors += [network._counts, *(rows.values for rows in network.relation_states)]
    lasting = sum(tensor.nbytes for tensor in tensors)
    states = 2 * 4 * 16 * graph.entities
    assert (
        lasting + states
        < bytes_needed(weights, graph) - blocks
        < 2 * (lasting + states)
    )


def test_an_entity_of_many_messages_gets_their_exact_sum_to_rounding(
    case: dict[str, Any],
) -> None:
    rng = np.random.default_rng(5)
    ends = rng.integers(0, 40, (2, 3300))
    ends[0, 300:] = 3
    edges = np.column_stack((ends[0], rng.integers(0, 4, 3300), ends[1]))
    graph = GFMGraph.from_edges(
        40, edges, *rng.normal(size=(2, 4, 24)).astype(np.float32)
    )
    starts = [
        GFMStart(np.arange(40), rng.random(40)),
        GFMStart(np.array([3]), np.ones(1)),
    ]
    hub = _with_plain(case["weights"], graph, case["questions"][:2], starts)
    precise = {name: tensor.double() for name, tensor in case["weights"].items()}
    dense = torch.zeros(2, 40, dtype=torch.float64)
    for row, start in enumerate(starts):
        dense[row, start.entities] = torch.from_numpy(start.weights).double()
    tensors = GraphTensors.of(graph)
    tensors = replace(tensors, vectors=tensors.vectors.double())
    exact = plain_scores(
        precise, tensors, torch.from_numpy(hub["questions"]).double(), dense
    ).numpy()
    found = _network(hub, rows=7).scores(hub["questions"], starts)
    assert np.abs(found - exact).max() < 1e-4
