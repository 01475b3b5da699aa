"""The fast network gives the plain network's scores."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm import cpu, cpu_kernels
from ras_agent.tools.gfm.cache import GraphCache
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights

LIMITS = {False: 1e-4, True: 2e-4}
"""How far a logit may be off, in float32 and with the half cache: a quarter of that in probability"""


def _bytes(cache: GraphCache) -> int:
    rows = [*cache.relation_states, *cache.pre_norm]
    if cache.score_hidden is not None:
        rows.append(cache.score_hidden)
    size = sum(one.values.nbytes + one.scales.nbytes for one in rows)
    if cache.uncached_from is not None:
        size += cache.uncached_from.untyped_storage().nbytes()
    return size


def _steps(fast: FastGFM, question: Any, start: GFMStart) -> list[SimpleNamespace]:
    """Return, for each layer, the entities that may change, those that change, and their changes."""
    steps = []
    following = FastGFM._next_changes

    def record(self: FastGFM, number: int, reached: Any, *others: Any) -> Any:
        changed, changes = following(self, number, reached, *others)
        steps.append(
            SimpleNamespace(
                sources=others[0], reached=reached, changed=changed, changes=changes
            )
        )
        return changed, changes

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FastGFM, "_next_changes", record)
        fast.scores(question[None], [start])
    return steps


def _case(width: int = 16, layers: int = 5, entities: int = 3000) -> dict[str, Any]:
    """A sparse graph with a few hubs: at the first layers a question reaches little of it, at the last most."""
    rng = np.random.default_rng(1)
    facts = np.column_stack(
        (
            rng.integers(0, entities, 2 * entities),
            rng.integers(0, 50, 2 * entities),
            rng.integers(0, entities, 2 * entities),
        )
    )
    facts[:200, 0] = 7
    vectors, inverse = rng.normal(size=(2, 50, 24)).astype(np.float32)
    weights = initial_weights(GFMConfig(text_width=24, width=width, layers=layers), 3)
    return {
        "weights": {name: tensor * 1.5 for name, tensor in weights.items()},
        "graph": GFMGraph.from_edges(entities, facts, vectors, inverse),
        "questions": rng.normal(size=(4, 24)).astype(np.float32),
        "starts": [
            GFMStart(np.array([11]), np.array([1.0])),
            GFMStart(np.array([7]), np.array([0.01])),
            GFMStart(np.array([2999, 0, 500]), np.array([0.5, 1.0, 0.25])),
            GFMStart(np.array([], dtype=np.int64), np.array([])),
        ],
    }


def _plain(case: dict[str, Any]) -> Any:
    dense = torch.zeros(len(case["starts"]), case["graph"].entities)
    for row, start in enumerate(case["starts"]):
        dense[row, start.entities] = torch.from_numpy(start.weights).float()
    questions = torch.from_numpy(case["questions"])
    return plain_scores(
        case["weights"], GraphTensors.of(case["graph"]), questions, dense
    ).numpy()


def _fast(case: dict[str, Any], tolerance: float = 1e-6, **options: Any) -> Any:
    network = FastGFM(case["weights"], case["graph"], tolerance=tolerance, **options)
    return network.scores(case["questions"], case["starts"])


# cached: nothing but relation states; the first layers; all layers, but not the score's part; everything
@pytest.mark.parametrize("cache_bytes", [0, 450_000, 1_300_000, 10**9])
@pytest.mark.parametrize("half", [False, True])
def test_scores_equal_the_plain_networks(cache_bytes: int, half: bool) -> None:
    case = _case()
    expected = _plain(case)
    assert np.ptp(expected) > 0.5
    assert (
        np.abs(_fast(case, cache_bytes=cache_bytes, half_cache=half) - expected).max()
        < LIMITS[half]
    )


def test_a_batch_gives_what_its_questions_give_alone() -> None:
    case = _case()
    fast = FastGFM(case["weights"], case["graph"])
    together = fast.scores(case["questions"], case["starts"])
    for row in range(4):
        alone = fast.scores(
            case["questions"][row : row + 1], case["starts"][row : row + 1]
        )
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


@pytest.mark.parametrize("half", [False, True])
def test_without_numba_the_scores_are_the_same(
    monkeypatch: pytest.MonkeyPatch, half: bool
) -> None:
    case = _case()
    monkeypatch.setattr(cpu_kernels, "has_numba", lambda: False)
    assert np.abs(_fast(case, half_cache=half) - _plain(case)).max() < LIMITS[half]


def test_rows_are_divided_among_as_many_threads_as_torch_has() -> None:
    case, before = _case(), torch.get_num_threads()
    alone = _fast(case)
    torch.set_num_threads(3)
    try:
        parts: list[tuple[int, int]] = []
        cpu_kernels.run_in_threads(1000, lambda low, high: parts.append((low, high)))
        assert sorted(parts) == [(0, 333), (333, 666), (666, 1000)]
        np.testing.assert_allclose(_fast(case), alone, atol=1e-5)
    finally:
        torch.set_num_threads(before)


@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 400),
    half=st.booleans(),
    hubs=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_any_graph_gets_the_plain_networks_scores(
    seed: int, facts: int, half: bool, hubs: bool
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 120, (2, facts))
    if hubs:
        ends = ends * rng.integers(0, 2, (2, facts))  # half of the ends are entity 0
    edges = np.column_stack((ends[0], rng.integers(0, 7, facts), ends[1]))
    config = GFMConfig(text_width=12, width=16, layers=4)
    vectors = rng.normal(size=(2, 7, 12)).astype(np.float32)
    case = {
        "weights": initial_weights(config, seed % 1000),
        "graph": GFMGraph.from_edges(120, edges, *vectors),
        "questions": rng.normal(size=(3, 12)).astype(np.float32),
        "starts": [
            GFMStart(rng.permutation(120)[:count], rng.random(count))
            for count in (1, 3, 30)
        ],
    }
    # at random, from nothing but relation states to everything
    cache_bytes = int(rng.integers(0, 150_000))
    assert (
        np.abs(
            _fast(case, half_cache=half, cache_bytes=cache_bytes) - _plain(case)
        ).max()
        < LIMITS[half]
    )


@pytest.mark.parametrize("options", [{"half_cache": True}, {"half_products": True}])
def test_half_precision_stays_within_a_hundredth_of_the_scores_range(
    options: dict[str, bool],
) -> None:
    case = _case()
    expected = _plain(case)
    assert np.abs(_fast(case, **options) - expected).max() < 0.01 * np.ptp(expected)


def test_a_half_precision_cache_takes_half_the_memory_and_a_scale_a_row() -> None:
    case = _case()
    whole, half = (
        _bytes(FastGFM(case["weights"], case["graph"], half_cache=flag).cache)
        for flag in (False, True)
    )
    assert half / whole == pytest.approx((2 * 16 + 4) / (4 * 16 + 4), rel=0.01)


def test_the_cache_stays_within_its_bytes() -> None:
    case = _case()
    relation_states = 5 * 100 * (16 * 4 + 4)
    for cache_bytes in (relation_states + 1, 450_000, 900_000):
        cache = FastGFM(
            case["weights"], case["graph"], cache_bytes=cache_bytes, half_cache=False
        ).cache
        # rows that all entities share are not counted
        assert relation_states <= _bytes(cache) <= cache_bytes + 200
        assert cache.score_hidden is None


def test_where_float32_does_not_fit_the_cache_is_in_half_precision() -> None:
    case = _case()
    whole = FastGFM(case["weights"], case["graph"]).cache
    assert whole.pre_norm[1].values.dtype == torch.float32
    smaller = FastGFM(
        case["weights"], case["graph"], cache_bytes=_bytes(whole) - 10_000
    ).cache
    assert smaller.pre_norm[1].values.dtype == torch.int16


def test_a_graph_without_messages_is_scored_too() -> None:
    case = _case()
    vectors = np.zeros((0, 24), dtype=np.float32)
    case["graph"] = GFMGraph.from_edges(
        3000, np.zeros((0, 3), dtype=np.int64), vectors, vectors
    )
    np.testing.assert_allclose(_fast(case), _plain(case), atol=1e-5)


@given(seed=st.integers(0, 2**32 - 1), tolerance=st.sampled_from([1e-6, 1e-5, 1e-4]))
@settings(max_examples=25, deadline=None)
def test_an_entity_that_is_left_out_would_have_changed_by_a_negligible_length(
    seed: int, tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 200, (2, 600))
    ends[0, :150] = rng.integers(0, 3, 150)  # hubs
    config = GFMConfig(text_width=12, width=16, layers=3)
    graph = GFMGraph.from_edges(
        200,
        np.column_stack((ends[0], rng.integers(0, 7, 600), ends[1])),
        *rng.normal(size=(2, 7, 12)).astype("f4"),
    )
    weights, question = (
        initial_weights(config, seed % 1000),
        rng.normal(size=12).astype(np.float32),
    )
    start = GFMStart(np.array([5]), np.array([0.01]))
    whole = _steps(FastGFM(weights, graph, tolerance=0), question, start)[0]
    fast = FastGFM(weights, graph, tolerance=tolerance)
    some = _steps(fast, question, start)[0]
    lengths = dict(
        zip(whole.changed, np.linalg.norm(whole.changes, axis=1), strict=True)
    )
    for entity in set(whole.changed) - set(some.changed):
        assert lengths[entity] <= 1.01 * fast.negligible
    assert set(some.changed) <= set(some.reached) <= set(whole.reached)


def test_a_hub_with_thousands_of_messages_hardly_changes_by_one() -> None:
    """Entity 0 exchanges messages with 5,000 others; the question's entity with only one of these."""
    facts = np.column_stack(
        (
            np.zeros(5000, dtype=np.int64),
            np.zeros(5000, dtype=np.int64),
            np.arange(1, 5001),
        )
    )
    facts = np.vstack((facts, [5001, 0, 1]))
    vectors = np.random.default_rng(0).normal(size=(2, 1, 24)).astype(np.float32)
    case = _case() | {"graph": GFMGraph.from_edges(5002, facts, *vectors)}
    case["weights"] = initial_weights(GFMConfig(text_width=24, width=16, layers=5), 3)
    case["starts"] = [GFMStart(np.array([5001]), np.array([1.0]))] * 4
    fast = FastGFM(case["weights"], case["graph"], tolerance=1e-3)
    steps = list(_steps(fast, case["questions"][0], case["starts"][0]))
    assert [list(step.changed) for step in steps] == 5 * [[1, 5001]]
    everyone = _steps(
        FastGFM(case["weights"], case["graph"], tolerance=0),
        case["questions"][0],
        case["starts"][0],
    )
    assert [len(step.reached) for step in everyone] == [2, 3, 5002, 5002, 5002]
    assert (
        np.abs(fast.scores(case["questions"], case["starts"]) - _plain(case)).max()
        < 1e-3
    )


