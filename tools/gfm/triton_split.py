"""Rows as the parts of a split product, in one pass: what bfloat16 keeps, what it keeps of the rest, the first again.

Import this only where Triton is installed; see ras_agent.tools.gfm.triton_launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ras_agent.tools.gfm.triton_launch import beside, tl, triton

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["split"]


@triton.jit  # type: ignore[untyped-decorator]
def _parted(  # type: ignore[no-untyped-def]
    left, parts, width, stride, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = column < width
    given = tl.load(left + row * width + column, mask=inside, other=0.0).to(tl.float32)
    most = given.to(tl.bfloat16)
    rest = (given - most.to(tl.float32)).to(tl.bfloat16)
    at = parts + row * stride + column
    tl.store(at, most, mask=inside)
    tl.store(at + width, rest, mask=inside)
    tl.store(at + 2 * width, most, mask=inside)


def split(left: Tensor, parts: Tensor) -> None:
    """Write the three parts of `left` (rows, d), contiguous, to `parts` (rows, 3d), bfloat16, whose columns are."""
    rows, width = left.shape
    columns = triton.next_power_of_2(width)
    with beside(left):
        if rows:
            warps = max(1, min(16, columns // 256))
            _parted[(rows,)](left, parts, width, parts.stride(0), COLUMNS=columns, num_warps=warps)
