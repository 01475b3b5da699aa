"""A sparse matrix row by row (CSR): for each row the columns that are not zero, ascending, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["SparseRows"]

Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Row `r` holds `values[starts[r]:starts[r + 1]]` at `columns[starts[r]:starts[r + 1]]`.

    starts: (rows + 1,) int64; columns: (nonzero,) int32; values: (nonzero,); width: how many columns there are.
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]
    width: int

    @classmethod
    def counted(cls, rows: Ints, columns: Ints, shape: tuple[int, int], counts: Ints | None = None) -> Self:
        """The matrix that counts pairs (row, column), each pair `counts` times (once), repeated pairs added up."""
        height, width = shape
        flat = rows.astype(np.int64) * max(width, 1) + columns
        cells, inverse = np.unique(flat, return_inverse=True)
        weights = None if counts is None else counts.astype(np.float64)
        values = np.bincount(inverse, weights=weights, minlength=len(cells)).astype(np.int32)
        return cls.sorted(cells // max(width, 1), cells % max(width, 1), values, (height, width))

    @classmethod
    def sorted(cls, rows: Ints, columns: Ints, values: npt.NDArray[Any], shape: tuple[int, int]) -> Self:
        """From cells that ascend by row, then column."""
        starts = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
        return cls(starts, columns.astype(np.int32), values, shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts) - 1, self.width

    def row(self, number: int) -> npt.NDArray[np.int32]:
        """The columns of a row."""
        return self.columns[self.starts[number] : self.starts[number + 1]]

    def row_values(self, number: int) -> npt.NDArray[Any]:
        """The values of a row, beside `row`."""
        return self.values[self.starts[number] : self.starts[number + 1]]

    def row_sizes(self) -> npt.NDArray[np.int64]:
        """How many columns each row holds, shape (rows,)."""
        return np.diff(self.starts)

    def to_scipy(self, dtype: npt.DTypeLike = np.float32) -> csr_matrix:
        """The same for scipy (extra `graph`)."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.values.astype(dtype), self.columns, self.starts), shape=self.shape)
