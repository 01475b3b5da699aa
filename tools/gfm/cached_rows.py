"""Caches rows of numbers for a graph: as float32, or as 16-bit integers with a scale for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST = 32767


@dataclass(frozen=True, slots=True)
class CachedRows:
    """Holds rows of numbers, values * scales.

    An int16 value has an error of at most 1/65,534 of its row's largest number. Since the numbers of a row are of
    similar size here, this is more precise than 16-bit floating point numbers, whose errors are 1/4,096 or 1/512 of
    the number.
    """

    values: Tensor
    """(rows, d), int16 or a floating dtype; for the latter scales are ignored."""
    scales: Tensor
    """(rows,), float32."""

    def rows(self, which: Tensor | slice) -> Tensor:
        """Return the rows with the numbers `which`; int16 rows are converted to float32."""
        some = self.values[which]
        if some.is_floating_point():
            return some
        return some * self.scales[which, None]

    def largest(self) -> Tensor:
        """Return the largest absolute value of each row (rows,)."""
        import torch

        if not self.values.is_floating_point():
            return self.scales * _LARGEST
        lowest, highest = torch.aminmax(self.values, dim=1)
        return torch.maximum(highest, -lowest)

    def write(self, begin: int, rows: Tensor) -> None:
        """Write float32 `rows` (rows, d) at the positions from `begin` on."""
        at = slice(begin, begin + len(rows))
        if self.values.is_floating_point():
            self.values[at] = rows
            return
        scales = rows.abs().amax(dim=1).clamp_(min=1e-30) / _LARGEST
        self.values[at] = (rows / scales[:, None]).round_()
        self.scales[at] = scales


def empty_rows(count: int, width: int, half: bool) -> CachedRows:
    """Return uninitialised CachedRows for `count` rows of `width` numbers: float32 or, if `half`, 16-bit integers."""
    import torch

    values = torch.empty(count, width, dtype=torch.int16 if half else torch.float32)
    return CachedRows(values, torch.ones(count))


def cache_rows(rows: Tensor, half: bool) -> CachedRows:
    """Return float32 `rows` (rows, d) as CachedRows, unchanged or, if `half`, as 16-bit integers."""
    import torch

    if not half:
        return CachedRows(rows, torch.ones(len(rows)))
    cached = empty_rows(rows.shape[0], rows.shape[1], half)
    cached.write(0, rows)
    return cached
