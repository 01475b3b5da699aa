"""Weights that the package ships: safetensors files read into NumPy arrays, without torch and without pickle."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import WeightsError

_TYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}


def read_safetensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a safetensors file by name.

    Raises WeightsError for a file that is none, or of other types.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(f"{path}: weights cannot be read ({error.strerror}); install ras-agent again") from error
    try:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        body = memoryview(data)[8 + size :]
        return {
            name: np.frombuffer(body[slice(*entry["data_offsets"])], _TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()
        }
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"{path}: not a safetensors file of {', '.join(_TYPES)} arrays: {error}") from error


def write_safetensors(path: Path, arrays: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata; the bytes depend on nothing else. Raises KeyError for a type that is not written."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset, bodies = 0, []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        body = array.tobytes()
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(body)],
        }
        offset += len(body)
        bodies.append(body)
    head = json.dumps(header, sort_keys=True).encode()
    head += b" " * (-len(head) % 8)  # the format aligns its data to eight bytes
    path.write_bytes(b"".join((struct.pack("<Q", len(head)), head, *bodies)))