def test_nothing_is_left_out_when_nothing_is_negligible() -> None:
    case = _case()
    fast = FastGFM(case["weights"], case["graph"], tolerance=0)
    steps = list(_steps(fast, case["questions"][0], case["starts"][0]))
    targets = case["graph"].target[np.isin(case["graph"].source, [11])]
    assert list(steps[0].reached) == sorted({11, *targets})
    assert len(steps[-1].reached) > 2000


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("cache_bytes", [0, 450_000, 10**9])
def test_scores_are_the_same_in_several_blocks_of_rows(
    monkeypatch: pytest.MonkeyPatch, cache_bytes: int, half: bool
) -> None:
    # 1,000 rows of width 16: three blocks of 3,000 entities
    monkeypatch.setattr(cpu, "NUMBERS_AT_ONCE", 16 * 1000)
    case = _case()
    # 2,999 and 500 start in different blocks, and out of order
    assert case["starts"][2].entities.tolist() == [2999, 0, 500]
    expected = _plain(case)
    assert (
        np.abs(_fast(case, cache_bytes=cache_bytes, half_cache=half) - expected).max()
        < LIMITS[half]
    )
    fast = FastGFM(
        case["weights"], case["graph"], cache_bytes=10**9, half_cache=half, tolerance=0
    )
    assert (
        max(
            len(step.reached)
            for step in _steps(fast, case["questions"][0], case["starts"][0])
        )
        > 2000
    )


