"""Rows of numbers that are cached for a graph: as float32, or as 16-bit integers with a scale a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST = 32767


@dataclass(frozen=True, slots=True)
class CachedRows:
    """Rows of numbers, values * scales. values: (rows, d), int16 or a floating dtype, which ignores the scales.

    scales: (rows,), float32.

    An int16 value is off by at most 1/65,534 of its row's largest number. The numbers of a row are of one order of
    magnitude here, so this is finer than a 16-bit floating point number, which is off by 1/4,096 or 1/512 of itself.
    """

    values: Tensor
    scales: Tensor

    @property
    def bytes(self) -> int:
        """Return the memory of values and scales."""
        size: int = self.values.nbytes + self.scales.nbytes
        return size

    def rows(self, which: Tensor | slice) -> Tensor:
        """Return the rows `which`; int16 ones as float32."""
        some = self.values[which]
        return some if some.is_floating_point() else some * self.scales[which, None]


def cache_rows(rows: Tensor, half: bool) -> CachedRows:
    """Cache float32 `rows` (rows, d) as they are or, if `half`, as 16-bit integers."""
    import torch

    if not half:
        return CachedRows(rows, torch.ones(len(rows)))
    scales = rows.abs().amax(dim=1).clamp_(min=1e-30) / _LARGEST
    return CachedRows((rows / scales[:, None]).round_().to(torch.int16), scales)


def join_rows(blocks: Sequence[CachedRows]) -> CachedRows:
    """Join blocks of rows into one."""
    import torch

    return CachedRows(torch.cat([block.values for block in blocks]), torch.cat([block.scales for block in blocks]))
