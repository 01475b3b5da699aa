"""Passages in the order they were written: appended to, never changed. In memory, or one JSON line each in a file."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from ras_agent.records import Passage
from ras_agent.tools.index.durable import sync_file

__all__ = ["FilePassageLog", "MemoryPassageLog", "PassageLog", "Places", "StoredPassages", "passage_line"]


class Places(NamedTuple):
    """Where passages lie in a log."""

    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]


def passage_line(passage: Passage) -> bytes:
    """The passage as a line of JSON. Raises ValueError for metadata that JSON cannot hold."""
    try:
        line = json.dumps(passage.to_dict(), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"passage {passage.id!r}: its metadata is not JSON: {error}") from error
    return line.encode("utf-8", "surrogatepass") + b"\n"  # text may hold lone surrogates, which plain UTF-8 cannot


class PassageLog(Protocol):
    """Where passages lie; a passage is found again by the place `append` gave it."""

    @property
    def size(self) -> int:
        """All that was ever appended, in the unit of places."""
        ...

    def append(self, passages: Iterable[Passage]) -> Places:
        """The places of `passages`, which are kept when this returns."""
        ...

    def read(self, start: int, size: int) -> Passage: ...


class MemoryPassageLog:
    """Passages in a list; places are positions."""

    def __init__(self) -> None:
        self._passages: list[Passage] = []

    @property
    def size(self) -> int:
        return len(self._passages)

    def append(self, passages: Iterable[Passage]) -> Places:
        first = self.size
        self._passages.extend(passages)
        starts = np.arange(first, self.size)
        return Places(starts, np.ones(len(starts), dtype=np.int32))

    def read(self, start: int, size: int) -> Passage:
        return self._passages[start]


class FilePassageLog:
    """Passages in a memory-mapped file that exists; places are byte ranges.

    What an interrupted write left at the end is never looked at: nothing names its place.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _map(path)

    @property
    def size(self) -> int:
        return len(self._map)

    def append(self, passages: Iterable[Passage]) -> Places:
        starts, sizes = [], []
        with self.path.open("ab") as file:
            for passage in passages:
                line = passage_line(passage)
                starts.append(file.tell())
                sizes.append(file.write(line))
        sync_file(self.path)
        self._map = _map(self.path)  # an older map stays valid for whoever reads from it now
        return Places(np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int32))

    def read(self, start: int, size: int) -> Passage:
        return Passage.from_dict(json.loads(self._map[start : start + size].decode("utf-8", "surrogatepass")))


class StoredPassages(Sequence[Passage]):
    """The passages at some places of a log, read when asked for."""

    def __init__(self, log: PassageLog, places: Places) -> None:
        self._log, self._places = log, places

    def __len__(self) -> int:
        return len(self._places.starts)

    @overload
    def __getitem__(self, row: int) -> Passage: ...
    @overload
    def __getitem__(self, row: slice) -> StoredPassages: ...
    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return StoredPassages(self._log, Places(self._places.starts[row], self._places.sizes[row]))
        return self._log.read(int(self._places.starts[row]), int(self._places.sizes[row]))


def _map(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
