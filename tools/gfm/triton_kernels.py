"""The network's Triton kernels: messages and their sums, updates, and rows split for a product.

Import this module only where Triton is installed; no other module imports Triton. With TRITON_INTERPRET=1 in the
environment before that, kernels run on the CPU, for tests.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ras_agent.tools.gfm.network import NORM_EPSILON

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError(
        f"ras_agent.tools.gfm.triton_kernels needs Triton ({error}): install a torch that is built for CUDA on Linux, "
        "which brings it (https://pytorch.org/get-started), or choose device='cpu'"
    ) from error

if TYPE_CHECKING:
    from torch import Tensor

    from ras_agent.tools.gfm.segments import TargetBlock

WIDEST = 1024  # columns a program
_AT_ONCE = 4  # messages whose rows are on their way together; the paper's graph has 6 an entity


def _on_device_of(tensor: Tensor) -> AbstractContextManager[object]:
    """Make the tensor's device the current one, on which Triton starts kernels."""
    import torch

    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


@triton.jit  # type: ignore[untyped-decorator]
def _share(  # type: ignore[no-untyped-def]
    batch, width, parts, COLUMNS: tl.constexpr
):  # fmt: skip
    """Return which segment and question a program instance adds up, and which columns."""
    program = tl.program_id(0)
    segment, rest = program // (batch * parts), program % (batch * parts)
    question, part = rest // parts, rest % parts
    column = part * COLUMNS + tl.arange(0, COLUMNS)
    return segment, question, column, column < width


@triton.jit  # type: ignore[untyped-decorator]
def _sum_messages(  # type: ignore[no-untyped-def]
    states, relation_states, source, relation, begin, end, target, total, batch, width, parts, AT_ONCE: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add up one segment of the first level for one question: state * relation state over its messages."""
    segment, question, column, inside = _share(batch, width, parts, COLUMNS)
    first, last = tl.load(begin + segment), tl.load(end + segment)
    sums = tl.zeros([AT_ONCE, COLUMNS], tl.float32)
    for at in range(first, last, AT_ONCE):
        message = at + tl.arange(0, AT_ONCE)
        there = message < last
        source_row = tl.load(source + message, mask=there, other=0).to(tl.int64) * batch + question
        relation_row = tl.load(relation + message, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        state = tl.load(states + source_row[:, None] * width + column[None, :], mask=both, other=0.0)
        factor = tl.load(relation_states + relation_row[:, None] * width + column[None, :], mask=both, other=0.0)
        sums += state.to(tl.float32) * factor.to(tl.float32)
    row = tl.load(target + segment).to(tl.int64) * batch + question
    tl.store(total + row * width + column, tl.sum(sums, axis=0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _sum_rows(  # type: ignore[no-untyped-def]
    begin, end, target, total, batch, width, parts, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Add up one segment of a later level for one question: rows of `total`."""
    segment, question, column, inside = _share(batch, width, parts, COLUMNS)
    first, last = tl.load(begin + segment), tl.load(end + segment)
    sums = tl.zeros([AT_ONCE, COLUMNS], tl.float32)
    for at in range(first, last, AT_ONCE):
        place = at + tl.arange(0, AT_ONCE)
        row = place.to(tl.int64) * batch + question
        both = (place < last)[:, None] & inside[None, :]
        sums += tl.load(total + row[:, None] * width + column[None, :], mask=both, other=0.0)
    row = tl.load(target + segment).to(tl.int64) * batch + question
    tl.store(total + row * width + column, tl.sum(sums, axis=0), mask=inside)


def propagate_block(
    block: TargetBlock, states: Tensor, relation_states: Tensor, source: Tensor, relation: Tensor, total: Tensor
) -> None:
    """Write to `total` (rows, B, d), float32, the sums of a block, as segments.propagate_block does. All contiguous."""
    batch, width = total.shape[1:]
    columns = min(WIDEST, triton.next_power_of_2(width))
    parts = triton.cdiv(width, columns)
    # a thread reads 16 bytes at a time
    warps = max(1, columns * states.element_size() // 512)
    shape: dict[str, Any] = {"AT_ONCE": _AT_ONCE, "COLUMNS": columns, "num_warps": warps}
    with _on_device_of(total):
        for number, level in enumerate(block.levels):
            programs = (len(level.begin) * batch * parts,)
            if not programs[0]:
                continue
            segments = level.begin, level.end, level.target, total, batch, width, parts
            if number:
                _sum_rows[programs](*segments, **shape)
            else:
                _sum_messages[programs](states, relation_states, source, relation, *segments, **shape)


@triton.jit  # type: ignore[untyped-decorator]
def _update_row(  # type: ignore[no-untyped-def]
    mixed, bias, norm_weight, norm_bias, states, following, width, epsilon, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, COLUMNS)
    inside = column < width
    value = tl.load(mixed + row + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside, other=0.0)
    centred = tl.where(inside, value - tl.sum(value, axis=0) / width, 0.0)
    norm = centred * tl.rsqrt(tl.sum(centred * centred, axis=0) / width + epsilon)
    weight = tl.load(norm_weight + column, mask=inside, other=0.0)
    shift = tl.load(norm_bias + column, mask=inside, other=0.0)
    state = tl.load(states + row + column, mask=inside, other=0.0).to(tl.float32)
    next_state = tl.maximum(norm * weight + shift, 0.0) + state
    tl.store(following + row + column, next_state.to(following.dtype.element_ty), mask=inside)


def update(
    mixed: Tensor, bias: Tensor, norm_weight: Tensor, norm_bias: Tensor, states: Tensor, following: Tensor
) -> None:
    """Write to `following` (rows, d) the next states of `states` (rows, d), of the same dtype, in one pass.

    mixed: (rows, d), float32, the linear map's output without its bias. bias, norm_weight, norm_bias: (d,).
    All contiguous.
    """
    rows, width = mixed.shape
    columns = triton.next_power_of_2(width)
    with _on_device_of(mixed):
        if rows:
            arrays = mixed, bias, norm_weight, norm_bias, states, following
            shape: dict[str, Any] = {"COLUMNS": columns, "num_warps": max(1, min(16, columns // 128))}
            _update_row[(rows,)](*arrays, width, NORM_EPSILON, **shape)


@triton.jit  # type: ignore[untyped-decorator]
def _split_row(  # type: ignore[no-untyped-def]
    rows, parts, width, stride, COLUMNS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, COLUMNS)
    inside = column < width
    value = tl.load(rows + row * width + column, mask=inside, other=0.0).to(tl.float32)
    rounded = value.to(tl.bfloat16)
    rest = (value - rounded.to(tl.float32)).to(tl.bfloat16)
    at = parts + row * stride + column
    tl.store(at, rounded, mask=inside)
    tl.store(at + width, rest, mask=inside)
    tl.store(at + 2 * width, rounded, mask=inside)


def split_rows(rows: Tensor, parts: Tensor) -> None:
    """Split `rows` (n, d) into columns of `parts` (n, 3d), bfloat16, as products.split_rows does.

    rows: contiguous. parts: may be columns of a wider matrix.
    """
    count, width = rows.shape
    columns = triton.next_power_of_2(width)
    with _on_device_of(rows):
        if count:
            shape: dict[str, Any] = {"COLUMNS": columns, "num_warps": max(1, min(16, columns // 256))}
            _split_row[(count,)](rows, parts, width, parts.stride(0), **shape)
