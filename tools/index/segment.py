"""Stores searchable arrays of some consecutive cells of an index: a cache, which can be made from the database again.

    cache/<epoch>/cells-<first>-<end>/arrays     columns of the rows, postings of terms and of metadata
                                     vectors     FAISS's index, if the index has vectors

A write makes a segment for its new cells, and joins it with segments that are not much larger, so that there are
few segments and each passage is joined with others only a logarithmic number of times. A segment that contains
passages deleted since is made again without them when the index is compacted.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.tools.index.passages import COLUMNS, damaged
from ras_agent.tools.index.postings import Postings
from ras_agent.tools.index.vector_index import VectorIndex, VectorSettings
from ras_agent.tools.store import array_file
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.durable import sync_folder, writing
from ras_agent.tools.store.passages import SearchedColumns

SAVED_FROM = 256
"""The number of passages from which a segment is saved; smaller ones are read from the database just as quickly."""
_FACTOR = 4
_ARRAYS = "arrays"
_VECTORS = "vectors"
_IDENTITY = 3 * 8
"""The number of bytes of the keys of a row that are the hashes of id, document and text."""
_NAME = re.compile(r"cells-(\d+)-(\d+)")

ReadVectors = Callable[[Ints], Floats]


@dataclass
class Segment:
    """Holds arrays of the cells from `first` up to `end`, with a slot for each cell that was a passage when they were
    made.
    """

    first: int
    end: int
    columns: Mapping[str, npt.NDArray[Any]]
    """(n,) each, by name."""
    terms: Postings
    fields: Postings
    folder: Path | None = None
    """Where the segment is saved; None if it is not."""
    _vectors: VectorIndex | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.columns["cell"])

    def is_among(self, cells: Ints) -> npt.NDArray[np.bool_]:
        """Return for each slot whether its cell is among `cells`."""
        return np.isin(self.columns["cell"], cells)

    def vectors(self, settings: VectorSettings, read: ReadVectors) -> VectorIndex:
        """Return the index of the vectors, numbered by slot: the saved one, or else one built from the vectors that
        `read` returns.
        """
        if self.vectors_at_hand() is None:
            self._vectors = VectorIndex.build(read(self.columns["cell"]), settings)
        assert self._vectors is not None
        return self._vectors

    def vectors_at_hand(self) -> VectorIndex | None:
        """Return the index of the vectors if it is in memory or saved; otherwise None."""
        if self._vectors is None and self.folder is not None:
            self._vectors = _load_vectors(self.folder / _VECTORS, len(self))
        return self._vectors

    def save(self, cache: Path) -> None:
        """Write the segment to a separate folder in `cache`. If this is interrupted, there is no such folder."""
        folder = cache / f"cells-{self.first}-{self.end}"
        fresh = cache / f"{folder.name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with writing(fresh):
            fresh.mkdir(parents=True)
            array_file.write_arrays(fresh / _ARRAYS, self._arrays())
        if self._vectors is not None:
            self._vectors.save(fresh / _VECTORS)
            with writing(fresh):
                array_file.write_sum(fresh / _VECTORS)
        sync_folder(fresh)
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(fresh, folder)
        sync_folder(cache)
        self.folder = folder

    def look(self) -> None:
        """Check whether the files were deleted, which may happen at any time. Then the segment counts as not saved."""
        if self.folder is not None and not (self.folder / _ARRAYS).exists():
            self.folder = None

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays = dict(self.columns)
        for name, postings in (("terms", self.terms), ("fields", self.fields)):
            arrays |= {
                f"{name}.{part}": array for part, array in postings._asdict().items()
            }
        return arrays


def from_rows(
    first: int, end: int, rows: SearchedColumns, database: Database
) -> Segment:
    """Build a segment from the rows in the cells from `first` up to `end` of a database. Raises IndexMismatch for a
    damaged row.
    """
    count = len(rows.cells)
    try:
        identity = b"".join([keys[:_IDENTITY] for keys in rows.keys])
        hashed = np.frombuffer(identity, "<u8").reshape(count, 3)
        fields = Postings.of_keys([keys[_IDENTITY:] for keys in rows.keys])
        terms = Postings.of_terms(rows.terms)
    except (ValueError, IndexError, TypeError) as error:
        raise damaged(database, f"terms of its passages: {error}") from error
    ids, documents, texts = np.ascontiguousarray(hashed.T)
    lengths = np.bincount(terms.slots, terms.counts, minlength=count)
    columns: dict[str, npt.NDArray[Any]] = {
        "cell": np.array(rows.cells, "<i8"),
        "place": np.array(rows.places, "<i8"),
        "id": ids,
        "document": documents,
        "text": texts,
        "length": lengths.astype("<i8"),
    }
    return Segment(first, end, columns, terms, fields)


def joined(
    segments: Sequence[Segment],
    dead: Ints,
    settings: VectorSettings | None,
    read: ReadVectors,
) -> Segment:
    """Join consecutive segments into one, without dead cells.

    If one of the segments has its vectors in memory or saved, those of the other segments are read and all are
    indexed; otherwise the vector index is built when it is needed.

    Args:
        dead: the cells of deleted passages.
        settings: how vectors are searched; None for an index without vectors.
        read: reads the vectors of cells.
    """
    living = [~one.is_among(dead) for one in segments]
    moves = []
    base = 0
    for mask in living:
        moves.append(np.where(mask, base + np.cumsum(mask) - 1, -1).astype(np.int32))
        base += int(mask.sum())
    columns = {
        name: np.concatenate(
            [
                one.columns[name][mask]
                for one, mask in zip(segments, living, strict=True)
            ]
        )
        for name in COLUMNS
    }
    terms, fields = (
        Postings.joined(
            [
                (getattr(one, name), moved)
                for one, moved in zip(segments, moves, strict=True)
            ]
        )
        for name in ("terms", "fields")
    )
    whole = Segment(segments[0].first, segments[-1].end, columns, terms, fields)
    if settings is None or not any(one.vectors_at_hand() for one in segments):
        return whole
    vectors = []
    for one, mask in zip(segments, living, strict=True):
        made = one.vectors_at_hand()
        if made is None:
            vectors.append(read(one.columns["cell"][mask]))
        else:
            vectors.append(made.vectors()[mask])
    whole._vectors = VectorIndex.build(np.concatenate(vectors), settings)
    return whole


def too_small(segments: Sequence[Segment]) -> int:
    """Return the position of the first segment to join with all that follow; the number of segments if none is joined."""
    count = len(segments)
    start = count
    total = 0
    for segment in reversed(segments):
        if start < count and len(segment) >= _FACTOR * max(total, 1):
            break
        start -= 1
        total += len(segment)
    return start if start < count - 1 else count


def saved_segments(cache: Path) -> dict[int, list[int]]:
    """Return the ends of the saved segments in a cache, the furthest first, by the cells at which they begin."""
    ends: dict[int, list[int]] = {}
    try:
        names = os.listdir(cache)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for name in names:
        if match := _NAME.fullmatch(name):
            ends.setdefault(int(match[1]), []).append(int(match[2]))
    return {first: sorted(found, reverse=True) for first, found in ends.items()}


def load(cache: Path, first: int, end: int) -> Segment | None:
    """Open a saved segment, memory-mapped; None if it is missing or damaged and has to be made again."""
    folder = cache / f"cells-{first}-{end}"
    try:
        arrays, _ = array_file.read_arrays(folder / _ARRAYS)
        columns = {name: arrays[name] for name in COLUMNS}
        terms = Postings(*(arrays[f"terms.{part}"] for part in Postings._fields))
        fields = Postings(*(arrays[f"fields.{part}"] for part in Postings._fields))
        saved = Segment(first, end, columns, terms, fields, folder)
        _check(saved)
        if len(terms.slots) < array_file.SMALL // 4:
            _check_slots(saved)
    except array_file.DAMAGE:
        return None
    return saved


def check_saved(cache: Path) -> list[tuple[Path, str]]:
    """Read all saved segments. Returns each file with its problem, "" for an undamaged file."""
    problems = []
    for first, ends in sorted(saved_segments(cache).items()):
        for end in ends:
            path = cache / f"cells-{first}-{end}" / _ARRAYS
            whole = load(cache, first, end)
            problem = _damage_of(path)
            if not problem and whole is None:
                problem = "its parts do not fit together"
            problems.append((path, problem))
            vectors = path.with_name(_VECTORS)
            if not os.path.lexists(vectors):
                continue
            problem = _damage_of(vectors)
            is_known = whole is not None and not problem
            if is_known and _load_vectors(vectors, len(whole or ())) is None:
                problem = "it cannot be read"
            problems.append((vectors, problem))
    return problems


def _damage_of(path: Path) -> str:
    """Return why a saved file is not as it was written, or "" if it is."""
    try:
        is_whole = array_file.is_whole(path)
    except (OSError, ValueError) as error:
        return str(error)
    return "" if is_whole else "its bytes are not those that were written"


def clear_away(cache: Path, keep: Iterable[Segment]) -> None:
    """Delete all segments except those in `keep`, and the remains of interrupted writes."""
    names = {one.folder.name for one in keep if one.folder is not None}
    for path in cache.iterdir() if cache.is_dir() else ():
        if path.name not in names:
            # files in use cannot be deleted on some systems: the next write tries again
            shutil.rmtree(path, ignore_errors=True)


def _check(saved: Segment) -> None:
    """Raise ValueError for arrays that do not fit together."""
    count = len(saved)
    if any(len(column) != count for column in saved.columns.values()):
        raise ValueError("its columns have different lengths")
    cells = saved.columns["cell"]
    if count and not saved.first <= int(cells[0]) <= int(cells[-1]) < saved.end:
        raise ValueError("it holds other cells than its folder's name states")
    for one in (saved.terms, saved.fields):
        sizes = {len(one.slots), len(one.counts), int(one.starts[-1])}
        if len(one.starts) != len(one.keys) + 1 or len(sizes) > 1:
            raise ValueError("its postings do not fit together")


def _check_slots(saved: Segment) -> None:
    for one in (saved.terms, saved.fields):
        lowest = one.slots.min(initial=0)
        highest = one.slots.max(initial=-1)
        if lowest < 0 or highest >= len(saved):
            raise ValueError("its postings name slots that do not exist")


def _load_vectors(path: Path, count: int) -> VectorIndex | None:
    try:
        if path.stat().st_size <= array_file.SMALL and not array_file.is_whole(path):
            return None
        index = VectorIndex.load(path)
    except (OSError, RuntimeError, ValueError):
        return None
    return index if index.count == count else None
