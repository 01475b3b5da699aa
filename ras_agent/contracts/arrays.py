"""Names the array types that are used throughout the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def offsets_of(sizes: npt.NDArray[np.integer[Any] | np.bool_]) -> Ints:
    """Return the start of each of n consecutive parts, followed by the end of the last, (n + 1,).

    Args:
        sizes: (n,), the number of entries of each part.
    """
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def unit_rows(rows: Floats) -> Floats:
    """Return the rows of a matrix, each divided by its Euclidean length; a row of zeros stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    scaled: Floats = rows / lengths
    return scaled
