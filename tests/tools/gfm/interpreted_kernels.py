"""The Triton kernels in Triton's interpreter; test_device_hear.py runs this file in a process of its own.

TRITON_INTERPRET=1 has to be set before Triton is imported.
"""

import os

import numpy as np
import pytest

assert os.environ.get("TRITON_INTERPRET") == "1"
torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from ras_agent.tools.gfm import cuda as on_device  # noqa: E402
from ras_agent.tools.gfm import device_hear, triton_works  # noqa: E402
from ras_agent.tools.gfm import triton_kernels as triton_hear  # noqa: E402
from ras_agent.tools.gfm.cached_rows import keep  # noqa: E402
from ras_agent.tools.gfm.config import GFMConfig  # noqa: E402
from ras_agent.tools.gfm.cpu import Start  # noqa: E402
from ras_agent.tools.gfm.cpu_kernels import hear  # noqa: E402
from ras_agent.tools.gfm.cuda import DeviceGFM  # noqa: E402
from ras_agent.tools.gfm.device_hear import Listeners  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph  # noqa: E402
from ras_agent.tools.gfm.network import initial_weights  # noqa: E402
from ras_agent.tools.gfm.products import Products  # noqa: E402
from ras_agent.tools.gfm.segments import plan  # noqa: E402

CPU = torch.device("cpu")


@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 40),
    hubs=st.booleans(),
    longest=st.integers(2, 20),
    width=st.sampled_from([1, 8, 12]),
    kind=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
@settings(max_examples=6, deadline=None, derandomize=True)
def test_the_kernels_add_up_what_the_cpus_kernel_adds_up(
    seed: int, facts: int, hubs: bool, longest: int, width: int, kind: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 15, (2, facts)) * (rng.integers(0, 2, (2, facts)) if hubs else 1)
    graph = GFMGraph.from_edges(
        15, np.column_stack((ends[0], rng.integers(0, 3, facts), ends[1])), *np.zeros((2, 3, 1), np.float32)
    )
    states = torch.from_numpy(rng.normal(size=(15, 2, width)).astype(np.float32)).to(kind)
    kinds = torch.from_numpy(rng.normal(size=(6, width)).astype(np.float32)).to(kind)
    source, relation = (torch.from_numpy(array).int() for array in (graph.source, graph.relation))
    everyone = np.arange(15)
    for low, high in ((0, 7), (7, 15)):
        block = Listeners.of(plan(graph.indptr, low, high, longest), CPU)
        total = torch.full((block.rows, 2, width), torch.nan)
        triton_hear.hear_messages(block, states, kinds, source, relation, total)
        for question in range(2):
            expected = torch.empty(high - low, width)
            hear(
                graph,
                everyone[low:high],
                everyone,
                states[:, question].float().contiguous(),
                keep(kinds.float(), half=False),
                expected,
            )
            torch.testing.assert_close(total[: high - low, question], expected, atol=1e-5, rtol=1e-5)


def test_a_wide_row_is_parted_among_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_hear, "WIDEST", 8)
    graph = GFMGraph.from_edges(3, np.array([[0, 0, 1], [0, 0, 2], [0, 0, 1]]), *np.zeros((2, 1, 1), np.float32))
    states, kinds = torch.arange(60.0).reshape(3, 1, 20), torch.full((2, 20), 0.5)
    block = Listeners.of(plan(graph.indptr, 0, 3, 2), CPU)
    total = torch.full((block.rows, 1, 20), torch.nan)
    arrays = (torch.from_numpy(array).int() for array in (graph.source, graph.relation))
    triton_hear.hear_messages(block, states, kinds, *arrays, total)
    # entity 0 hears entity 1 twice, for a fact that stands twice, and entity 2
    assert torch.equal(total[0, 0], states[1, 0] + 0.5 * states[2, 0])
    assert torch.equal(total[1, 0], states[0, 0])


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_the_kernels_work(kind: torch.dtype) -> None:
    assert triton_works.first_launch(CPU, kind)


# the interpreter cuts bfloat16 off where a processor rounds
@pytest.mark.parametrize(("products", "off"), [("float32", 1e-5), ("split", 1e-4)])
def test_a_network_with_the_kernels_gives_the_scores_it_gives_without(
    products: Products, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    weights = initial_weights(GFMConfig(text_width=6, width=12, layers=3), 1)
    ends = rng.integers(0, 20, (40, 3))
    ends[:15, 0] = 4
    graph = GFMGraph.from_edges(20, ends % [20, 3, 20], *rng.normal(size=(2, 3, 6)).astype(np.float32))
    starts = [Start(np.array([4, 1]), np.ones(2)), Start(np.array([9]), np.ones(1))]
    asked = rng.normal(size=(2, 6)).astype(np.float32), starts
    without = DeviceGFM(weights, graph, "cpu", rows=8, products=products).scores(*asked)
    monkeypatch.setattr(device_hear, "LONGEST_OF_KERNEL", 4)
    monkeypatch.setattr(on_device, "kernels_work", lambda on, kind: True)
    network = DeviceGFM(weights, graph, "cpu", rows=8, products=products)
    assert network.compiled
    np.testing.assert_allclose(network.scores(*asked), without, atol=off)
