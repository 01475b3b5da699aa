"""A layer's last step in Triton: bias, norm, rectifier and the state itself, in one pass over the rows.

Import this only where Triton is installed; see ras_agent.tools.gfm.triton_launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ras_agent.tools.gfm.network import EPSILON
from ras_agent.tools.gfm.triton_launch import beside, tl, triton

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["respond"]


@triton.jit  # type: ignore[untyped-decorator]
def _responded(  # type: ignore[no-untyped-def]
    mixed, bias, gain, shift, states, following, width, epsilon, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, COLUMNS)
    inside = column < width
    given = tl.load(mixed + row + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside, other=0.0)
    centred = tl.where(inside, given - tl.sum(given, axis=0) / width, 0.0)
    norm = centred * tl.rsqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    gains, shifts = tl.load(gain + column, mask=inside, other=0.0), tl.load(shift + column, mask=inside, other=0.0)
    state = tl.load(states + row + column, mask=inside, other=0.0).to(tl.float32)
    found = tl.maximum(norm * gains + shifts, 0.0) + state
    tl.store(following + row + column, found.to(following.dtype.element_ty), mask=inside)


def respond(mixed: Tensor, bias: Tensor, gain: Tensor, shift: Tensor, states: Tensor, following: Tensor) -> None:
    """Write to `following` the next states of `states`; both (rows, d), of one kind. mixed: (rows, d), float32.

    bias, gain, shift: (d,). All contiguous.
    """
    rows, width = mixed.shape
    columns = triton.next_power_of_2(width)
    warps = max(1, min(16, columns // 128))
    with beside(mixed):
        if rows:
            arrays = mixed, bias, gain, shift, states, following
            _responded[(rows,)](*arrays, width, EPSILON, COLUMNS=columns, num_warps=warps)
