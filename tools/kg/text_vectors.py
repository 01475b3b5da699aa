"""Stores the vectors of a graph's texts beside it, so that each is embedded once, by whichever command comes first.

One file for each use and embedder: an array of rows, each with a digest of its text, a checksum and the vector. Texts
that are new are added, those that are gone are removed; a damaged row is embedded again.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.errors import StoreError
from ras_agent.protocols import Embedder
from ras_agent.tools.store.durable import save_array

_AT_ONCE = 1024
_SECONDS = 60.0
_Rows = npt.NDArray[Any]


def stored_vectors(
    folder: Path | None,
    use: str,
    embedder: Embedder,
    texts: Sequence[str],
    *,
    seconds: float = _SECONDS,
    part: bool = False,
) -> Floats:
    """Return unit vectors of `texts`, shape (len(texts), dimension), float32; embed those that are not stored.

    folder: of the graph; None for one in memory, for which nothing is stored. use: a word, part of the file's name.
    seconds: what is embedded is stored at least that often, so that a long run that is interrupted can go on.
    part: whether the graph has other texts too, whose vectors stay stored.
    """
    path = None if folder is None else folder / f"{use}-{_digest(embedder.name).hex()[:12]}.npy"
    keys = [_digest(text) for text in texts]
    known = _read(path) if path is not None else {}
    found = {key: known[key] for key in keys if key in known}
    stored = known if part else found
    if len(found) < len(set(keys)) and any(len(vector) != embedder.dimension for vector in stored.values()):
        found = {}  # of another model that had the same name
    elif part:
        found = dict(known)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    if missing or len(found) < len(known):
        for key, vector in _embedded(embedder, missing, found, path, seconds):
            found[key] = vector
        _store(path, found)
    if not texts:
        return np.empty((0, embedder.dimension), dtype=np.float32)
    return np.stack([found[key] for key in keys])


def _embedded(
    embedder: Embedder, missing: dict[bytes, str], found: dict[bytes, Floats], path: Path | None, seconds: float
) -> Any:
    """Yield digests and vectors of `missing` texts; store what was found every now and then."""
    saved = time.monotonic()
    keys = list(missing)
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        yield from zip(some, np.asarray(embedder.embed([missing[key] for key in some]), dtype=np.float32), strict=True)
        if begin + _AT_ONCE < len(keys) and time.monotonic() - saved >= seconds:
            _store(path, found)
            saved = time.monotonic()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _row(width: int) -> np.dtype[Any]:
    return np.dtype([("digest", "u1", 16), ("sum", "<u4"), ("vector", "<f4", (width,))])


def _read(path: Path) -> dict[bytes, Floats]:
    """Return the stored vectors by their texts' digests, without rows that are damaged; none of an unreadable file."""
    try:
        rows = np.load(path, allow_pickle=False)
        if rows.ndim != 1 or rows.dtype != _row(rows.dtype["vector"].shape[0]):
            return {}
    except (OSError, ValueError, KeyError, IndexError, EOFError):
        return {}
    whole = [zlib.crc32(row["vector"].tobytes()) == row["sum"] for row in rows]
    return {row["digest"].tobytes(): row["vector"] for row, good in zip(rows, whole, strict=True) if good}


def _store(path: Path | None, found: dict[bytes, Floats]) -> None:
    """Replace the file by what was found; warn where it cannot be written."""
    if path is None or not found:
        return
    rows = np.empty(len(found), dtype=_row(len(next(iter(found.values())))))
    rows["digest"] = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, 16)
    rows["vector"] = np.stack(list(found.values()))
    rows["sum"] = [zlib.crc32(vector.tobytes()) for vector in rows["vector"]]
    fresh = path.with_name(f"{re.sub(r'[.]npy$', '', path.name)}.{os.getpid()}-{get_ident()}.new")
    try:
        save_array(fresh, rows)
        fresh.replace(path)
    except (StoreError, OSError) as error:
        warnings.warn(f"vectors are not stored and will be made again next time: {error}", RuntimeWarning, stacklevel=4)
