"""The network on a device of torch, here the CPU, gives the plain network's scores."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.errors import SettingsError  # noqa: E402
from ras_agent.tools.gfm.cached_rows import cache_rows  # noqa: E402
from ras_agent.tools.gfm.cpu_kernels import propagate  # noqa: E402
from ras_agent.tools.gfm.cuda import ROWS_PER_BLOCK, DeviceGFM, DeviceMessages, bytes_needed  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart  # noqa: E402
from ras_agent.tools.gfm.network import GraphTensors, plain_scores  # noqa: E402
from ras_agent.tools.gfm.paths import best_paths  # noqa: E402
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights  # noqa: E402


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
        GFMGraph.from_edges(2000, facts, *rng.normal(size=(2, 50, 24)).astype(np.float32)),
        rng.normal(size=(5, 24)).astype(np.float32),
        [
            GFMStart(np.array([11]), np.array([1.0])),
            GFMStart(np.array([7]), np.array([0.01])),
            GFMStart(np.array([1999, 0, 500]), np.array([0.5, 1.0, 0.25])),
            GFMStart(np.array([], dtype=np.int64), np.array([])),
            GFMStart(np.array([11, 7]), np.array([1.0, 0.1])),
        ],
    )


def _with_plain(weights: Any, graph: GFMGraph, questions: Any, starts: list[GFMStart]) -> dict[str, Any]:
    dense = torch.zeros(len(starts), graph.entities)
    for row, start in enumerate(starts):
        dense[row, start.entities] = torch.from_numpy(start.weights).float()
    plain = plain_scores(weights, GraphTensors.of(graph), torch.from_numpy(questions), dense).numpy()
    return {"weights": weights, "graph": graph, "questions": questions, "starts": starts, "plain": plain}


def _network(case: dict[str, Any], **options: Any) -> DeviceGFM:
    return DeviceGFM(case["weights"], case["graph"], "cpu", **options)


def _probability(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits))


# one block; uneven blocks; a question at a time
@pytest.mark.parametrize("options", [{}, {"rows": 700}, {"rows": 1}, {"batch_bytes": 1, "rows": 333}])
def test_scores_equal_the_plain_networks(case: dict[str, Any], options: dict[str, int]) -> None:
    small = case if options.get("rows") != 1 else _tiny()
    found = _network(small, **options).scores(small["questions"], small["starts"])
    assert np.ptp(small["plain"]) > 0.5
    assert np.abs(found - small["plain"]).max() < 1e-5


def _tiny() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    weights = initial_weights(GFMConfig(text_width=4, width=8, layers=2), 0)
    graph = GFMGraph.from_edges(9, rng.integers(0, 3, (20, 3)), *rng.normal(size=(2, 3, 4)).astype(np.float32))
    starts = [GFMStart(np.array([2, 0]), np.ones(2)), GFMStart(np.array([8]), np.ones(1))]
    weights["entity_model.mlp.2.weight"] *= 9
    return _with_plain(weights, graph, rng.normal(size=(2, 4)).astype(np.float32), starts)


@pytest.mark.parametrize(
    ("states", "products", "off"),
    [
        ("float32", "float32", 1e-6),
        ("float32", "split", 1e-4),
        ("float32", "bfloat16", 1e-2),
        ("float16", "split", 1e-3),
        ("float16", "bfloat16", 1e-2),
        ("bfloat16", "bfloat16", 1e-2),
    ],
)
def test_probabilities_stay_within_the_tolerance_of_each_precision(
    case: dict[str, Any], states: Any, products: Any, off: float
) -> None:
    found = _network(case, states=states, products=products).scores(case["questions"], case["starts"])
    error = np.abs(_probability(found) - _probability(case["plain"])).max()
    assert error < off
    assert products == "float32" or error > 1e-6


def test_relation_states_in_half_precision_take_half_the_memory(case: dict[str, Any]) -> None:
    networks = [_network(case, states=states) for states in ("float32", "float16")]
    whole, half = (sum(one.values.nbytes for one in network.relation_states) for network in networks)
    assert whole == 2 * half == 5 * 100 * 16 * 4


def test_the_same_question_gets_the_same_scores_every_time(case: dict[str, Any]) -> None:
    network = _network(case)
    first, second = (network.scores(case["questions"], case["starts"]) for _ in range(2))
    assert np.array_equal(first, second)


def test_questions_of_several_threads_take_turns(case: dict[str, Any]) -> None:
    network = _network(case)
    with ThreadPoolExecutor(4) as pool:
        rows = [(case["questions"][row : row + 1], case["starts"][row : row + 1]) for row in range(5)]
        found = list(pool.map(lambda one: network.scores(*one)[0], rows))
    assert np.abs(np.array(found) - case["plain"]).max() < 1e-5


@pytest.mark.slow("large examples")
@given(seed=st.integers(0, 2**32 - 1), facts=st.integers(0, 400), hubs=st.booleans(), rows=st.integers(1, 200))
@settings(max_examples=40, deadline=None)
def test_any_graph_gets_the_plain_networks_scores(seed: int, facts: int, hubs: bool, rows: int) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 120, (2, facts)) * (rng.integers(0, 2, (2, facts)) if hubs else 1)
    edges = np.column_stack((ends[0], rng.integers(0, 7, facts), ends[1]))
    config = GFMConfig(text_width=12, width=16, layers=4)
    graph = GFMGraph.from_edges(120, edges, *rng.normal(size=(2, 7, 12)).astype(np.float32))
    starts = [GFMStart(rng.permutation(120)[:count], rng.random(count)) for count in (1, 0, 30)]
    questions = rng.normal(size=(3, 12)).astype(np.float32)
    case = _with_plain(initial_weights(config, seed % 1000), graph, questions, starts)
    assert np.abs(_network(case, rows=rows).scores(questions, starts) - case["plain"]).max() < 1e-4


@pytest.mark.parametrize("entities", [0, 5])
def test_a_graph_without_messages_or_entities_is_scored_too(case: dict[str, Any], entities: int) -> None:
    vectors = np.zeros((0, 24), dtype=np.float32)
    graph = GFMGraph.from_edges(entities, np.zeros((0, 3), dtype=np.int64), vectors, vectors)
    nobody = [GFMStart(np.array([], dtype=np.int64), np.array([]))]
    small = _with_plain(case["weights"], graph, case["questions"][:1], nobody)
    np.testing.assert_allclose(_network(small).scores(small["questions"], nobody), small["plain"], atol=1e-5)
    assert _network(small).scores(small["questions"][:0], []).shape == (0, entities)


# weights that are copied, as they are to another device, and those that are not
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_explained_by_the_same_paths(case: dict[str, Any], dtype: torch.dtype) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in case["weights"].items()}
    network, graph = _network({**case, "weights": weights}), case["graph"]
    start, target = GFMStart(graph.source[:1], np.ones(1, np.float32)), int(graph.target[0])
    given = graph, case["questions"][0], start, [target]
    (paths,) = best_paths(network.weights, *given, relation_states=network.relation_states)
    assert paths
    (others,) = best_paths(case["weights"], *given)
    assert [path.messages for path in paths] == [path.messages for path in others]


def test_an_unknown_precision_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"states 'float8'.*float32, float16, bfloat16"):
        _network(case, states="float8")
    with pytest.raises(SettingsError, match=r"products 'tf32'.*float32, split, bfloat16"):
        _network(case, products="tf32")


def test_the_memory_it_needs_is_estimated_before(case: dict[str, Any]) -> None:
    weights, graph = case["weights"], case["graph"]
    blocks = 4 * 10 * ROWS_PER_BLOCK * 16  # of states on their way, which nothing stores
    lasting, states = _network(case).bytes, 2 * 4 * 16 * graph.entities
    assert lasting + states < bytes_needed(weights, graph) - blocks < 2 * (lasting + states)


@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 300),
    hub=st.sampled_from([0, 40, 3000]),
    rows=st.integers(1, 50),
    batch=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_torchs_operations_give_the_sums_of_the_cpus_loop(
    seed: int, facts: int, hub: int, rows: int, batch: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 40, (2, facts + hub))
    ends[0, facts:] = 3  # more than two levels of segments, most facts several times
    edges = np.column_stack((ends[0], rng.integers(0, 4, facts + hub), ends[1]))
    graph = GFMGraph.from_edges(40, edges, *np.zeros((2, 4, 1), np.float32))
    states = torch.from_numpy(rng.normal(size=(40, batch, 8)).astype(np.float32))
    relation_states = torch.from_numpy(rng.normal(size=(8, 8)).astype(np.float32))
    messages, everyone = DeviceMessages(graph, torch.device("cpu"), rows, use_triton=False), np.arange(40)
    found = torch.cat([messages.propagate(block, states, relation_states) for block in messages.blocks])
    for question in range(batch):
        expected = torch.empty(40, 8)
        propagate(
            graph,
            everyone,
            everyone,
            states[:, question].contiguous(),
            cache_rows(relation_states, half=False),
            expected,
        )
        exact = np.zeros((40, 8))
        sent = states[:, question].double().numpy()[graph.source] * relation_states.double().numpy()[graph.relation]
        np.add.at(exact, graph.target, sent)
        # adding up in segments rounds less off than adding one after another
        assert np.abs(found[:, question].numpy() - exact).max() < 1e-3
        assert np.abs(found[:, question].numpy() - expected.numpy()).max() < 1e-2
