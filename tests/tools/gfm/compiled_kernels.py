"""Compiles the Triton kernels for a graphics processor that need not be there; test_triton_kernels.py runs this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("batch", ["i32", 1])  # a launch makes a constant of 1
def test_the_kernels_compile_for_hopper_and_read_sixteen_bytes_at_a_time(
    kind: str, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from ras_agent.tools.gfm.triton_kernels import _split_row, _sum_messages, _sum_rows, _update_row

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    states, numbers, floats = f"*{kind}", "*i32", "*fp32"
    sums = [numbers, numbers, numbers, floats, batch, "i32", 1, 4, 512]
    for kernel, types, size in (
        (_sum_messages, [states, states, numbers, numbers, *sums], 4 if kind == "fp32" else 2),
        (_sum_rows, sums, 4),
        (_update_row, [*[floats] * 4, states, states, "i32", "fp32", 512], 4),
        (_split_row, [states, "*bf16", "i32", "i32", 512], 2),
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