@pytest.mark.parametrize("tolerance", [1e-3, 1e-2])
def test_probabilities_stay_within_the_tolerance_and_the_best_keep_their_order(
    tolerance: float,
) -> None:
    case = _case()
    case["weights"]["entity_model.mlp.2.weight"] = (
        case["weights"]["entity_model.mlp.2.weight"] * 12
    )
    case["weights"]["entity_model.mlp.2.bias"] = (
        case["weights"]["entity_model.mlp.2.bias"] - 4
    )
    expected = _plain(case)
    fast = FastGFM(case["weights"], case["graph"], tolerance=tolerance)
    found = fast.scores(case["questions"], case["starts"])
    assert np.ptp(expected) > 5
    assert (
        np.abs(1 / (1 + np.exp(-found)) - 1 / (1 + np.exp(-expected))).max() < tolerance
    )
    reached = [
        list(_steps(fast, *asked))[-1].reached
        for asked in zip(case["questions"], case["starts"], strict=True)
    ]
    exact = FastGFM(case["weights"], case["graph"], tolerance=0)
    everyone = [
        list(_steps(exact, *asked))[-1].reached
        for asked in zip(case["questions"], case["starts"], strict=True)
    ]
    assert sum(map(len, reached)) < 0.8 * sum(map(len, everyone))
    for row, ours in zip(expected, found, strict=True):
        assert row[np.argsort(-ours)[:20]] == pytest.approx(
            np.sort(row)[::-1][:20], abs=8 * tolerance
        )


