"""Holds a searchable collection of passages, in memory, in a folder on disk, or in PostgreSQL.

A write is a transaction of the database: readers see all of it or nothing, and a second writer waits for the first.
Searches read BM25's postings and vectors from segments, which are made from the database. In a folder, the segments are
saved next to the database and can be deleted at any time; otherwise each process has its own in memory. Deleted and
replaced passages disappear from answers with the commit. Their bytes disappear from the files of a folder when the
index is compacted: before the write returns, or later.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import Literal, Self

import numpy as np

from ras_agent.config.address import Address, place_of
from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.errors import IndexExists, IndexMismatch, StoreError
from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.text.normal_form import storable
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.index import segment
from ras_agent.tools.index.attached import all_attached
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.changes import Changes, delete, put
from ras_agent.tools.index.manifest import (
    begin_manifest,
    check_embedder,
    remembered_embedder,
)
from ras_agent.tools.index.missing import index_not_found
from ras_agent.tools.index.passages import hash_of
from ras_agent.tools.index.segment import Segment
from ras_agent.tools.index.snapshot import (
    PartOfSnapshot,
    Snapshot,
    folder_of,
    take_snapshot,
)
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.uploads import read_upload, uploaded_as
from ras_agent.tools.index.vector_index import VectorSettings, require_faiss
from ras_agent.tools.store.database import Database, driver_of
from ras_agent.tools.store.schema import VERSION, beginning
from ras_agent.tools.store.sqlite import ANEW, FILE, LOCKS, NEW, memory_database
from ras_agent.tools.store.transaction import Transaction

CACHE = "cache"
_EARLIER = "index.json"
_OURS = {FILE, *NEW, f"{FILE}-wal", f"{FILE}-shm", *LOCKS.values(), CACHE}
_RENUMBER_FROM = 1000
"""The number of deleted passages up to which their cells always stay listed; a longer list is dropped once it is longer
than the list of passages.
"""

Compact = Literal["now", "later"]
"""When the bytes of deleted text are removed: before a write returns ("now"), or with a later write that compacts."""


class PassageIndex:
    """Holds passages in a fixed order with a BM25 matrix, perhaps a vector index, and perhaps a knowledge graph.

    Made by `create`, `open` or `in_memory`. One process may write while others read; a second writer waits.
    Retrievers search the passages that existed when they were made; `refresh` takes later writes of other processes
    into account.
    """

    filter = ALL
    """The filter that admits the passages that this index shows; see `within`."""

    def __init__(
        self, database: Database, embedder: Embedder | None, path: Path | None = None
    ) -> None:
        """Open the index in a database.

        Args:
            embedder: embeds queries and new passages; by default the one that the index names.
            path: the folder of the index, if it has one.
        """
        self.database = database
        self.path = path
        self.cache = path / CACHE if path else None
        self.snapshot = self._committed = take_snapshot(database, self.cache)
        self._embedder = embedder
        self._lock = RLock()
        self._in_batch = False
        # the index of which this is a view, if it is a view
        self._whole: PassageIndex | None = None
        self._opening = Lock()
        self._seen: object = None
        self._rollbacks = database.rollbacks

    @classmethod
    def create(
        cls,
        place: str | Path | Address,
        embedder: object = None,
        *,
        tokeniser: Tokeniser | None = None,
        bm25: BM25Parameters | None = None,
        vectors: VectorSettings | None = None,
    ) -> Self:
        """Make an empty index in a folder, or at the address of a database, where its schema is created.

        Raises IndexExists if the place already holds an index or anything else.

        Args:
            embedder: any value that resolve_embedder takes; None for an index with only BM25. Its name and
                dimension are stored in the index.
            tokeniser: splits texts into terms; by default for English.
            bm25, vectors: the parameters of BM25 and of the vector search.
        """
        place = place_of(place)
        resolved, manifest = begin_manifest(embedder, tokeniser, bm25, vectors)
        if isinstance(place, Path):
            _check_free(place)
            place.mkdir(parents=True, exist_ok=True)
        driver_of(place).make(place, beginning(_epoch(), manifest.to_json()))
        return cls._at(place, resolved)

    @classmethod
    def open(cls, place: str | Path | Address, embedder: object = None) -> Self:
        """Open the index in a folder, or at the address of a database.

        Args:
            embedder: embeds queries and new passages; by default the one that the index names is loaded when it is
                first needed.

        Raises:
            IndexNotFound: if there is no index.
            IndexMismatch: for vectors of another embedder, another version or a damaged index.
            StoreError: for a database that cannot be reached.
        """
        place = place_of(place)
        if isinstance(place, Path) and not cls.exists(place):
            if (place / _EARLIER).exists():
                raise IndexMismatch(
                    f"{place} was made by an earlier version, this ras-agent reads version {VERSION}: "
                    f"{ANEW.format(folder=place)}"
                )
            raise index_not_found(place)
        resolved = None if embedder is None else resolve_embedder(embedder)
        index = cls._at(place, resolved)
        if resolved is not None:
            check_embedder(index.snapshot.manifest, resolved, str(place))
        return index

    @classmethod
    def _at(cls, place: Path | Address, embedder: Embedder | None) -> Self:
        return cls(
            database_at(place), embedder, place if isinstance(place, Path) else None
        )

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
        database = memory_database(beginning(_epoch(), manifest.to_json()))
        index = cls(database, resolved)
        index.add(passages)
        return index

    @staticmethod
    def exists(place: str | Path | Address) -> bool:
        """Return whether there is an index at a place. Raises StoreError for a database that cannot be reached."""
        place = place_of(place)
        return driver_of(place).exists(place)

    def __len__(self) -> int:
        return len(self.snapshot)

    def __str__(self) -> str:
        return self.database.where

    @property
    def fingerprint(self) -> str:
        """Return a digest of ids and texts in corpus order: equal for indexes of the same corpus."""
        return self.snapshot.fingerprint

    @property
    def passages(self) -> Sequence[Passage]:
        """Return the passages in corpus order; each is read when it is accessed."""
        return self.snapshot.passages

    def get(self, passage_id: str) -> Passage | None:
        """Return the passage with this id; None if the index does not contain it."""
        snapshot = self.snapshot
        rows = np.flatnonzero(snapshot.column("id") == np.uint64(hash_of(passage_id)))
        there = snapshot.passages.take(rows)
        name = storable(passage_id)
        return next((one for one in there if one and one.id == name), None)

    def uploaded(self, name: str) -> bytes | None:
        """Return a file exactly as it was sent to a server of this index; None if there is no such file.

        Raises TypeError for a view, which shows only passages.

        Args:
            name: the name as it was sent to the server; part/name if it was sent with a token that sees only a part
                of the index.
        """
        if self._whole is not None:
            raise TypeError(
                "a view of an index shows only passages: read the uploaded file from the index itself"
            )
        path = uploaded_as(name)
        return None if path is None else read_upload(self.database, path)

    def document_ids(self) -> tuple[str, ...]:
        """Return the ids of all documents in corpus order, without passages that have no document."""
        return tuple(self.document_files())

    def document_files(self) -> dict[str, str]:
        """Return the file of each document, by document id, in corpus order; "" if no file is known."""
        snapshot = self.snapshot
        _, first = np.unique(snapshot.column("document"), return_index=True)
        files: dict[str, str] = {}
        for passage in snapshot.passages.take(np.sort(first)):
            if passage and passage.document_id:
                files[passage.document_id] = str(passage.metadata.get("file", ""))
        return files

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder of queries and new passages; None for an index without vectors.

        Raises IndexMismatch if the index was built with an embedder that has to be given to `open`.
        """
        if self._whole is not None:
            return self._whole.embedder
        if self._embedder is None and self.snapshot.manifest.embedder:
            self._embedder = remembered_embedder(self.snapshot.manifest, str(self))
        return self._embedder

    def within(self, filter: object = None) -> PassageIndex:
        """Return a view of the current passages that `filter` admits, as if the index held no others. Raises
        FilterError.

        A view can be searched like any index, and does not change.
        """
        chosen = Filter.of(filter)
        snapshot = self.snapshot
        view = object.__new__(PassageIndex)
        view.__dict__ |= self.__dict__
        view._whole = self._whole or self
        view._lock = RLock()
        view._opening = Lock()
        view.filter = self.filter.both(chosen)
        view.snapshot = (
            PartOfSnapshot(snapshot, snapshot.rows(chosen)) if chosen else snapshot
        )
        return view

    @property
    def commit(self) -> str:
        """Return the name of the state that is searched. It changes with each write of passages or of the graph."""
        state = self.snapshot.state
        return f"{state.epoch:x}-{state.revision:x}"

    def refresh(self) -> None:
        """Load the last commit if another process has written since; otherwise only check that there is no later one.

        Raises IndexNotFound if the index no longer exists, and IndexMismatch if it is damaged or its vectors are
        now of another embedder than the one given to `open`.
        """
        if self._whole is not None or self.database.is_writing():
            return
        with self._opening:
            seen = self.database.state()
            if (
                seen == self._seen
                and seen is not None
                and self._rollbacks == self.database.rollbacks
            ):
                return
            now = self._take()
            # with a cache, the writer has joined and saved the segments
            if self.cache is None:
                self.snapshot = self._committed = now.with_segments(_joined(now))
            self._seen = seen

    def _take(self) -> Snapshot:
        """Load the last commit or, within a transaction of this thread, its uncommitted writes; return the snapshot."""
        writing = self.database.is_writing()
        if self._rollbacks != self.database.rollbacks:
            self._rollbacks = self.database.rollbacks
            # drop the writes of a transaction that was rolled back
            self.snapshot = self._committed
            self._committed.values.forget()
        now = take_snapshot(
            self.database, self.cache, self.snapshot if writing else self._committed
        )
        if now.manifest.embedder != self.snapshot.manifest.embedder:
            self._embedder = None
        self.snapshot = now
        if not writing:
            self._committed = now
        return now

    def add(self, passages: Iterable[Passage]) -> Changes:
        """Append passages. Raises ValueError for an id that is given twice or already stored; then nothing is added."""
        return self._put(passages, replace_existing=False, whole_documents=False)

    def upsert(
        self, passages: Iterable[Passage], *, whole_documents: bool = False
    ) -> Changes:
        """Add passages, which replace stored ones with the same id. Unchanged passages are not written or embedded
        again.

        Args:
            whole_documents: whether the passages are complete documents, so that other stored passages of these are
                deleted.
        """
        return self._put(
            passages, replace_existing=True, whole_documents=whole_documents
        )

    def _put(self, passages: Iterable[Passage], **how: bool) -> Changes:
        batch = list(passages)
        return self._write(
            lambda transaction, now: put(
                transaction, now, batch, self._writing_embedder(), **how
            )
        )

    def delete_document(self, document_id: str) -> Changes:
        """Delete a document's passages, if it has any."""
        return self.delete_documents([document_id])

    def delete_documents(
        self, document_ids: Iterable[str], *, compact: Compact = "now"
    ) -> Changes:
        """Delete the passages of several documents in one write, with the parts of the graph that are based only on
        them.

        Args:
            compact: when their bytes are removed from the files.
        """
        names = list(document_ids)
        return self._write(
            lambda transaction, now: delete(transaction, now, names), compact
        )

    @contextmanager
    def batch(self, compact: Compact = "now") -> Iterator[Self]:
        """Return a context manager for many writes, each of them durable when it returns, that tidies up only once, at
        the end.

        If the process stops before the end, nothing written is lost, and no search finds deleted passages; the next
        write or batch that compacts removes their bytes.
        """
        with self._lock:
            self._in_batch = True
            try:
                yield self
            finally:
                self._in_batch = False
            self.finish(compact)

    def is_finished(self) -> bool:
        """Return whether the files contain nothing that was deleted."""
        with self.database.reading() as transaction:
            erasures, compacted = transaction.state.erasures()
        return erasures == compacted

    def finish(self, compact: Compact = "now") -> None:
        """Join and save segments, and update the data that is attached to the passages, such as a graph.

        Args:
            compact: whether to remove the bytes of deleted text "now" or "later".
        """
        self._refuse_view()
        with self._lock:
            self._renumber()
            # the transaction also ensures that only one process writes the cache
            with self.database.writing() as transaction:
                erasures, compacted = transaction.state.erasures()
                remains = compact == "now" and erasures > compacted
                self._tidy(remains)
            for attached in all_attached():
                attached.keep(self.database, self.cache)
            if remains and self.database.compact():
                with self.database.writing() as transaction:
                    transaction.state.put_compacted(erasures)

    def close(self) -> None:
        """Close the connections to the database; the next use opens new ones."""
        self.database.close()

    def committed(self) -> None:
        """Treat this index's writes in a transaction of its database as the last commit. Call it once the transaction
        has ended.
        """
        self._committed = self.snapshot

    def _refuse_view(self) -> None:
        if self._whole is not None:
            raise TypeError(
                "a view of an index cannot be written to: write to the index itself"
            )

    def _write(
        self,
        change: Callable[[Transaction, Snapshot], Changes],
        compact: Compact = "now",
    ) -> Changes:
        self._refuse_view()
        with self._lock:
            inside = self.database.is_writing()
            with self.database.writing() as transaction:
                if not inside:
                    # drop the writes of a transaction that was rolled back
                    self.snapshot = self._committed
                before = self._take()
                changes = change(transaction, before)
                if changes.replaced or changes.deleted:
                    table = self._take().table
                    for attached in all_attached():
                        attached.forget(transaction, self.database, table)
            if not inside and not self._in_batch:
                self.finish(compact)
            elif changes:
                self._take()
            return changes

    def _tidy(self, remains: bool) -> None:
        """Join segments and save them.

        Args:
            remains: whether to remove deleted passages from segments that are saved already.
        """
        now = self._take()
        for one in now.segments:
            one.look()
        segments = _joined(now)
        for number, one in enumerate(segments):
            # deleted passages are never saved; without a cache, segments are not made again just to drop them
            saves = self.cache is not None and (one.folder is None or remains)
            if saves and one.is_among(now.dead).any():
                segments[number] = now.joined([one])
        self.snapshot = self._committed = now.with_segments(segments)
        if self.cache is None:
            return
        folder = folder_of(self.cache, now.state.epoch)
        fresh = [
            one
            for one in segments
            if one.folder is None and len(one) >= segment.SAVED_FROM
        ]
        for one in fresh:
            if now.manifest.embedder:
                one.vectors(now.manifest.vectors, now.read_vectors)
            one.save(folder)
        if fresh or remains:
            segment.clear_away(folder, segments)
            kept = {folder.name, *(attached.folder for attached in all_attached())}
            for other in self.cache.iterdir() if self.cache.is_dir() else ():
                if other.name not in kept:
                    shutil.rmtree(other, ignore_errors=True)

    def _renumber(self) -> None:
        """Forget the cells of deleted passages if there are many, which makes all segments invalid."""
        now = self._take()
        if len(now.dead) <= max(_RENUMBER_FROM, len(now)):
            return
        with self.database.writing() as transaction:
            transaction.state.renumber(_epoch())

    def _writing_embedder(self) -> Embedder | None:
        embedder = self.embedder
        if embedder is not None:
            require_faiss()  # fail before hours of embedding, not after
        return embedder


