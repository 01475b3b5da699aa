"""An index's folder: opening the generation that is current, writing the next, clearing away the past."""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import numpy as np

from ras_agent.errors import IndexExists, IndexMismatch
from ras_agent.tools.index.durable import sync_file
from ras_agent.tools.index.manifest import NAME, Files, Manifest, read_manifest, write_manifest
from ras_agent.tools.index.passage_log import FilePassageLog
from ras_agent.tools.index.row_table import ROW, Table, fingerprint
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_log import FileVectorLog

__all__ = ["exists", "open_folder", "start_folder", "write_folder"]

_OURS = re.compile(r"(?:passages|vectors|rows|bm25)-\d+(?:\.\w+)?|index\.json\.new")
_SLACK = 1 << 16  # a log is rewritten when more than half of it, and of this, is of deleted passages


def exists(folder: Path) -> bool:
    return (folder / NAME).is_file()


def open_folder(folder: Path) -> Snapshot:
    """The current generation. Raises IndexNotFound, or IndexMismatch for a damaged index or one of another version."""
    while True:
        manifest = read_manifest(folder)
        try:
            return _load(folder, manifest)
        except FileNotFoundError as error:
            if read_manifest(folder).generation == manifest.generation:
                raise IndexMismatch(f"{error.filename} is missing: build the index anew") from error
            # a writer committed and cleared away between our two reads: take its generation


def start_folder(folder: Path, manifest: Manifest) -> None:
    """Make `folder` and the empty generation that `manifest` describes.

    Raises IndexExists if it holds anything, or is a file.
    """
    if exists(folder):
        raise IndexExists(f"{folder} holds an index already: open it, or delete it first")
    if folder.exists() and not folder.is_dir():
        raise IndexExists(f"{folder} is a file: choose another place for the index")
    files = Files(rows="rows-0.npy")
    folder.mkdir(parents=True, exist_ok=True)
    # files of an index that was never committed may lie there; anything else could one day be cleared away
    if foreign := [path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name)]:
        raise IndexExists(f"{folder} holds something else, {foreign[0]!r}: choose another place for the index")
    (folder / files.passages).write_bytes(b"")
    (folder / files.vectors).write_bytes(b"")
    np.save(folder / files.rows, np.empty(0, dtype=ROW), allow_pickle=False)
    write_manifest(folder, replace(manifest, files=files, fingerprint=fingerprint(np.empty(0, dtype=ROW))))


def write_folder(folder: Path, snapshot: Snapshot, *, build: bool, erase: bool = False) -> Snapshot:
    """Commit `snapshot`, whose logs lie in `folder`, with its search structures if `build`, and open it from there.

    erase: what `snapshot` does not hold stays in no file; else it stays in the logs until they are mostly dead.
    """
    generation = snapshot.manifest.generation
    table = snapshot.table.copy()
    files = Files(
        passages=_compact_passages(folder / f"passages-{generation}.jsonl", snapshot, table, erase),
        vectors=_compact_vectors(folder / f"vectors-{generation}.f32", snapshot, table, erase),
        rows=f"rows-{generation}.npy",
    )
    with (folder / files.rows).open("wb") as file:
        np.save(file, table, allow_pickle=False)
    sync_file(folder / files.rows)
    if build:
        files = replace(files, bm25=f"bm25-{generation}")
        snapshot.bm25().save(folder / files.bm25)
        if snapshot.vector_log:
            files = replace(files, faiss=f"vectors-{generation}.faiss")
            snapshot.vectors().save(folder / files.faiss)
    manifest = replace(snapshot.manifest, files=files)
    write_manifest(folder, manifest)
    _clear_away(folder, files)
    return _load(folder, manifest)


def _load(folder: Path, manifest: Manifest) -> Snapshot:
    """Raises FileNotFoundError if a file is gone, IndexMismatch if one does not hold what the manifest says."""
    files = manifest.files
    try:
        table = np.load(folder / files.rows, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except ValueError as error:
        raise IndexMismatch(f"{folder / files.rows} is damaged ({error}): build the index anew") from error
    passage_log = FilePassageLog(folder / files.passages)
    vector_log = FileVectorLog(folder / files.vectors, manifest.embedder.dimension) if manifest.embedder else None
    whole = table.dtype == ROW and len(table) == manifest.passages and fingerprint(table) == manifest.fingerprint
    if whole and len(table):
        whole = int((table["start"] + table["size"]).max()) <= passage_log.size
        whole = whole and (vector_log is None or int(table["vector"].max()) < vector_log.size)
    if not whole:
        raise IndexMismatch(f"{folder} does not hold the {manifest.passages} passages it says: build it anew")
    return Snapshot(manifest, table, passage_log, vector_log, Tokeniser.from_dict(manifest.tokeniser), folder)


def _compact_passages(path: Path, snapshot: Snapshot, table: Table, erase: bool) -> str:
    """The name of the passage log: a new one at `path`, and `table` pointing to it, if the old is mostly dead."""
    log = cast(FilePassageLog, snapshot.passage_log)
    if log.size <= _most_dead(int(table["size"].sum()), erase):
        return log.path.name
    path.write_bytes(b"")
    table["start"], table["size"] = FilePassageLog(path).append(snapshot.passages)
    return path.name


def _compact_vectors(path: Path, snapshot: Snapshot, table: Table, erase: bool) -> str:
    """The same for vectors."""
    if snapshot.vector_log is None:
        return Files().vectors
    log = cast(FileVectorLog, snapshot.vector_log)
    used, table_vectors = np.unique(table["vector"], return_inverse=True)  # equal texts share one
    if log.size <= _most_dead(len(used), erase):
        return log.path.name
    path.write_bytes(b"")
    FileVectorLog(path, log.dimension).append(log.take(used))
    table["vector"] = table_vectors
    return path.name


def _most_dead(alive: int, erase: bool) -> int:
    """How large a log may be, of which `alive` is in use."""
    return alive if erase else 2 * alive + _SLACK


def _clear_away(folder: Path, files: Files) -> None:
    """Delete what no generation after this one needs; whoever has it mapped keeps it."""
    current = set(asdict(files).values())
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in current:
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except OSError:
                continue  # in use, where files in use cannot be deleted: the next write tries again
