"""The fast network gives the plain network's scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm import cpu_kernels as kernel  # noqa: E402
from ras_agent.tools.gfm import read, respond  # noqa: E402
from ras_agent.tools.gfm.config import GFMConfig  # noqa: E402
from ras_agent.tools.gfm.cpu import FastGFM, Start  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph  # noqa: E402
from ras_agent.tools.gfm.network import Messages, initial_weights, plain_scores  # noqa: E402


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
            Start(np.array([11]), np.array([1.0])),
            Start(np.array([7]), np.array([0.01])),
            Start(np.array([2999, 0, 500]), np.array([0.5, 1.0, 0.25])),
            Start(np.array([], dtype=np.int64), np.array([])),
        ],
    }


def _plain(case: dict[str, Any]) -> Any:
    dense = torch.zeros(len(case["starts"]), case["graph"].entities)
    for row, start in enumerate(case["starts"]):
        dense[row, start.entities] = torch.from_numpy(start.weights).float()
    questions = torch.from_numpy(case["questions"])
    return plain_scores(case["weights"], Messages.of(case["graph"]), questions, dense).numpy()


def _fast(case: dict[str, Any], **options: Any) -> Any:
    return FastGFM(case["weights"], case["graph"], **options).scores(case["questions"], case["starts"])


# what is kept: nothing but relation states; the first layers; all layers, but not the score's part; everything
@pytest.mark.parametrize("most", [0, 450_000, 1_300_000, 10**9])
@pytest.mark.parametrize("half", [False, True])
def test_scores_equal_the_plain_networks(most: int, half: bool) -> None:
    case = _case()
    expected = _plain(case)
    assert np.ptp(expected) > 0.5
    assert np.abs(_fast(case, most=most, half_cache=half) - expected).max() < 1e-4


def test_a_batch_gives_what_its_questions_give_alone() -> None:
    case = _case()
    fast = FastGFM(case["weights"], case["graph"])
    together = fast.scores(case["questions"], case["starts"])
    for row in range(4):
        alone = fast.scores(case["questions"][row : row + 1], case["starts"][row : row + 1])
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


@pytest.mark.parametrize("half", [False, True])
def test_without_numba_the_scores_are_the_same(monkeypatch: pytest.MonkeyPatch, half: bool) -> None:
    case = _case()
    for module in (kernel, respond, read):
        monkeypatch.setattr(module, "has_numba", lambda: False)
    assert np.abs(_fast(case, half_cache=half) - _plain(case)).max() < 1e-4


def test_rows_are_parted_among_as_many_threads_as_torch_has() -> None:
    case, before = _case(), torch.get_num_threads()
    alone = _fast(case)
    torch.set_num_threads(3)
    try:
        parts: list[tuple[int, int]] = []
        kernel.in_parts(1000, lambda low, high: parts.append((low, high)))
        assert sorted(parts) == [(0, 333), (333, 666), (666, 1000)]
        np.testing.assert_allclose(_fast(case), alone, atol=1e-5)
    finally:
        torch.set_num_threads(before)


@given(seed=st.integers(0, 2**32 - 1), facts=st.integers(0, 400), half=st.booleans(), hubs=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_graph_gets_the_plain_networks_scores(seed: int, facts: int, half: bool, hubs: bool) -> None:
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
        "starts": [Start(rng.permutation(120)[:count], rng.random(count)) for count in (1, 3, 30)],
    }
    most = int(rng.integers(0, 150_000))  # at random, from nothing but relation states to everything
    assert np.abs(_fast(case, half_cache=half, most=most) - _plain(case)).max() < 1e-4


@pytest.mark.parametrize("options", [{"half_cache": True}, {"half_products": True}])
def test_half_precision_stays_within_a_hundredth_of_the_scores_range(options: dict[str, bool]) -> None:
    case = _case()
    expected = _plain(case)
    assert np.abs(_fast(case, **options) - expected).max() < 0.01 * np.ptp(expected)


def test_a_half_precision_cache_takes_half_the_memory_and_a_scale_a_row() -> None:
    case = _case()
    whole, half = (FastGFM(case["weights"], case["graph"], half_cache=flag).known.bytes for flag in (False, True))
    assert half / whole == pytest.approx((2 * 16 + 4) / (4 * 16 + 4), rel=0.01)


def test_what_is_kept_stays_within_its_bytes() -> None:
    case = _case()
    kinds = 5 * 100 * (16 * 4 + 4)
    for most in (kinds + 1, 450_000, 900_000):
        known = FastGFM(case["weights"], case["graph"], most=most, half_cache=False).known
        assert kinds <= known.bytes <= most + 200  # rows that all entities share are not counted
        assert known.final is None


def test_where_float32_does_not_fit_the_cache_is_in_half_precision() -> None:
    case = _case()
    whole = FastGFM(case["weights"], case["graph"]).known
    assert whole.mixed[1].values.dtype == torch.float32
    assert FastGFM(case["weights"], case["graph"], most=whole.bytes - 10_000).known.mixed[1].values.dtype == torch.int16


def test_a_graph_without_messages_is_scored_too() -> None:
    case = _case()
    vectors = np.zeros((0, 24), dtype=np.float32)
    case["graph"] = GFMGraph.from_edges(3000, np.zeros((0, 3), dtype=np.int64), vectors, vectors)
    np.testing.assert_allclose(_fast(case), _plain(case), atol=1e-5)


@given(seed=st.integers(0, 2**32 - 1), negligible=st.sampled_from([1e-5, 1e-4, 1e-3]))
@settings(max_examples=25, deadline=None)
def test_who_is_left_out_would_have_changed_by_a_negligible_length(seed: int, negligible: float) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 200, (2, 600))
    ends[0, :150] = rng.integers(0, 3, 150)  # hubs
    config = GFMConfig(text_width=12, width=16, layers=3)
    graph = GFMGraph.from_edges(
        200, np.column_stack((ends[0], rng.integers(0, 7, 600), ends[1])), *rng.normal(size=(2, 7, 12)).astype("f4")
    )
    weights, question = initial_weights(config, seed % 1000), rng.normal(size=12).astype(np.float32)
    start = Start(np.array([5]), np.array([0.01]))
    whole = next(FastGFM(weights, graph, negligible=0).steps(question, start))
    some = next(FastGFM(weights, graph, negligible=negligible).steps(question, start))
    lengths = dict(zip(whole.keys, np.linalg.norm(whole.changes, axis=1), strict=True))
    for entity in set(whole.keys) - set(some.keys):
        assert lengths[entity] <= 1.01 * negligible * 4  # the root mean square of 16 numbers times 4 is their length
    assert set(some.keys) <= set(some.reached) <= set(whole.reached)


def test_a_hub_that_hears_thousands_hardly_hears_one_question() -> None:
    """Entity 0 and 5,000 others hear each other; the question's entity knows but one of them."""
    facts = np.column_stack((np.zeros(5000, dtype=np.int64), np.zeros(5000, dtype=np.int64), np.arange(1, 5001)))
    facts = np.vstack((facts, [5001, 0, 1]))
    vectors = np.random.default_rng(0).normal(size=(2, 1, 24)).astype(np.float32)
    case = _case() | {"graph": GFMGraph.from_edges(5002, facts, *vectors)}
    case["weights"] = initial_weights(GFMConfig(text_width=24, width=16, layers=5), 3)
    case["starts"] = [Start(np.array([5001]), np.array([1.0]))] * 4
    fast = FastGFM(case["weights"], case["graph"], negligible=1e-3)
    steps = list(fast.steps(case["questions"][0], case["starts"][0]))
    assert [list(step.keys) for step in steps] == 5 * [[1, 5001]]
    everyone = FastGFM(case["weights"], case["graph"], negligible=0).steps(case["questions"][0], case["starts"][0])
    assert [len(step.reached) for step in everyone] == [2, 3, 5002, 5002, 5002]
    assert np.abs(fast.scores(case["questions"], case["starts"]) - _plain(case)).max() < 1e-3


def test_nothing_is_left_out_when_nothing_is_negligible() -> None:
    case = _case()
    fast = FastGFM(case["weights"], case["graph"], negligible=0)
    steps = list(fast.steps(case["questions"][0], case["starts"][0]))
    hearers = case["graph"].hearer[np.isin(case["graph"].source, [11])]
    assert list(steps[0].reached) == sorted({11, *hearers})
    assert len(steps[-1].reached) > 2000
