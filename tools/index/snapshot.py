"""Shows one commit of an index as arrays: segments of its cells, and which cells are passages, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, overload

import numpy as np

from ras_agent.config.filters import Condition, Filter, order_of, texts_of
from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Matrix, TermPart
from ras_agent.tools.index.manifest import Manifest
from ras_agent.tools.index.passages import (
    COLUMNS,
    Table,
    field_hash,
    hash_of,
    hashes,
    read_passage,
    read_passages,
    read_vectors,
)
from ras_agent.tools.index.segment import (
    Segment,
    from_rows,
    joined,
    load,
    saved_segments,
)
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import (
    JoinedVectors,
    VectorIndex,
    VectorSettings,
)
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.schema import VERSION
from ras_agent.tools.store.transaction import Transaction

_COLUMN_OF = {"id": "id", "document_id": "document"}
_FEW = 1 << 16


@dataclass(frozen=True, slots=True)
class State:
    """Holds the columns of the table `index_state`; schema.py describes them."""

    epoch: int
    revision: int
    cells: int
    passages: int
    manifest: Manifest


def read_state(transaction: Transaction, database: Database) -> State:
    """Return the state of an index. Raises IndexMismatch for another version."""
    where = database.where
    anew = database.remedy
    version = transaction.state.version()
    if version is None:
        raise IndexMismatch(f"{where} is damaged (it has no state): {anew}")
    if version != VERSION:
        raise IndexMismatch(
            f"{where} has version {version}, this ras-agent reads version {VERSION}: {anew}"
        )
    epoch, revision, cells, passages, manifest = transaction.state.read()
    try:
        return State(epoch, revision, cells, passages, Manifest.from_json(manifest))
    except (KeyError, TypeError, ValueError) as error:
        raise IndexMismatch(f"{where} is damaged ({error}): {anew}") from error


class FieldValues:
    """Holds values of passages by cell, read when a filter first asks for the prefix of an id or the order of a field.

    For an ordered field only the sort keys are kept, so that no text of an erased passage remains.
    """

    def __init__(self, database: Database) -> None:
        """Take the database of the index."""
        self._database = database
        self._lock = Lock()
        self._by_key: dict[str, dict[int, list[Any]]] = {}

    def of(self, cells: Ints, condition: Condition) -> list[list[Any]]:
        """Return, for each cell, the texts that its passage has under the key of a condition, or their sort keys."""
        key = condition.key
        with self._lock:
            known = self._by_key.setdefault(key, {})
            missing = [cell for cell in cells.tolist() if cell not in known]
            passages = read_passages(self._database, missing)
            for cell, passage in zip(missing, passages, strict=True):
                # a running transaction may still write another passage to this cell
                if passage is None:
                    continue
                for name in _COLUMN_OF:
                    self._by_key.setdefault(name, {})[cell] = [getattr(passage, name)]
                values: list[Any] = texts_of(passage, key)
                if condition.is_ordered:
                    values = list(map(order_of, values))
                known[cell] = values
            return [known.get(cell, []) for cell in cells.tolist()]

    def forget(self) -> None:
        """Forget all values: after a rollback, the cells of the transaction are used for other passages."""
        with self._lock:
            self._by_key.clear()


class Snapshot:
    """Shows the passages of one commit, with their BM25 matrix and vector index, which are built when first needed.

    It does not change when the index is written to, except that an erased passage disappears from every snapshot.
    """

    manifest: Manifest
    tokeniser: Tokeniser

    def __init__(
        self,
        database: Database,
        state: State,
        segments: Sequence[Segment],
        dead: Ints,
        values: FieldValues,
        tokeniser: Tokeniser,
    ) -> None:
        """Take the segments of all cells.

        Args:
            dead: the cells of deleted passages, ascending.
        """
        self.database = database
        self.state = state
        self.segments = tuple(segments)
        self.dead = dead
        self.values = values
        self.tokeniser = tokeniser
        self.manifest = state.manifest
        self._bases = np.cumsum([0, *map(len, self.segments)])
        self._lock = Lock()
        self._matrix: BM25Matrix | None = None
        self._vectors: VectorIndex | None = None

    def with_segments(self, segments: Sequence[Segment]) -> Snapshot:
        """Return the same passages with other segments, or this snapshot if the segments are the same."""
        if tuple(map(id, segments)) == tuple(map(id, self.segments)):
            return self
        return Snapshot(
            self.database, self.state, segments, self.dead, self.values, self.tokeniser
        )

    def joined(self, segments: Sequence[Segment]) -> Segment:
        """Return consecutive segments joined into one, without deleted passages."""
        settings = self.manifest.vectors if self.manifest.embedder else None
        return joined(segments, self.dead, settings, self.read_vectors)

    @cached_property
    def order(self) -> Ints | None:
        """Return the slot of each passage in corpus order, or None if all slots are passages in that order."""
        living = ~np.isin(self._slots("cell"), self.dead)
        places = self._slots("place")
        if living.all() and (places[1:] > places[:-1]).all():
            return None
        slots = np.flatnonzero(living)
        order = np.argsort(places[slots], kind="stable")
        return slots[order]

    def _based(self) -> Iterator[tuple[int, Segment]]:
        """Yield the slot at which each segment begins, and the segment."""
        return zip(self._bases[:-1].tolist(), self.segments, strict=True)

    def _row_of_slot(self) -> Ints:
        """Return the row of the passage in each slot, -1 for a slot whose passage is deleted or not shown."""
        slots = int(self._bases[-1])
        if self.order is None:
            return np.arange(slots)
        rows = np.full(slots, -1, dtype=np.int64)
        rows[self.order] = np.arange(len(self.order))
        return rows

    def _slots(self, name: str) -> Any:
        parts = [one.columns[name] for one in self.segments]
        if len(parts) == 1:
            return parts[0]
        if parts:
            return np.concatenate(parts)
        return np.empty(0, np.uint64 if name in _HASHED else np.int64)

    def column(self, name: str) -> Any:
        """Return a column of the passages in corpus order: "cell", "id", "document", "text", or "length"."""
        values = self._slots(name)
        if self.order is None:
            return values
        return values[self.order]

    @cached_property
    def table(self) -> Table:
        """Return the columns of the passages in corpus order."""
        return {name: self.column(name) for name in COLUMNS}

    @cached_property
    def passages(self) -> StoredPassages:
        """Return the passages in corpus order; each is read when it is accessed."""
        return StoredPassages(self.database, self.column("cell"))

    def __len__(self) -> int:
        return len(self.passages)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of ids and texts in corpus order: equal for indexes of the same corpus."""
        digest = blake2b(digest_size=16)
        for name in ("id", "text"):
            digest.update(np.ascontiguousarray(self.table[name]).data)
        return digest.hexdigest()

    @cached_property
    def documents(self) -> int:
        """Return the number of distinct documents; passages without a document are not counted."""
        known = np.unique(self.table["document"])
        no_document = np.uint64(hash_of(""))
        return int(np.count_nonzero(known != no_document))

    def bm25(self) -> BM25Matrix:
        """Return the BM25 matrix, with a row for each passage."""
        with self._lock:
            if self._matrix is None:
                parts = [TermPart(base, one.terms) for base, one in self._based()]
                self._matrix = BM25Matrix(
                    parts, self._slots("length"), self.order, self.manifest.bm25
                )
            return self._matrix

    def vectors(self) -> VectorIndex:
        """Return the vector index, whose numbers are the rows of passages. Raises IndexMismatch for an index without
        vectors.
        """
        embedder = self.manifest.embedder
        with self._lock:
            if embedder is None:
                raise IndexMismatch(
                    "the index holds no vectors: make another with an embedder (`ras-agent index FILES --out NEW.index "
                    "--embedder minilm`, PassageIndex.create(path, embedder='minilm'), for texts in memory "
                    "Settings(embedder='minilm')), or retrieve by bm25"
                )
            if self._vectors is None:
                self._vectors = self._joined_vectors(embedder.dimension)
            return self._vectors

    def _joined_vectors(self, dimension: int) -> VectorIndex:
        rows = self._row_of_slot()
        parts = []
        for base, segment in self._based():
            if len(segment):
                part = segment.vectors(self.manifest.vectors, self.read_vectors)
                parts.append((part, rows[base : base + len(segment)]))
        return JoinedVectors(dimension, parts)

    def read_vectors(self, cells: Ints) -> Floats:
        """Return the vectors of cells, (len(cells), dimension), with zeros for a cell whose passage is gone."""
        assert self.manifest.embedder
        return read_vectors(self.database, cells, self.manifest.embedder.dimension)

    def rows(self, filter: Filter) -> Ints:
        """Return the rows of the passages that `filter` admits, ascending."""
        rows: Ints = np.arange(len(self.passages), dtype=np.int64)
        for condition in filter.conditions:
            rows = np.intersect1d(rows, self._rows_of(condition), assume_unique=True)
        return rows

    def _rows_of(self, condition: Condition) -> Ints:
        if condition.prefixes or condition.is_ordered:
            values = self.values.of(self.column("cell"), condition)
            holds = condition.holds_for if condition.is_ordered else condition.holds
            held = np.fromiter(map(holds, values), dtype=bool, count=len(values))
            return np.flatnonzero(held)
        rows = self._rows_having(condition)
        if condition.test == "not":
            return np.setdiff1d(np.arange(len(self.passages)), rows, assume_unique=True)
        return rows

    def _rows_having(self, condition: Condition) -> Ints:
        """Return the rows that have one of the condition's texts under its key, ascending."""
        column = _COLUMN_OF.get(condition.key)
        if column is not None:
            is_wanted = np.isin(self.column(column), hashes(condition.texts))
            return np.flatnonzero(is_wanted)
        slots = [np.empty(0, np.int64)]
        for base, segment in self._based():
            for text in condition.texts:
                number = field_hash(condition.key, text)
                having = segment.fields.having(number)[0]
                slots.append(having.astype(np.int64) + base)
        there = np.unique(np.concatenate(slots))
        if self.order is None:
            return there
        rows = self._row_of_slot()[there]
        return np.sort(rows[rows >= 0])


