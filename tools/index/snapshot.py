"""Reads one generation of an index from memory or from a folder, and writes the next one to a folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast

import numpy as np

from ras_agent.errors import IndexExists, IndexMismatch
from ras_agent.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Matrix, build_matrix
from ras_agent.tools.index.checksums import check_file, file_sums, load_array, reading
from ras_agent.tools.index.durable import save_array, sync_folder
from ras_agent.tools.index.logs import FilePassageLog, FileVectorLog, PassageLog, Places, StoredPassages, VectorLog
from ras_agent.tools.index.manifest import ANEW, NAME, Files, Manifest, read_manifest, write_manifest
from ras_agent.tools.index.row_table import ROW, Table, fingerprint, indexed_text
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorIndex

_T = TypeVar("_T")

_OURS = re.compile(r"(?:passages|vectors|rows|bm25)-\d+(?:\.\w+)?|index\.json\.new")


class Snapshot:
    """Holds passages, their BM25 matrix and their vector index; it does not change when the index is written to.

    The matrix and the vector index are loaded or built when first asked for.
    """

    def __init__(
        self,
        manifest: Manifest,
        table: Table,
        passage_log: PassageLog,
        vector_log: VectorLog | None,
        tokeniser: Tokeniser,
        folder: Path | None = None,
    ) -> None:
        self.manifest, self.table, self.tokeniser = manifest, table, tokeniser
        self.passage_log, self.vector_log = passage_log, vector_log
        self.passages: Sequence[Passage] = StoredPassages(
            passage_log, Places(table["start"], table["size"], table["line_sum"])
        )
        self._folder = folder
        self._bm25: BM25Matrix | None = None
        self._vectors: VectorIndex | None = None
        self._lock = Lock()

    def bm25(self) -> BM25Matrix:
        """Return the BM25 matrix, a row for each passage."""
        with self._lock:
            if self._bm25 is None:
                self._bm25 = self._saved(BM25Matrix.load, self.manifest.files.bm25) or build_matrix(
                    map(indexed_text, self.passages), self.tokeniser, self.manifest.bm25
                )
            return self._bm25

    def vectors(self) -> VectorIndex:
        """Return the vector index, a number for each passage. Raises IndexMismatch for an index without vectors."""
        with self._lock:
            if self.vector_log is None:
                raise IndexMismatch(
                    "the index holds no vectors: make another with an embedder (`ras-agent index FILES --out NEW.index "
                    "--embedder minilm`, PassageIndex.create(path, embedder='minilm')), or retrieve by bm25"
                )
            if self._vectors is None:
                self._vectors = self._saved(VectorIndex.load, self.manifest.files.faiss) or VectorIndex.build(
                    self.vector_log.take(self.table["vector"], self.table["vector_sum"]), self.manifest.vectors
                )
            return self._vectors

    def _saved(self, load: Callable[[Path], _T], name: str) -> _T | None:
        """Return what the file `name` holds; None if there is none, so that it has to be built from the logs."""
        if self._folder is None or not name:
            return None
        path = self._folder / name
        try:
            self._check(name)
            with reading(path, made_anew(path)):
                return load(path)
        except FileNotFoundError:
            return None  # a later generation took its place

    def is_built(self) -> bool:
        """Return whether the files of the search structures are there, and whole as far as that is quick to tell."""
        names = [name for name in (self.manifest.files.bm25, self.manifest.files.faiss) if name]
        try:
            for name in names:
                self._check(name)
        except (FileNotFoundError, IndexMismatch):
            return False
        return bool(self.manifest.files.bm25)

    def _check(self, name: str) -> None:
        assert self._folder
        for part, expected in self.manifest.sums.items():
            if Path(part).parts[0] == name:
                check_file(self._folder / part, expected, made_anew(self._folder / name))


def made_anew(path: Path) -> str:
    """Return what mends a damaged search structure, whose file or folder is `path`."""
    return f"delete {path}, which is then made anew from what the index holds"


def exists(folder: Path) -> bool:
    """Return whether `folder` holds an index."""
    return (folder / NAME).is_file()


def open_folder(folder: Path) -> Snapshot:
    """Return the current generation. Raises IndexNotFound, or IndexMismatch if it is damaged or of another version."""
    while True:
        manifest = read_manifest(folder)
        try:
            return _load(folder, manifest)
        except FileNotFoundError as error:
            if read_manifest(folder).generation == manifest.generation:
                raise IndexMismatch(f"{error.filename} is missing: {ANEW.format(folder=folder)}") from error
            # a writer committed and deleted the old files between our two reads: take its generation


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
    # files of an index that was never committed may be there; anything else could one day be deleted
    names = [path.name for path in folder.iterdir()]
    if (ours := [name for name in names if _OURS.fullmatch(name)]) and len(ours) < len(names):
        raise IndexMismatch(f"{folder / NAME} is missing beside {ours[0]!r}: {ANEW.format(folder=folder)}")
    if foreign := [name for name in names if not _OURS.fullmatch(name)]:
        raise IndexExists(f"{folder} holds something else, {foreign[0]!r}: choose another place for the index")
    (folder / files.passages).write_bytes(b"")
    (folder / files.vectors).write_bytes(b"")
    save_array(folder / files.rows, np.empty(0, dtype=ROW))
    sums = file_sums(folder, [files.rows])
    write_manifest(folder, replace(manifest, files=files, sums=sums, fingerprint=fingerprint(np.empty(0, dtype=ROW))))


def write_folder(folder: Path, snapshot: Snapshot, *, build: bool) -> Snapshot:
    """Commit `snapshot`, whose logs are in `folder`, and open it from there.

    build: with its search structures, and with logs that hold nothing but its passages and vectors. Without, a log may
    also hold what was deleted, replaced, or left by an interrupted write; see `is_finished`.
    """
    generation = snapshot.manifest.generation
    table = snapshot.table.copy()
    logs = _copy_logs(folder, snapshot, table) if build and not _is_exact(snapshot) else _logs(snapshot)
    files = replace(logs, rows=f"rows-{generation}.npy")
    save_array(folder / files.rows, table)
    if build:
        files = replace(files, bm25=f"bm25-{generation}")
        snapshot.bm25().save(folder / files.bm25)
        if snapshot.vector_log:
            files = replace(files, faiss=f"vectors-{generation}.faiss")
            snapshot.vectors().save(folder / files.faiss)
    sums = file_sums(folder, filter(None, (files.rows, files.bm25, files.faiss)))
    manifest = replace(snapshot.manifest, files=files, sums=sums)
    sync_folder(folder)  # the names of the new files are on the disk before the manifest refers to them
    write_manifest(folder, manifest)
    clear_away(folder, files)
    return _load(folder, manifest)


def is_finished(snapshot: Snapshot) -> bool:
    """Return whether a folder's snapshot has its search structures, and its logs hold nothing else."""
    return snapshot.is_built() and _is_exact(snapshot)


