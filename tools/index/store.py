"""Holds a searchable collection of passages, in memory or in a folder on disk.

On disk passages and vectors are appended to logs, everything else is written to new files, and replacing index.json
commits. So an interrupted write leaves the index as it was, and whoever reads goes on reading what they opened. A write
that ends leaves nothing in any file but what the index holds; what an interrupted one left, the next write erases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock, RLock
from typing import NamedTuple, Self

import numpy as np

from ras_agent.errors import IndexNotFound
from ras_agent.filters import ALL, Filter
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.durable import writer_lock
from ras_agent.tools.index.logs import MemoryPassageLog, MemoryVectorLog
from ras_agent.tools.index.manifest import NAME, read_manifest
from ras_agent.tools.index.manifest_embedder import begin_manifest, check_embedder, remembered_embedder
from ras_agent.tools.index.merge import Changes, merge, without_documents
from ras_agent.tools.index.part import Columns, PartOfSnapshot
from ras_agent.tools.index.row_table import ROW, Table, fingerprint, hash_of
from ras_agent.tools.index.snapshot import (
    Snapshot,
    clear_away,
    exists,
    is_finished,
    open_folder,
    start_folder,
    write_folder,
)
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings, require_faiss

_GRAPH = "kg/kg.json"
"""what a write to the knowledge graph beside an index replaces"""


class Stamp(NamedTuple):
    """Tells two states of an index's folder apart: the inode, time and size of what a write replaces."""

    passages: tuple[int, ...]
    graph: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Look at the folder. Raises IndexNotFound if there is no index any more."""
        found = [_looked_at(folder / name) for name in (NAME, _GRAPH)]
        if not found[0]:
            raise IndexNotFound(f"{folder} holds no index any more: index its files again, `ras-agent index`")
        return cls(*found)

    def __str__(self) -> str:
        return "-".join(format(number, "x") for number in (*self.passages, *self.graph))


def _looked_at(path: Path) -> tuple[int, ...]:
    try:
        seen = path.stat()
    except FileNotFoundError:
        return ()
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


class PassageIndex:
    """Holds passages in a fixed order with a BM25 matrix and, given an embedder, a vector index.

    Made by `create`, `open` or `in_memory`. One process may write while others read; a second writer waits. Retrievers
    search the passages that were there when they were made; `refresh` takes what others have written since.
    """

    filter = ALL
    """admits all that this index shows; see `within`"""

    def __init__(self, snapshot: Snapshot, embedder: Embedder | None, path: Path | None = None) -> None:
        self.path = path
        self.snapshot = snapshot
        self._embedder = embedder
        self._lock = RLock()
        self._in_batch = False
        self._whole: PassageIndex | None = None  # what this is a view of
        self._opening = Lock()
        self._seen: Stamp | None = None
        self._columns: Columns | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        embedder: object = None,
        *,
        tokeniser: Tokeniser | None = None,
        bm25: BM25Parameters | None = None,
        vectors: VectorSettings | None = None,
    ) -> Self:
        """Make an empty index in the folder `path`, which is created.

        embedder: None for BM25 alone, or what resolve_embedder takes. Its name and dimension are stored in the index.
        Raises IndexExists if there is one already, or anything else.
        """
        path = Path(path)
        resolved, manifest = begin_manifest(embedder, tokeniser, bm25, vectors)
        start_folder(path, manifest)
        return cls(open_folder(path), resolved, path)

    @classmethod
    def open(cls, path: str | Path, embedder: object = None) -> Self:
        """Open the index in the folder `path`, its files memory-mapped.

        Without `embedder`, the one named in the index is loaded by that name when first needed.
        Raises IndexNotFound, or IndexMismatch for vectors of another embedder, another version or a damaged index.
        """
        path = Path(path)
        snapshot = open_folder(path)
        resolved = None if embedder is None else resolve_embedder(embedder)
        if resolved is not None:
            check_embedder(snapshot.manifest, resolved, str(path))
        return cls(snapshot, resolved, path)

    @classmethod
    def in_memory(
        cls,
        passages: Iterable[Passage] = (),
        embedder: object = None,
        *,
        tokeniser: Tokeniser | None = None,
        bm25: BM25Parameters | None = None,
        vectors: VectorSettings | None = None,
    ) -> Self:
        """Make an index that lives as long as the process; see `create`."""
        resolved, manifest = begin_manifest(embedder, tokeniser, bm25, vectors)
        vector_log = MemoryVectorLog(manifest.embedder.dimension) if manifest.embedder else None
        tokeniser = tokeniser or Tokeniser()
        index = cls(Snapshot(manifest, np.empty(0, dtype=ROW), MemoryPassageLog(), vector_log, tokeniser), resolved)
        index.add(passages)
        return index

    @staticmethod
    def exists(path: str | Path) -> bool:
        """Return whether the folder `path` holds an index."""
        return exists(Path(path))

    def __len__(self) -> int:
        return len(self.snapshot.passages)

    def __str__(self) -> str:
        return str(self.path or "an index in memory")

    @property
    def fingerprint(self) -> str:
        """Return a digest of ids and texts in corpus order: equal for indexes of the same corpus."""
        return self.snapshot.manifest.fingerprint

    @property
    def passages(self) -> Sequence[Passage]:
        """Return the passages in corpus order; on disk they are read one by one, when asked for."""
        return self.snapshot.passages

    def get(self, passage_id: str) -> Passage | None:
        """Return the passage with that id, None if there is none."""
        snapshot = self.snapshot
        rows = np.flatnonzero(snapshot.table["id"] == np.uint64(hash_of(passage_id)))
        found = (snapshot.passages[int(row)] for row in rows)
        return next((passage for passage in found if passage.id == passage_id), None)

    def document_ids(self) -> tuple[str, ...]:
        """Return the ids of all documents in corpus order; passages without one belong to none."""
        snapshot = self.snapshot
        _, first = np.unique(snapshot.table["document"], return_index=True)
        return tuple(name for row in np.sort(first).tolist() if (name := snapshot.passages[row].document_id))

    @property
    def embedder(self) -> Embedder | None:
        """Return what queries and new passages are embedded with; None for an index without vectors.

        Raises IndexMismatch if the index was built with an embedder that has to be given to `open`.
        """
        if self._whole is not None:
            return self._whole.embedder
        if self._embedder is None and self.snapshot.manifest.embedder:
            self._embedder = remembered_embedder(self.snapshot.manifest, str(self.path))
        return self._embedder

    def within(self, filter: object = None) -> PassageIndex:
        """Return a view of the passages that are there now and that `filter` admits, as if the index held no others.

        A view can be searched like any index, and does not change. Raises FilterError.
        """
        chosen, snapshot = Filter.of(filter), self.snapshot
        view = PassageIndex(snapshot, None, self.path)
        view._whole, view._columns = self._whole or self, self._columns_of(snapshot)
        view.filter = self.filter.both(chosen)
        if chosen:
            view.snapshot = PartOfSnapshot(snapshot, view._columns.rows(chosen))
            view._columns = None
        return view

    @property
    def commit(self) -> str:
        """Name the state that is searched: another one after each write, and after the graph beside it was written."""
        if self.path is None:
            return str(self.snapshot.manifest.generation)
        with self._opening:
            return "" if self._seen is None else str(self._seen)

    def refresh(self) -> None:
        """Take the last commit, if somebody has written since; costs two looks at files if nobody has.

        Raises IndexNotFound if the index is gone, IndexMismatch if it is damaged or now has other vectors than the
        embedder that was given to `open`.
        """
        if self.path is None or self._whole is not None:
            return
        with self._opening:
            seen = Stamp.of(self.path)
            if seen == self._seen:
                return
            if self._seen is None or seen.passages != self._seen.passages:
                manifest = read_manifest(self.path)
                if manifest != self.snapshot.manifest:
                    if manifest.embedder != self.snapshot.manifest.embedder and self._embedder is not None:
                        self._embedder = None
                    self.snapshot = open_folder(self.path)
            self._seen = seen

    def _columns_of(self, snapshot: Snapshot) -> Columns:
        columns = self._columns  # another thread may put those of another commit there at any time
        if columns is None or columns.snapshot is not snapshot:
            self._columns = columns = Columns(snapshot, columns)
        return columns

    def add(self, passages: Iterable[Passage]) -> Changes:
        """Append passages. Raises ValueError for an id that is given twice or already there; then nothing is added."""
        batch = list(passages)
        return self._write(
            lambda now: merge(now, batch, self._writing_embedder(), replace_existing=False, whole_documents=False)
        )

    def upsert(self, passages: Iterable[Passage], *, whole_documents: bool = False) -> Changes:
        """Add passages, replacing those with the same id. Unchanged ones are not written, no text is embedded twice.

        whole_documents: the passages are all there is of their documents; others of the same documents are deleted.
        """
        batch = list(passages)
        return self._write(
            lambda now: merge(
                now, batch, self._writing_embedder(), replace_existing=True, whole_documents=whole_documents
            )
        )

    def delete_document(self, document_id: str) -> Changes:
        """Delete a document's passages; no error if there are none."""
        return self.delete_documents([document_id])

    def delete_documents(self, document_ids: Iterable[str]) -> Changes:
        """Delete several documents' passages in one write, and their texts and vectors from every file.

        Inside a batch, files are rewritten at its end.
        """
        names = list(document_ids)
        return self._write(lambda now: without_documents(now, names))

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make many writes, each durable when it returns, that build the search structures once, at the end.

        If the process stops before the end, nothing written is lost: what is not built yet is built in memory when
        searched, and on disk by the next write or batch, which also erases what was deleted.
        """
        with self._lock:
            self._in_batch = True
            try:
                yield self
            finally:
                self._in_batch = False
            self.finish()

    def is_finished(self) -> bool:
        """Return whether no interrupted write has left anything undone."""
        return self.path is None or is_finished(self.snapshot)

    def finish(self) -> None:
        """Finish what interrupted writes left undone: build, erase what was deleted, clear superseded files away."""
        self._write(lambda now: (now.table, Changes(unchanged=len(now.table))))

    def _write(self, change: Callable[[Snapshot], tuple[Table, Changes]]) -> Changes:
        if self._whole is not None:
            raise TypeError("a view of an index cannot be written to: write to the index itself")
        with self._lock, writer_lock(self.path / "writer.lock") if self.path else nullcontext():
            if self.path and read_manifest(self.path).generation != self.snapshot.manifest.generation:
                self.snapshot = open_folder(self.path)  # another process wrote since
            before = self.snapshot
            table, changes = change(before)
            build = not self._in_batch
            if not changes and not (self.path and build and not is_finished(before)):
                if self.path and build:
                    clear_away(self.path, before.manifest.files)
                return changes
            manifest = replace(
                before.manifest,
                generation=before.manifest.generation + 1,
                passages=len(table),
                documents=len(np.unique(table["document"][table["document"] != np.uint64(hash_of(""))])),
                fingerprint=fingerprint(table),
            )
            after = Snapshot(manifest, table, before.passage_log, before.vector_log, before.tokeniser)
            self.snapshot = write_folder(self.path, after, build=build) if self.path else after
            return changes

    def _writing_embedder(self) -> Embedder | None:
        embedder = self.embedder
        if embedder is not None:
            require_faiss()  # before hours of embedding, not after
        return embedder
