"""Messages and their sums on a device, for several questions at once, without atomic additions.

An entity is the target of one message or of fifty thousand. The messages to each are cut into segments of at most
`longest`, so that a processor with thousands of threads can add up all segments at once; where an entity has several
segments, the next level adds up their sums in the same way. No two segments add to the same number, so the order of
additions, and with it the result, is the same every time.

`propagate_block` does this in torch's operations, for all segments of a level at once: their first messages, their
second ones, and so on. On CUDA a Triton kernel (ras_agent.tools.gfm.triton_kernels) does it and stores no message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Ints

if TYPE_CHECKING:
    from torch import Tensor, device


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of one level, longest first: segment p adds up begin[p] to end[p] - 1 into row target[p]; all (P,).

    At the first level begin and end count messages, at later levels rows that the level before has written.
    """

    begin: Ints
    end: Ints
    target: Ints

    @property
    def longer_than(self) -> list[int]:
        """Return (L,): how many segments, always the first ones, have more than 0, 1, 2, ... terms."""
        longest = int((self.end - self.begin).max(initial=0))
        return [int(np.count_nonzero(self.end - self.begin > place)) for place in range(longest)]


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Plan of the sums of the messages to the entities low to high - 1, level by level.

    The sums fill `rows` rows: the first high - low are the entities' own, the others are sums of segments.
    """

    low: int
    high: int
    rows: int
    levels: tuple[Segments, ...]


def plan_segments(indptr: Ints, low: int, high: int, longest: int) -> SegmentPlan:
    """Cut the messages to the entities low to high - 1 of a graph into segments of at most `longest`, 2 or more."""
    begin, lengths = indptr[low:high], np.diff(indptr[low : high + 1])
    row, free = np.arange(high - low), high - low
    levels = []
    while True:
        parts = np.maximum(
            1, -(-lengths // longest)
        )  # an entity without messages gets an empty segment, which writes 0
        of = np.repeat(np.arange(len(row)), parts)
        first = begin[of] + longest * (np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts))
        last = np.minimum(first + longest, (begin + lengths)[of])
        target, several = row[of], parts > 1
        target[several[of]] = free + np.arange(np.count_nonzero(several[of]))
        order = np.argsort(first - last, kind="stable")
        levels.append(Segments(first[order], last[order], target[order]))
        if not several.any():
            return SegmentPlan(low, high, free, tuple(levels))
        lengths, row = parts[several], row[several]
        begin = free + np.cumsum(lengths) - lengths
        free += int(lengths.sum())


@dataclass(frozen=True, slots=True)
class DeviceSegments:
    """Segments of one level on a device: begin, end, target (P,), int32; see Segments."""

    begin: Tensor
    end: Tensor
    target: Tensor
    longer_than: tuple[int, ...]

    @classmethod
    def of(cls, segments: Segments, on: device) -> DeviceSegments:
        """Copy segments to a device."""
        import torch

        arrays = (segments.begin, segments.end, segments.target)
        begin, end, target = (torch.from_numpy(array).to(on, torch.int32) for array in arrays)
        return cls(begin, end, target, tuple(segments.longer_than))


@dataclass(frozen=True, slots=True)
class TargetBlock:
    """SegmentPlan on a device: how the messages to the entities low to high - 1 are added up."""

    low: int
    high: int
    rows: int
    levels: tuple[DeviceSegments, ...]

    @classmethod
    def of(cls, plan: SegmentPlan, on: device) -> TargetBlock:
        """Copy a plan to a device."""
        return cls(plan.low, plan.high, plan.rows, tuple(DeviceSegments.of(level, on) for level in plan.levels))


def propagate_block(
    block: TargetBlock, states: Tensor, relation_states: Tensor, source: Tensor, relation: Tensor, total: Tensor
) -> None:
    """Write to `total` (rows, B, d), float32, the sums of a block, level after level, by torch's operations."""
    for number, level in enumerate(block.levels):
        sums = total.new_zeros(len(level.begin), *total.shape[1:])
        for place, count in enumerate(level.longer_than):
            at = level.begin[:count] + place
            if number:
                sums[:count] += total.index_select(0, at)
            else:
                # to float32 first: half precision would round each message
                source_states = states.index_select(0, source.index_select(0, at)).float()
                factors = relation_states.index_select(0, relation.index_select(0, at)).float()
                sums[:count].addcmul_(source_states, factors[:, None])
        total.index_copy_(0, level.target.long(), sums)  # no row twice