def clear_away(folder: Path, files: Files) -> None:
    """Delete files of other generations than that of `files`; readers that have mapped them can still read."""
    current = set(asdict(files).values())
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in current:
            try:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            except PermissionError:
                continue  # in use, where files in use cannot be deleted: the next write tries again


def _load(folder: Path, manifest: Manifest) -> Snapshot:
    """Open a generation. Raises FileNotFoundError for a missing file, IndexMismatch for one unlike the manifest."""
    files = manifest.files
    remedy = ANEW.format(folder=folder)
    check_file(folder / files.rows, manifest.sums.get(files.rows), remedy, whole=True)
    table = load_array(folder / files.rows, remedy)
    passage_log = FilePassageLog(folder / files.passages)
    vector_log = FileVectorLog(folder / files.vectors, manifest.embedder.dimension) if manifest.embedder else None
    if len(table):
        for path, there, needed in (
            (folder / files.passages, passage_log.size, int((table["start"] + table["size"]).max())),
            (folder / files.vectors, vector_log.size if vector_log else 0, int(table["vector"].max()) + 1),
        ):
            if there < needed:
                raise IndexMismatch(f"{path} is damaged (its end is missing): {remedy}")
    return Snapshot(manifest, table, passage_log, vector_log, Tokeniser.from_dict(manifest.tokeniser), folder)


def _logs(snapshot: Snapshot) -> Files:
    """Return the names of the logs of a snapshot in a folder."""
    files = Files(passages=cast(FilePassageLog, snapshot.passage_log).path.name)
    if snapshot.vector_log is None:
        return files
    return replace(files, vectors=cast(FileVectorLog, snapshot.vector_log).path.name)


def _is_exact(snapshot: Snapshot) -> bool:
    """Return whether the logs of a snapshot in a folder are as large as the passages and vectors that are in use."""
    passages = cast(FilePassageLog, snapshot.passage_log)
    exact = passages.path.stat().st_size == int(snapshot.table["size"].sum())
    if snapshot.vector_log is not None:
        vectors = cast(FileVectorLog, snapshot.vector_log)
        used = len(np.unique(snapshot.table["vector"]))  # equal texts share one
        exact = exact and vectors.path.stat().st_size == 4 * vectors.dimension * used
    return exact


def _copy_logs(folder: Path, snapshot: Snapshot, table: Table) -> Files:
    """Copy what is in use of the logs to new ones, point `table` there, and return their names."""
    generation = snapshot.manifest.generation
    files = Files(passages=f"passages-{generation}.jsonl")
    passages = cast(FilePassageLog, snapshot.passage_log)
    places = Places(table["start"], table["size"], table["line_sum"])
    table["start"] = passages.copy(places, folder / files.passages).starts
    if snapshot.vector_log is not None:
        files = replace(files, vectors=f"vectors-{generation}.f32")
        (folder / files.vectors).write_bytes(b"")
        used, first, numbers = np.unique(table["vector"], return_index=True, return_inverse=True)
        vectors = FileVectorLog(folder / files.vectors, snapshot.vector_log.dimension)
        vectors.append(snapshot.vector_log.take(used, table["vector_sum"][first]))
        table["vector"] = numbers
    return files