def test_a_questions_own_entity_is_reached_at_every_layer_even_if_it_hardly_changes() -> (
    None
):
    """Its initial state enters every sum of messages, so a layer that adds little may be followed by one that adds."""
    case = _case()
    fast = FastGFM(case["weights"], case["graph"])
    steps = list(
        _steps(fast, case["questions"][0], GFMStart(np.array([11]), np.array([1e-9])))
    )
    assert [step.reached.tolist() for step in steps] == 5 * [[11]]
    assert [step.changed.tolist() for step in steps] == 5 * [[]]


def test_what_is_not_a_number_is_not_taken_for_negligible() -> None:
    case = _case()
    question, start = (
        np.full((1, 24), np.nan, dtype=np.float32),
        GFMStart(np.array([11]), np.array([1.0])),
    )
    fast = FastGFM(case["weights"], case["graph"])
    steps = list(_steps(fast, question[0], start))
    targets = set(case["graph"].target[case["graph"].source == 11].tolist())
    assert steps[0].changed.tolist() == sorted({11, *targets})
    assert len(steps[-1].changed) > 2000
    reached = steps[-1].reached
    assert np.isnan(fast.scores(question, [start])[0, reached]).all()


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_questions_of_a_small_graph_are_computed_on_one_thread_and_others_on_those_that_torch_has(
    monkeypatch: pytest.MonkeyPatch, two_threads: None
) -> None:
    numbers, propagate = set[int](), cpu.propagate

    def noted(*arguments: Any) -> None:
        numbers.add(torch.get_num_threads())
        propagate(*arguments)

    monkeypatch.setattr(cpu, "propagate", noted)
    case = _case()
    small = _fast(case)
    assert numbers == {1}
    monkeypatch.setattr(cpu, "SMALL_GRAPH", 0)
    numbers.clear()
    # a product that is divided adds up in another order
    assert np.abs(_fast(case) - small).max() < 1e-4
    assert numbers == {2}
    assert torch.get_num_threads() == 2


def test_a_thread_that_computes_alone_changes_the_number_of_no_other(
    two_threads: None,
) -> None:
    assert cpu_kernels.on_one_thread(torch.get_num_threads) == 1
    with ThreadPoolExecutor(1) as another:
        assert another.submit(torch.get_num_threads).result() == 2
