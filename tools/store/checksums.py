"""Tells damage: writes down the size and the checksum of each file, and compares them when the file is read.

The checksums are CRC-32: they tell what disks, copies and other programs did by accident, not what somebody forged.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IndexMismatch, RasError

SMALL = 8 << 20
"""Files of up to so many bytes, which take some milliseconds, are compared whole whenever they are opened."""
_AT_ONCE = 1 << 20

Checksums = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class FileSum:
    """Says how many bytes a file has, and their CRC-32."""

    size: int
    crc: int


def file_sum(path: Path) -> FileSum:
    """Read a file and return its size and checksum."""
    size = crc = 0
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            size, crc = size + len(part), zlib.crc32(part, crc)
    return FileSum(size, crc)


def file_sums(folder: Path, names: Iterable[str]) -> dict[str, FileSum]:
    """Return the checksums of some files in `folder`, by name; those of a folder's files, if a name is a folder's."""
    found: dict[str, FileSum] = {}
    for name in names:
        path = folder / name
        parts = sorted(path.iterdir()) if path.is_dir() else [path]
        found |= {part.relative_to(folder).as_posix(): file_sum(part) for part in parts}
    return found


def sums_from_dict(data: Mapping[str, Mapping[str, int]]) -> dict[str, FileSum]:
    """Return the checksums that a manifest holds as JSON."""
    return {name: FileSum(**value) for name, value in data.items()}


def check_file(path: Path, expected: FileSum | None, remedy: str, *, whole: bool = False) -> None:
    """Raise IndexMismatch, which ends in `remedy`, if a file is not the one that was written.

    whole: read a large file too, of which else the size alone is compared. Raises FileNotFoundError if it is gone.
    """
    with reading(path, remedy):
        if expected is None:
            raise ValueError("its manifest does not list it")
        size = path.stat().st_size
        if size != expected.size:
            raise ValueError(f"it has {size:,} bytes, and {expected.size:,} were written")
        if (whole or size <= SMALL) and file_sum(path) != expected:
            raise ValueError("its bytes are not those that were written")


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Name the file `path` and the remedy in what its damaged content makes the block raise, an IndexMismatch.

    FileNotFoundError and errors of our own pass: a writer may have replaced the file.
    """
    try:
        yield
    except (FileNotFoundError, RasError, MemoryError):
        raise
    except OSError as error:
        raise IndexMismatch(f"{path} cannot be read ({error.strerror or error}): {remedy}") from error
    except Exception as error:  # a damaged header makes numpy, json and FAISS raise whatever they like
        raise IndexMismatch(f"{path} is damaged ({str(error) or type(error).__name__}): {remedy}") from error


def load_array(path: Path, remedy: str) -> Any:
    """Open a saved array, memory-mapped. Raises IndexMismatch for a damaged one, FileNotFoundError for none."""
    with reading(path, remedy):
        # a plain view of the map: slicing a numpy.memmap costs microseconds
        return np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)


def row_sums(rows: npt.NDArray[Any]) -> Checksums:
    """Return the checksum of each row of an array, shape (len(rows),)."""
    return np.fromiter(map(zlib.crc32, np.ascontiguousarray(rows)), dtype=np.uint32, count=len(rows))
