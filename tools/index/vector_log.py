"""Vectors in the order they were written: appended to, never changed, so that no text is embedded twice."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.tools.index.durable import sync_file

__all__ = ["FileVectorLog", "MemoryVectorLog", "VectorLog"]


class VectorLog(Protocol):
    """Where vectors lie; a vector is found again by its number."""

    dimension: int

    @property
    def size(self) -> int:
        """How many vectors were ever appended."""
        ...

    def append(self, vectors: Floats) -> int:
        """The number of the first of `vectors` (n, dimension); the others follow. Kept when this returns."""
        ...

    def take(self, numbers: npt.NDArray[np.int64]) -> Floats:
        """Vectors by number, shape (len(numbers), dimension); a view where they are all in order."""
        ...


class MemoryVectorLog:
    """Vectors in an array."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._vectors = np.empty((0, dimension), dtype=np.float32)

    @property
    def size(self) -> int:
        return len(self._vectors)

    def append(self, vectors: Floats) -> int:
        first = self.size
        self._vectors = np.concatenate([self._vectors, vectors])
        return first

    def take(self, numbers: npt.NDArray[np.int64]) -> Floats:
        return _take(self._vectors, numbers)


class FileVectorLog:
    """Vectors in a memory-mapped file that exists: little-endian float32 rows, no header; the index knows the width."""

    def __init__(self, path: Path, dimension: int) -> None:
        self.path, self.dimension = path, dimension
        self._vectors = self._map()

    @property
    def size(self) -> int:
        return len(self._vectors)

    def append(self, vectors: Floats) -> int:
        width = 4 * self.dimension
        with self.path.open("ab") as file:
            torn = file.tell() % width  # an interrupted write may have left part of a row
            file.write(bytes((width - torn) % width))
            first = file.tell() // width
            file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
        sync_file(self.path)
        self._vectors = self._map()
        return first

    def take(self, numbers: npt.NDArray[np.int64]) -> Floats:
        return _take(self._vectors, numbers)

    def _map(self) -> Floats:
        rows = self.path.stat().st_size // (4 * self.dimension)
        if not rows:
            return np.empty((0, self.dimension), dtype=np.float32)
        mapped = np.memmap(self.path, dtype="<f4", mode="r", shape=(rows, self.dimension))
        return mapped.view(np.ndarray)


def _take(vectors: Floats, numbers: npt.NDArray[np.int64]) -> Floats:
    if np.array_equal(numbers, np.arange(len(numbers))):
        return vectors[: len(numbers)]
    return vectors[numbers]
