"""Finds the passages that a filter admits, and shows a snapshot as if it held no others."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

import numpy as np

from ras_agent.arrays import Ints
from ras_agent.filters import OWN_FIELDS, Condition, Filter, texts_of
from ras_agent.tools.index.bm25_matrix import BM25Matrix
from ras_agent.tools.index.row_table import find_rows, hash_of
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.vector_index import VectorIndex, VectorSettings

_HASHED = {"id": "id", "document_id": "document"}
"""Own fields whose hashes are in the row table: a value is found there without reading every passage"""

_FEW = 1 << 16


class Columns:
    """Knows which rows of a snapshot have which value of a metadata key.

    A key is looked up in every passage once, when it is first asked for, and then known; one that no passage has costs
    nothing, whoever asks for it. `earlier` are the columns of the snapshot before: passages that were there already are
    not read again.
    """

    def __init__(self, snapshot: Snapshot, earlier: Columns | None = None) -> None:
        self.snapshot = snapshot
        self._known: dict[str, dict[str, Ints]] = {}
        self._keys: set[str] | None = None  # all that passages have in their metadata, once they were read
        self._lock = Lock()
        if earlier is not None:
            self._take_over(earlier)

    def rows(self, filter: Filter) -> Ints:
        """Return the rows of the passages that `filter` admits, ascending."""
        found = np.arange(len(self.snapshot.passages), dtype=np.int64)
        for condition in filter.conditions:
            found = np.intersect1d(found, self._rows_of(condition), assume_unique=True)
        return found

    def _rows_of(self, condition: Condition) -> Ints:
        if condition.key in _HASHED and not condition.prefixes:
            return self._rows_by_hash(condition)
        with self._lock:
            if condition.key not in self._known and (self._keys is None or condition.key in {*self._keys, *OWN_FIELDS}):
                self._keys = set() if self._keys is None else self._keys
                self._known[condition.key] = self._read(condition.key, range(len(self.snapshot.passages)))
            column = self._known.get(condition.key, {})
        rows = [rows for text, rows in _wanted(column, condition) if condition.admits(text)]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)

    def _rows_by_hash(self, condition: Condition) -> Ints:
        hashes = np.array([hash_of(text) for text in condition.texts], dtype=np.uint64)
        near = np.flatnonzero(np.isin(self.snapshot.table[_HASHED[condition.key]], hashes))
        passages = self.snapshot.passages
        return np.array([row for row in near.tolist() if condition.matches(passages[row])], dtype=np.int64)

    def _read(self, key: str, rows: Iterable[int]) -> dict[str, Ints]:
        found: dict[str, list[int]] = {}
        keys = set() if self._keys is None else self._keys
        for row in rows:
            passage = self.snapshot.passages[row]
            keys.update(passage.metadata)
            for text in dict.fromkeys(texts_of(passage, key)):
                found.setdefault(text, []).append(row)
        return {text: np.array(rows, dtype=np.int64) for text, rows in found.items()}

    def _take_over(self, earlier: Columns) -> None:
        before, now = earlier.snapshot.table, self.snapshot.table
        with earlier._lock:
            known = dict(earlier._known)
        if not known:
            return
        self._keys = set(earlier._keys or ())
        moved = find_rows(now["id"], before["id"])  # (rows before,) where each is now, -1 for none
        same = np.flatnonzero(moved >= 0)
        # the checksum is of the whole line in the log, metadata too
        for name in ("line_sum", "size"):
            same = same[before[name][same] == now[name][moved[same]]]
        # in memory nothing has a checksum: a passage stays the same where it stays in its place
        same = same[(before["line_sum"][same] != 0) | (before["start"][same] == now["start"][moved[same]])]
        place = np.full(len(before), -1, dtype=np.int64)
        place[same] = moved[same]
        fresh = np.setdiff1d(np.arange(len(now)), place[same], assume_unique=True).tolist()
        for key, column in known.items():
            rows = {text: place[old][place[old] >= 0] for text, old in column.items()}
            for text, new in self._read(key, fresh).items():
                rows[text] = np.concatenate([rows.get(text, new[:0]), new])
            self._known[key] = {text: np.sort(some) for text, some in rows.items() if len(some)}


def _wanted(column: dict[str, Ints], condition: Condition) -> Iterable[tuple[str, Ints]]:
    if condition.prefixes:
        return column.items()
    return [(text, column[text]) for text in condition.texts if text in column]


class PartOfSnapshot(Snapshot):
    """Is a snapshot of some `rows` of another, in their order. Its words are weighed as in the whole."""

    def __init__(self, whole: Snapshot, rows: Ints) -> None:
        super().__init__(whole.manifest, whole.table[rows], whole.passage_log, whole.vector_log, whole.tokeniser)
        self._whole, self._rows = whole, rows

    def bm25(self) -> BM25Matrix:
        """Return the BM25 matrix, a row for each passage."""
        return self._whole.bm25().of_rows(self._rows)

    def vectors(self) -> VectorIndex:
        """Return the vector index, a number for each passage. Raises IndexMismatch for an index without vectors."""
        whole = self._whole.vectors()
        kind = self.manifest.vectors.kind
        with self._lock:
            if self._vectors is None and kind != "flat" and self.vector_log and len(self._rows) <= _FEW:
                # an approximate search visits few rows of a small part, and may find none of them
                vectors = self.vector_log.take(self.table["vector"], self.table["vector_sum"])
                self._vectors = VectorIndex.build(vectors, VectorSettings())
            elif self._vectors is None:
                self._vectors = whole.of_rows(self._rows)
            return self._vectors
