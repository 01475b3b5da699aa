"""Names for array types that are used throughout the package."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def unit_rows(rows: Floats) -> Floats:
    """Return the rows of a matrix, each divided by its Euclidean length; a row of zeros stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    scaled: Floats = rows / lengths
    return scaled
