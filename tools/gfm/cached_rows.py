"""Rows of numbers that are kept for a graph: float32, or 16-bit integers with a scale a row, in half the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Kept", "joined", "keep"]

LARGEST = 32767


@dataclass(frozen=True, slots=True)
class Kept:
    """values * scales, row by row. values: (rows, d), int16 or of a floating point kind, which needs no scales.

    scales: (rows,), float32.

    An int16 value is off by at most 1/65,534 of its row's largest number: a row's numbers are of one kind of magnitude
    here, so this is finer than a 16-bit floating point number, whose error is 1/4,096 or 1/512 of the number itself.
    """

    values: Tensor
    scales: Tensor

    @property
    def bytes(self) -> int:
        """Memory they take."""
        size: int = self.values.nbytes + self.scales.nbytes
        return size

    def rows(self, which: Tensor | slice) -> Tensor:
        """The rows `which`; int16 ones as float32."""
        some = self.values[which]
        return some if some.is_floating_point() else some * self.scales[which, None]


def keep(rows: Tensor, half: bool) -> Kept:
    """`rows` (rows, d), float32, as they are or, if `half`, as 16-bit integers."""
    import torch

    if not half:
        return Kept(rows, torch.ones(len(rows)))
    scales = rows.abs().amax(dim=1).clamp_(min=1e-30) / LARGEST
    return Kept((rows / scales[:, None]).round_().to(torch.int16), scales)


def joined(blocks: Sequence[Kept]) -> Kept:
    """Blocks of rows as one."""
    import torch

    return Kept(torch.cat([block.values for block in blocks]), torch.cat([block.scales for block in blocks]))
