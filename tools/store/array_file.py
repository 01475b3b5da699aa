"""Writes arrays into one file in the layout of safetensors: the length of a JSON header, the header, the arrays.

A checksum is stored next to the file. Arrays are read memory-mapped.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SMALL = 8 << 20
"""Files of up to this many bytes are verified completely when they are opened, which takes some milliseconds."""
DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)
"""The errors that reading a damaged file, and the arrays in it, may raise."""
_TYPES = {
    "I64": "<i8",
    "U64": "<u8",
    "I32": "<i4",
    "U32": "<u4",
    "F32": "<f4",
    "F16": "<f2",
    "U8": "|u1",
}
_METADATA = "__metadata__"

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(
    path: Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    about: Mapping[str, str] | None = None,
) -> None:
    """Write arrays and their checksum, and wait until they are on the disk.

    Args:
        about: texts to store with them.
    """
    kinds = {np.dtype(kind): name for name, kind in _TYPES.items()}
    header: dict[str, Any] = {_METADATA: dict(about)} if about else {}
    listed = sorted(arrays.items(), key=lambda one: -one[1].itemsize)
    at = 0
    for name, array in listed:
        header[name] = {
            "dtype": kinds[array.dtype],
            "shape": array.shape,
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    crc = 0
    with path.open("wb") as file:
        for part in (
            len(text).to_bytes(8, "little"),
            text,
            *(one for _, one in listed),
        ):
            plain = (
                part
                if isinstance(part, bytes)
                else np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
            )
            file.write(plain)
            crc = zlib.crc32(plain, crc)
        file.flush()
        os.fsync(file.fileno())
    _write_sum(path, crc)


def read_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Return the arrays of a file, memory-mapped, and the texts stored with them.

    Raises OSError, and ValueError, KeyError or TypeError for damage.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if size <= SMALL and not is_whole(path):
        raise ValueError("its bytes are not those that were written")
    start = 8 + int.from_bytes(mapped[:8], "little")
    header = json.loads(mapped[8:start]) if start <= len(mapped) else None
    if not isinstance(header, dict):
        raise ValueError(f"{path} is damaged")
    about = header.pop(_METADATA, {})
    arrays = {}
    for name, said in header.items():
        begin, end = said["data_offsets"]
        dtype = np.dtype(_TYPES[said["dtype"]])
        shape = tuple(map(int, said["shape"]))
        count = int(np.prod(shape, dtype=np.int64))
        if end - begin != count * dtype.itemsize or begin < 0 or count < 0:
            raise ValueError(f"{path} is damaged")
        arrays[name] = np.frombuffer(mapped, dtype, count, start + begin).reshape(shape)
    return arrays, {str(name): str(text) for name, text in about.items()}


def write_sum(path: Path) -> None:
    """Write the checksum of a file that this module has not written."""
    _write_sum(path, zlib.crc32(path.read_bytes()))


def is_whole(path: Path) -> bool:
    """Return whether a file matches its checksum."""
    sums = path.with_name(f"{path.name}.sum")
    expected = int(sums.read_bytes())
    return expected == zlib.crc32(path.read_bytes())


def _write_sum(path: Path, crc: int) -> None:
    with path.with_name(f"{path.name}.sum").open("wb") as file:
        file.write(b"%d" % crc)
        file.flush()
        os.fsync(file.fileno())