_HASHED = ("id", "document", "text")


class StoredPassages(Sequence[Passage]):
    """Reads the passages in the given cells when they are accessed. Raises ErasedPassage for one that was deleted
    since.
    """

    def __init__(self, database: Database, cells: Ints) -> None:
        """Take the database and the cells of the passages, in order."""
        self._database = database
        self._cells = cells

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, row: int) -> Passage: ...
    @overload
    def __getitem__(self, row: slice) -> StoredPassages: ...
    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return StoredPassages(self._database, self._cells[row])
        return read_passage(self._database, int(self._cells[row]))

    def __iter__(self) -> Any:
        for start in range(0, len(self), 500):
            cells = self._cells[start : start + 500].tolist()
            passages = read_passages(self._database, cells)
            yield from filter(None, passages)

    def take(self, rows: Ints) -> list[Passage | None]:
        """Return the passages of the given rows, None for a passage that was deleted."""
        cells = self._cells[rows].tolist()
        return read_passages(self._database, cells)


class PartOfSnapshot(Snapshot):
    """Shows some rows of a snapshot, in the same order. Words are weighted as in the whole snapshot."""

    def __init__(self, whole: Snapshot, rows: Ints) -> None:
        """Take the whole snapshot and the rows to show, ascending."""
        super().__init__(
            whole.database,
            whole.state,
            whole.segments,
            whole.dead,
            whole.values,
            whole.tokeniser,
        )
        self.order = rows if whole.order is None else whole.order[rows]
        self._whole = whole
        self._rows = rows

    def bm25(self) -> BM25Matrix:
        """Return the BM25 matrix, with a row for each passage."""
        return self._whole.bm25().of_rows(self._rows)

    def _joined_vectors(self, dimension: int) -> VectorIndex:
        is_exact = self.manifest.vectors.kind == "flat"
        if is_exact or len(self._rows) > _FEW:
            return super()._joined_vectors(dimension)
        # an approximate search may visit too few vectors to find any of a small part
        vectors = self.read_vectors(self.column("cell"))
        return VectorIndex.build(vectors, VectorSettings())