def database_at(place: Path | Address) -> Database:
    """Return the database of the index in a folder or at an address; the index must exist."""
    return driver_of(place).open(place)


def _joined(snapshot: Snapshot) -> list[Segment]:
    """Return a snapshot's segments, with the small ones joined."""
    segments = list(snapshot.segments)
    start = segment.too_small(segments)
    if start < len(segments):
        segments[start:] = [snapshot.joined(segments[start:])]
    return segments


def _check_free(path: Path) -> None:
    """Raise IndexExists if `path` is a file, or holds anything except remains of an index that was never completed.

    Raises IndexMismatch if only the cache of an index is left there.
    """
    if PassageIndex.exists(path) or (path / _EARLIER).exists():
        raise IndexExists(f"{path} holds an index already: open it, or delete it first")
    if path.exists() and not path.is_dir():
        raise IndexExists(f"{path} is a file: choose another place for the index")
    try:
        names = sorted(one.name for one in path.iterdir()) if path.exists() else []
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror or error}): choose another place"
        ) from error
    ours = [name for name in names if name in _OURS]
    if ours and CACHE in ours and len(ours) == len(names):
        raise IndexMismatch(
            f"{path / FILE} is missing next to {ours[0]!r}: {ANEW.format(folder=path)}"
        )
    if foreign := [name for name in names if name not in _OURS]:
        raise IndexExists(
            f"{path} holds something else, {foreign[0]!r}: choose another place for the index"
        )


def _epoch() -> int:
    """Return a random number that identifies this numbering of cells."""
    return secrets.randbits(60) | 1 << 60
