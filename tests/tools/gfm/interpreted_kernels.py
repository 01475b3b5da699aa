"""The Triton kernels in Triton's interpreter; test_triton_kernels.py runs this file in a process of its own.

TRITON_INTERPRET=1 has to be set before Triton is imported.
"""

import os

import numpy as np
import pytest

assert os.environ.get("TRITON_INTERPRET") == "1"
torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from ras_agent.tools.gfm import cuda, triton_kernels  # noqa: E402
from ras_agent.tools.gfm.cached_rows import cache_rows  # noqa: E402
from ras_agent.tools.gfm.cpu_kernels import propagate  # noqa: E402
from ras_agent.tools.gfm.cuda import DeviceGFM, try_kernels  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart  # noqa: E402
from ras_agent.tools.gfm.products import ProductPrecision  # noqa: E402
from ras_agent.tools.gfm.segments import TargetBlock, plan_segments  # noqa: E402
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights  # noqa: E402

CPU = torch.device("cpu")


@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 40),
    hubs=st.booleans(),
    longest=st.integers(2, 20),
    width=st.sampled_from([1, 8, 12]),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_the_kernels_give_the_sums_of_the_cpus_loop(
    seed: int, facts: int, hubs: bool, longest: int, width: int, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 15, (2, facts)) * (rng.integers(0, 2, (2, facts)) if hubs else 1)
    graph = GFMGraph.from_edges(
        15, np.column_stack((ends[0], rng.integers(0, 3, facts), ends[1])), *np.zeros((2, 3, 1), np.float32)
    )
    states = torch.from_numpy(rng.normal(size=(15, 2, width)).astype(np.float32)).to(dtype)
    relation_states = torch.from_numpy(rng.normal(size=(6, width)).astype(np.float32)).to(dtype)
    source, relation = (torch.from_numpy(array).int() for array in (graph.source, graph.relation))
    everyone = np.arange(15)
    for low, high in ((0, 7), (7, 15)):
        block = TargetBlock.of(plan_segments(graph.indptr, low, high, longest), CPU)
        total = torch.full((block.rows, 2, width), torch.nan)
        triton_kernels.propagate_block(block, states, relation_states, source, relation, total)
        for question in range(2):
            expected = torch.empty(high - low, width)
            propagate(
                graph,
                everyone[low:high],
                everyone,
                states[:, question].float().contiguous(),
                cache_rows(relation_states.float(), half=False),
                expected,
            )
            torch.testing.assert_close(total[: high - low, question], expected, atol=1e-5, rtol=1e-5)


def test_a_wide_row_is_divided_among_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_kernels, "WIDEST", 8)
    graph = GFMGraph.from_edges(3, np.array([[0, 0, 1], [0, 0, 2], [0, 0, 1]]), *np.zeros((2, 1, 1), np.float32))
    states, relation_states = torch.arange(60.0).reshape(3, 1, 20), torch.full((2, 20), 0.5)
    block = TargetBlock.of(plan_segments(graph.indptr, 0, 3, 2), CPU)
    total = torch.full((block.rows, 1, 20), torch.nan)
    arrays = (torch.from_numpy(array).int() for array in (graph.source, graph.relation))
    triton_kernels.propagate_block(block, states, relation_states, *arrays, total)
    # entity 0 gets two messages from entity 1, for a fact that occurs twice, and one from entity 2
    assert torch.equal(total[0, 0], states[1, 0] + 0.5 * states[2, 0])
    assert torch.equal(total[1, 0], states[0, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_kernels_work(dtype: torch.dtype) -> None:
    assert try_kernels(CPU, dtype)


# the interpreter cuts bfloat16 off where a processor rounds
@pytest.mark.parametrize(("products", "off"), [("float32", 1e-5), ("split", 1e-4)])
def test_a_network_with_the_kernels_gives_the_scores_it_gives_without(
    products: ProductPrecision, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    weights = initial_weights(GFMConfig(text_width=6, width=12, layers=3), 1)
    ends = rng.integers(0, 20, (40, 3))
    ends[:15, 0] = 4
    graph = GFMGraph.from_edges(20, ends % [20, 3, 20], *rng.normal(size=(2, 3, 6)).astype(np.float32))
    starts = [GFMStart(np.array([4, 1]), np.ones(2)), GFMStart(np.array([9]), np.ones(1))]
    asked = rng.normal(size=(2, 6)).astype(np.float32), starts
    without = DeviceGFM(weights, graph, "cpu", rows=8, products=products).scores(*asked)
    monkeypatch.setattr(cuda, "LONGEST_FOR_TRITON", 4)
    monkeypatch.setattr(cuda, "kernels_work", lambda on, dtype: True)
    network = DeviceGFM(weights, graph, "cpu", rows=8, products=products)
    assert network.uses_triton
    np.testing.assert_allclose(network.scores(*asked), without, atol=off)