def take_snapshot(
    database: Database, cache: Path | None, before: Snapshot | None = None
) -> Snapshot:
    """Return a snapshot of the last commit, from the arrays of `before` and the cache where they are still valid.

    All other arrays are made from the database. Raises IndexNotFound if there is no index, and IndexMismatch if it is
    damaged.

    Args:
        cache: the folder of caches; None if the index has no folder.
        before: an earlier snapshot.
    """
    with database.reading() as transaction:
        state = read_state(transaction, database)
        known = None
        if before is not None and before.state.epoch == state.epoch:
            known = before
            revision = (known.state.revision, known.state.cells)
            if revision == (state.revision, state.cells):
                return known
        segments: list[Segment] = []
        at_hand = {one.first: one for one in known.segments} if known else {}
        saved = saved_segments(folder_of(cache, state.epoch)) if cache else {}
        at = 0
        while at < state.cells:
            segment = _longest(at, state.cells, at_hand, saved, cache, state.epoch)
            if segment is None:
                firsts = (*at_hand, *saved, state.cells)
                end = min(first for first in firsts if first > at)
                rows = transaction.passages.searched(at, end)
                segment = from_rows(at, end, rows, database)
            segments.append(segment)
            at = segment.end
        since = -1
        dead = np.empty(0, dtype=np.int64)
        values = FieldValues(database)
        if known is not None:
            since = known.state.revision
            dead = known.dead
            values = known.values
        fresh = transaction.passages.dead_since(since)
    dead = np.union1d(dead, np.array(fresh, dtype=np.int64))
    if before is not None and before.manifest == state.manifest:
        tokeniser = before.tokeniser
    else:
        tokeniser = Tokeniser.from_dict(state.manifest.tokeniser)
    snapshot = Snapshot(database, state, segments, dead, values, tokeniser)
    if len(snapshot) != state.passages:
        raise IndexMismatch(
            f"{database.where} is damaged (it holds {len(snapshot):,} passages, and {state.passages:,} were written): "
            f"{database.remedy}"
        )
    return snapshot


def folder_of(cache: Path, epoch: int) -> Path:
    """Return the folder of the saved segments of an epoch."""
    return cache / str(epoch)


def _longest(
    first: int,
    cells: int,
    at_hand: dict[int, Segment],
    saved: dict[int, list[int]],
    cache: Path | None,
    epoch: int,
) -> Segment | None:
    """Return the longest segment that begins at cell `first`, in memory or saved, or None if there is none."""
    here = at_hand.get(first)
    for end in saved.get(first, ()):
        if end > cells or (here is not None and end <= here.end):
            continue
        assert cache
        segment = load(folder_of(cache, epoch), first, end)
        if segment is not None:
            return segment
    return here
