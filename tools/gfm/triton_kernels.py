"""Gather, multiply and sum in Triton: every piece of a block, then the sums of entities that have several pieces.

Import this only where Triton is installed; see ras_agent.tools.gfm.triton_launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ras_agent.tools.gfm.triton_launch import beside, tl, triton

if TYPE_CHECKING:
    from torch import Tensor

    from ras_agent.tools.gfm.segments import Listeners

__all__ = ["hear_messages"]

WIDEST = 1024  # columns a program
AT_ONCE = 4  # messages whose rows are under way together; the paper's graph has 6 an entity


@triton.jit  # type: ignore[untyped-decorator]
def _share(  # type: ignore[no-untyped-def]
    batch, width, parts, COLUMNS: tl.constexpr
):  # fmt: skip
    """Which piece of which question a program adds up, and which of its columns."""
    program = tl.program_id(0)
    piece, rest = program // (batch * parts), program % (batch * parts)
    question, part = rest // parts, rest % parts
    column = part * COLUMNS + tl.arange(0, COLUMNS)
    return piece, question, column, column < width


@triton.jit  # type: ignore[untyped-decorator]
def _said(  # type: ignore[no-untyped-def]
    states, kinds, source, relation, begin, end, target, total, batch, width, parts, AT_ONCE: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """One piece of one question: the sum of state * relation state over its messages."""
    piece, question, column, inside = _share(batch, width, parts, COLUMNS)
    first, last = tl.load(begin + piece), tl.load(end + piece)
    heard = tl.zeros([AT_ONCE, COLUMNS], tl.float32)
    for at in range(first, last, AT_ONCE):
        message = at + tl.arange(0, AT_ONCE)
        there = message < last
        speaker = tl.load(source + message, mask=there, other=0).to(tl.int64) * batch + question
        kind = tl.load(relation + message, mask=there, other=0).to(tl.int64)
        both = there[:, None] & inside[None, :]
        state = tl.load(states + speaker[:, None] * width + column[None, :], mask=both, other=0.0)
        spoken = tl.load(kinds + kind[:, None] * width + column[None, :], mask=both, other=0.0)
        heard += state.to(tl.float32) * spoken.to(tl.float32)
    row = tl.load(target + piece).to(tl.int64) * batch + question
    tl.store(total + row * width + column, tl.sum(heard, axis=0), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _summed(  # type: ignore[no-untyped-def]
    begin, end, target, total, batch, width, parts, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """One piece of a later level: the sum of rows of `total`."""
    piece, question, column, inside = _share(batch, width, parts, COLUMNS)
    first, last = tl.load(begin + piece), tl.load(end + piece)
    heard = tl.zeros([AT_ONCE, COLUMNS], tl.float32)
    for at in range(first, last, AT_ONCE):
        place = at + tl.arange(0, AT_ONCE)
        row = place.to(tl.int64) * batch + question
        both = (place < last)[:, None] & inside[None, :]
        heard += tl.load(total + row[:, None] * width + column[None, :], mask=both, other=0.0)
    row = tl.load(target + piece).to(tl.int64) * batch + question
    tl.store(total + row * width + column, tl.sum(heard, axis=0), mask=inside)


def hear_messages(
    block: Listeners, states: Tensor, kinds: Tensor, source: Tensor, relation: Tensor, total: Tensor
) -> None:
    """Write to `total` (rows, B, d), float32, the sums of a block; see device_hear.hear_messages. All contiguous."""
    batch, width = total.shape[1:]
    columns = min(WIDEST, triton.next_power_of_2(width))
    parts = triton.cdiv(width, columns)
    # a thread reads 16 bytes at a time
    warps = max(1, columns * states.element_size() // 512)
    shape: dict[str, Any] = {"AT_ONCE": AT_ONCE, "COLUMNS": columns, "num_warps": warps}
    with beside(total):
        for number, level in enumerate(block.levels):
            programs = (len(level.begin) * batch * parts,)
            if not programs[0]:
                continue
            pieces = level.begin, level.end, level.target, total, batch, width, parts
            if number:
                _summed[programs](*pieces, **shape)
            else:
                _said[programs](states, kinds, source, relation, *pieces, **shape)
