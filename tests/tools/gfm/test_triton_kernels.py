"""What entities hear on a device, by torch's own operations and by the Triton kernels."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm import triton_works  # noqa: E402
from ras_agent.tools.gfm.cached_rows import keep  # noqa: E402
from ras_agent.tools.gfm.cpu_kernels import hear  # noqa: E402
from ras_agent.tools.gfm.device_hear import Hearing  # noqa: E402
from ras_agent.tools.gfm.graph import GFMGraph  # noqa: E402

CPU = torch.device("cpu")


@given(
    seed=st.integers(0, 2**32 - 1),
    facts=st.integers(0, 300),
    hub=st.sampled_from([0, 40, 3000]),
    rows=st.integers(1, 50),
    batch=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_torchs_operations_add_up_what_the_cpus_kernel_adds_up(
    seed: int, facts: int, hub: int, rows: int, batch: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 40, (2, facts + hub))
    ends[0, facts:] = 3  # hears more than two levels of pieces, most facts several times
    edges = np.column_stack((ends[0], rng.integers(0, 4, facts + hub), ends[1]))
    graph = GFMGraph.from_edges(40, edges, *np.zeros((2, 4, 1), np.float32))
    states = torch.from_numpy(rng.normal(size=(40, batch, 8)).astype(np.float32))
    kinds = torch.from_numpy(rng.normal(size=(8, 8)).astype(np.float32))
    hearing, everyone = Hearing(graph, CPU, rows, compiled=False), np.arange(40)
    found = torch.cat([hearing.hear(block, states, kinds) for block in hearing.blocks])
    for question in range(batch):
        expected = torch.empty(40, 8)
        hear(graph, everyone, everyone, states[:, question].contiguous(), keep(kinds, half=False), expected)
        exact = np.zeros((40, 8))
        said = states[:, question].double().numpy()[graph.source] * kinds.double().numpy()[graph.relation]
        np.add.at(exact, graph.hearer, said)
        # in pieces less is rounded off than by adding up one after another
        assert np.abs(found[:, question].numpy() - exact).max() < 1e-3
        assert np.abs(found[:, question].numpy() - expected.numpy()).max() < 1e-2


def test_the_triton_kernels_pass_their_tests_in_tritons_interpreter() -> None:
    # older interpreters do not get along with numpy 2
    pytest.importorskip("triton", minversion="3.9", reason="Triton is for Linux; torch may want an older")
    tests = Path(__file__).with_name("interpreted_kernels.py")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout


def test_where_a_kernel_cannot_be_launched_a_warning_says_why_and_what_may_help() -> None:
    pytest.importorskip("triton")
    triton_works.first_launch.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"GFM on cpu: the Triton kernels are not used.*C compiler"):
        assert not triton_works.first_launch(CPU, torch.float32)
    assert not triton_works.first_launch(CPU, torch.float32)  # and warns once


def test_the_kernels_are_not_tried_where_there_is_no_cuda_device() -> None:
    assert not triton_works.kernels_work(CPU, torch.float32)


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("batch", ["i32", 1])  # a launch makes a constant of 1
def test_the_kernels_compile_for_hopper_and_read_sixteen_bytes_at_a_time(
    kind: str, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from ras_agent.tools.gfm.triton_kernels import _said, _summed
    from ras_agent.tools.gfm.triton_respond import _responded
    from ras_agent.tools.gfm.triton_split import _parted

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    states, numbers, floats = f"*{kind}", "*i32", "*fp32"
    sums = [numbers, numbers, numbers, floats, batch, "i32", 1, 4, 512]
    for kernel, types, size in (
        (_said, [states, states, numbers, numbers, *sums], 4 if kind == "fp32" else 2),
        (_summed, sums, 4),
        (_responded, [*[floats] * 4, states, states, "i32", "fp32", 512], 4),
        (_parted, [states, "*bf16", "i32", "i32", 512], 2),
    ):
        signature = {
            name: one if isinstance(one, str) else "constexpr"
            for name, one in zip(kernel.arg_names, types, strict=True)
        }
        constants = {kernel.arg_names[place]: one for place, one in enumerate(types) if isinstance(one, int)}
        # as at a launch with a width of 512: it and all addresses are multiples of 16
        aligned = [
            (place,)
            for place, (name, one) in enumerate(signature.items())
            if one[0] == "*" or name in ("width", "stride")
        ]
        source = ASTSource(kernel, signature, constants, {place: [["tt.divisibility", 16]] for place in aligned})
        compiled = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": size})
        assert len(compiled.asm["cubin"]) > 0
        assert "ld.global.v4.b32" in compiled.asm["ptx"]
        assert "atom." not in compiled.asm["ptx"]
