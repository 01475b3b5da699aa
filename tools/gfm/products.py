"""Matrix products of rows in float32, computed in one of three ways: exactly, by three bfloat16 products, or by one.

A float32 number is its bfloat16 rounding plus a rest, of which bfloat16 again keeps eight bits. Of the four products of
two such sums, that of both rests is too small to matter; the other three are one product of rows three times as long,
added up in float32. It is about as exact as 16 bits allow, and takes three products of a kind that tensor cores do
fifteen times as fast as float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from ras_agent.errors import SettingsError

if TYPE_CHECKING:
    from torch import Tensor, device

ProductPrecision = Literal["float32", "split", "bfloat16"]


def check_products(products: str) -> None:
    """Raise SettingsError for a precision that does not exist."""
    if products not in get_args(ProductPrecision):
        raise SettingsError(f"products {products!r}: known are {', '.join(get_args(ProductPrecision))}")


def split_rows(rows: Tensor, parts: Tensor) -> None:
    """Write `rows` (n, d) to `parts` (n, 3d), bfloat16, as [rounded numbers; what rounding left; rounded numbers]."""
    import torch

    rounded, rest, again = parts.chunk(3, dim=1)
    rounded.copy_(rows)
    torch.sub(rows, rounded, out=rest)  # computed in float32, the dtype that holds both
    again.copy_(rounded)


class MatrixProduct:
    """Product of rows with a fixed matrix."""

    def __init__(self, rights: Sequence[Tensor], products: ProductPrecision, *, use_triton: bool = False) -> None:
        """Prepare the matrix, whose blocks of rows are `rights`: (d, h) each, float32, on the device.

        use_triton: split rows by the Triton kernel.
        """
        import torch

        self._products, self._use_triton, self._heights = products, use_triton, [len(right) for right in rights]
        if products == "float32":
            self._rights = [right.contiguous() for right in rights]
            return
        rounded = [right.to(torch.bfloat16) for right in rights]
        if products == "bfloat16":
            blocks = rounded
        else:
            rests = [(right - most.float()).to(torch.bfloat16) for right, most in zip(rights, rounded, strict=True)]
            blocks = [block for most, rest in zip(rounded, rests, strict=True) for block in (most, most, rest)]
        matrix = torch.cat(blocks)
        # only CUDA adds up bfloat16 products as float32; elsewhere the rounded numbers are multiplied as float32
        self._rights = [matrix if adds_up_in_float32(matrix.device) else matrix.float()]

    @property
    def bytes(self) -> int:
        """Return the memory of the matrix."""
        size: int = sum(right.nbytes for right in self._rights)
        return size

    def __call__(self, *blocks: Tensor) -> Tensor:
        """Return (rows, h), float32: the sum of `blocks` (rows, d), of any dtype, times their parts of the matrix."""
        import torch

        if self._products == "float32":
            total = blocks[0].float() @ self._rights[0]
            for rows, right in zip(blocks[1:], self._rights[1:], strict=True):
                total.addmm_(rows.float(), right)
            return total
        (right,) = self._rights
        row = torch.empty(len(blocks[0]), len(right), dtype=torch.bfloat16, device=right.device)
        times, at = 3 if self._products == "split" else 1, 0
        for rows, height in zip(blocks, self._heights, strict=True):
            parts = row[:, at : at + times * height]
            at += times * height
            if times == 1:
                parts.copy_(rows)
            elif self._use_triton:
                from ras_agent.tools.gfm import triton_kernels

                triton_kernels.split_rows(rows, parts)
            else:
                split_rows(rows, parts)
        if right.dtype == row.dtype:
            return torch.mm(row, right, out_dtype=torch.float32)
        return row.float() @ right


def adds_up_in_float32(on: device) -> bool:
    """Tell whether this torch can multiply bfloat16 into float32 on a device: on CUDA, from torch 2.8 on."""
    import torch

    if on.type != "cuda":
        return False
    matrix = torch.zeros(16, 16, dtype=torch.bfloat16, device=on)
    try:
        torch.mm(matrix, matrix, out_dtype=torch.float32)
    except TypeError:  # an older torch does not know the argument
        return False
    return True
