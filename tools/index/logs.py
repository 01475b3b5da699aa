"""Stores passages and vectors in the order they were written, in memory or in a file that is only appended to."""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch
from ras_agent.records import Passage
from ras_agent.tools.index.checksums import Checksums, reading, row_sums
from ras_agent.tools.index.durable import sync_file, writing
from ras_agent.tools.index.manifest import ANEW


class Places(NamedTuple):
    """Says where passages are in a log: `starts` (n,) and `sizes` (n,), and the checksums of what is there, (n,)."""

    starts: Ints
    sizes: npt.NDArray[np.int32]
    sums: Checksums


class PassageLog(Protocol):
    """Stores passages; a passage is found again by the place `append` returned for it."""

    @property
    def size(self) -> int:
        """Return how much was ever appended, in the unit of places."""
        ...

    def append(self, passages: Iterable[Passage]) -> Places:
        """Append `passages` and return their places; they are stored durably when this returns."""
        ...

    def read(self, start: int, size: int, crc: int) -> Passage:
        """Return the passage at a place. Raises IndexMismatch if its checksum is another than `crc`."""
        ...


class MemoryPassageLog:
    """Stores passages in a list; places are positions in it."""

    def __init__(self) -> None:
        self._passages: list[Passage] = []

    @property
    def size(self) -> int:
        return len(self._passages)

    def append(self, passages: Iterable[Passage]) -> Places:
        first = self.size
        self._passages.extend(passages)
        starts = np.arange(first, self.size)
        return Places(starts, np.ones(len(starts), dtype=np.int32), np.zeros(len(starts), dtype=np.uint32))

    def read(self, start: int, size: int, crc: int) -> Passage:
        return self._passages[start]


class FilePassageLog:
    """Stores each passage as a line of JSON in a memory-mapped file that exists; places are byte ranges.

    What an interrupted write left at the end is never read: no row names its place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _map(path)

    @property
    def size(self) -> int:
        return len(self._map)

    def append(self, passages: Iterable[Passage]) -> Places:
        starts, sizes, sums = [], [], []
        with writing(self.path):
            with self.path.open("ab") as file:
                for passage in passages:
                    line = passage_line(passage)
                    starts.append(file.tell())
                    sizes.append(file.write(line))
                    sums.append(zlib.crc32(line))
            sync_file(self.path)
        self._map = _map(self.path)  # an older map stays valid for whoever is reading from it
        return Places(
            np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int32), np.array(sums, dtype=np.uint32)
        )

    def copy(self, places: Places, path: Path) -> Places:
        """Write the passages at `places` to a log at `path`, and nothing else; return their places there."""
        with writing(path):
            with path.open("wb") as file:
                for start, size in zip(places.starts.tolist(), places.sizes.tolist(), strict=True):
                    file.write(self._map[start : start + size])
            sync_file(path)
        return places._replace(starts=np.cumsum(places.sizes, dtype=np.int64) - places.sizes)

    def read(self, start: int, size: int, crc: int) -> Passage:
        line = self._map[start : start + size]
        if zlib.crc32(line) != crc:
            remedy = ANEW.format(folder=self.path.parent)
            raise IndexMismatch(
                f"{self.path} is damaged (the passage at byte {start:,} is not what was written): {remedy}"
            )
        return Passage.from_dict(json.loads(line.decode("utf-8", "surrogatepass")))


def passage_line(passage: Passage) -> bytes:
    """Return the passage as a line of JSON. Raises ValueError for metadata that JSON cannot hold."""
    try:
        line = json.dumps(passage.to_dict(), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"passage {passage.id!r}: its metadata is not JSON: {error}") from error
    return line.encode("utf-8", "surrogatepass") + b"\n"  # text may hold lone surrogates, which plain UTF-8 cannot


class StoredPassages(Sequence[Passage]):
    """Reads the passages at some places of a log, each when asked for."""

    def __init__(self, log: PassageLog, places: Places) -> None:
        self._log, self._places = log, places

    def __len__(self) -> int:
        return len(self._places.starts)

    @overload
    def __getitem__(self, row: int) -> Passage: ...
    @overload
    def __getitem__(self, row: slice) -> StoredPassages: ...
    def __getitem__(self, row: Any) -> Any:
        start, size, crc = self._places
        if isinstance(row, slice):
            return StoredPassages(self._log, Places(start[row], size[row], crc[row]))
        return self._log.read(int(start[row]), int(size[row]), int(crc[row]))


class VectorLog(Protocol):
    """Stores vectors, so that no text is embedded twice; a vector is found again by its number."""

    dimension: int

    @property
    def size(self) -> int:
        """Return how many vectors were ever appended."""
        ...

    def append(self, vectors: Floats) -> int:
        """Append `vectors` (n, dimension) and return the number of the first; they are durable when this returns."""
        ...

    def take(self, numbers: Ints, sums: Checksums) -> Floats:
        """Return vectors by number, shape (len(numbers), dimension); a view where they are all in order.

        Raises IndexMismatch if their checksums are others than `sums`, (len(numbers),).
        """
        ...


class MemoryVectorLog:
    """Stores vectors in an array."""

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

    def take(self, numbers: Ints, sums: Checksums) -> Floats:
        return _take(self._vectors, numbers)


class FileVectorLog:
    """Stores vectors in a memory-mapped file that exists: little-endian float32 rows without a header."""

    def __init__(self, path: Path, dimension: int) -> None:
        self.path, self.dimension = path, dimension
        self._vectors = self._map()

    @property
    def size(self) -> int:
        return len(self._vectors)

    def append(self, vectors: Floats) -> int:
        width = 4 * self.dimension
        with writing(self.path):
            with self.path.open("ab") as file:
                torn = file.tell() % width  # an interrupted write may have left part of a row
                file.write(bytes((width - torn) % width))
                first = file.tell() // width
                file.write(np.ascontiguousarray(vectors, dtype="<f4").data)
            sync_file(self.path)
        self._vectors = self._map()
        return first

    def take(self, numbers: Ints, sums: Checksums) -> Floats:
        vectors = _take(self._vectors, numbers)
        wrong = np.flatnonzero(row_sums(vectors) != sums)
        if len(wrong):
            remedy = ANEW.format(folder=self.path.parent)
            raise IndexMismatch(
                f"{self.path} is damaged (vector {numbers[wrong[0]]:,} is not what was written): {remedy}"
            )
        return vectors

    def _map(self) -> Floats:
        with reading(self.path, ANEW.format(folder=self.path.parent)):
            rows = self.path.stat().st_size // (4 * self.dimension)
            if not rows:
                return np.empty((0, self.dimension), dtype=np.float32)
            mapped = np.memmap(self.path, dtype="<f4", mode="r", shape=(rows, self.dimension))
            return mapped.view(np.ndarray)


def _map(path: Path) -> mmap.mmap | bytes:
    with reading(path, ANEW.format(folder=path.parent)), path.open("rb") as file:
        if not path.stat().st_size:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _take(vectors: Floats, numbers: Ints) -> Floats:
    if np.array_equal(numbers, np.arange(len(numbers))):
        return vectors[: len(numbers)]
    return vectors[numbers]
