"""Matrix products of rows in float32, three ways: exactly, in three bfloat16 products, or in one.

A float32 number is its bfloat16 rounding plus a rest, of which bfloat16 keeps eight bits again. Of the four products of
two such sums the one of both rests is too small to matter; the other three are one product of rows three times as long,
added up in float32. It is about as exact as 16 bits allow and takes three products of the kind that tensor cores do
fifteen times as fast as float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from ras_agent.errors import SettingsError

if TYPE_CHECKING:
    from torch import Tensor, device

__all__ = ["Product", "Products", "check_products", "split_rows"]

Products = Literal["float32", "split", "bfloat16"]


def check_products(products: str) -> None:
    """Raises SettingsError for a way to multiply that does not exist."""
    if products not in get_args(Products):
        raise SettingsError(f"products {products!r}: known are {', '.join(get_args(Products))}")


def split_rows(left: Tensor, parts: Tensor) -> None:
    """Write to `parts` (rows, 3d), bfloat16, what that keeps of `left` (rows, d), of the rest, and the first again."""
    import torch

    most, rest, again = parts.chunk(3, dim=1)
    most.copy_(left)
    torch.sub(left, most, out=rest)  # computed in float32, the kind that holds both
    again.copy_(most)


class Product:
    """Rows times a fixed matrix."""

    def __init__(self, rights: Sequence[Tensor], products: Products, *, compiled: bool = False) -> None:
        """rights: (d, h) each, float32, on the device. Rows are given in as many parts. compiled: split by Triton."""
        import torch

        self._way, self._compiled, self._heights = products, compiled, [len(right) for right in rights]
        if products == "float32":
            self._rights = [right.contiguous() for right in rights]
            return
        high = [right.to(torch.bfloat16) for right in rights]
        if products == "bfloat16":
            blocks = high
        else:
            low = [(right - most.float()).to(torch.bfloat16) for right, most in zip(rights, high, strict=True)]
            blocks = [block for most, rest in zip(high, low, strict=True) for block in (most, most, rest)]
        joined = torch.cat(blocks)
        # only CUDA adds up bfloat16 products as float32; elsewhere the rounded numbers are multiplied as float32
        self._rights = [joined if adds_up_in_float32(joined.device) else joined.float()]

    @property
    def bytes(self) -> int:
        """Memory of the matrix."""
        size: int = sum(right.nbytes for right in self._rights)
        return size

    def __call__(self, *lefts: Tensor) -> Tensor:
        """(rows, h), float32: the sum of each left (rows, d), of any kind, times its right."""
        import torch

        if self._way == "float32":
            found = lefts[0].float() @ self._rights[0]
            for left, right in zip(lefts[1:], self._rights[1:], strict=True):
                found.addmm_(left.float(), right)
            return found
        (right,) = self._rights
        row = torch.empty(len(lefts[0]), len(right), dtype=torch.bfloat16, device=right.device)
        times, at = 3 if self._way == "split" else 1, 0
        for left, height in zip(lefts, self._heights, strict=True):
            parts = row[:, at : at + times * height]
            at += times * height
            if times == 1:
                parts.copy_(left)
            elif self._compiled:
                from ras_agent.tools.gfm.triton_split import split

                split(left, parts)
            else:
                split_rows(left, parts)
        if right.dtype == row.dtype:
            return torch.mm(row, right, out_dtype=torch.float32)
        return row.float() @ right


def adds_up_in_float32(on: device) -> bool:
    """Can this torch multiply bfloat16 into float32 there? On CUDA, from torch 2.8 on."""
    import torch

    if on.type != "cuda":
        return False
    one = torch.zeros(16, 16, dtype=torch.bfloat16, device=on)
    try:
        torch.mm(one, one, out_dtype=torch.float32)
    except TypeError:  # an older torch does not know the word
        return False
    return True
