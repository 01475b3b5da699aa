"""Works out what a write changes: which passages are new, which replace others, which need a vector."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, RasError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.index.checksums import Checksums, row_sums
from ras_agent.tools.index.logs import VectorLog, passage_line
from ras_agent.tools.index.row_table import Table, find_rows, hash_of, indexed_text, new_rows
from ras_agent.tools.index.snapshot import Snapshot

EMBED_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Changes:
    """Counts what a write did, in passages. `embedded`: how many texts went through the embedder."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    embedded: int = 0

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.added or self.replaced or self.deleted)


def merge(
    snapshot: Snapshot,
    passages: Sequence[Passage],
    embedder: Embedder | None,
    *,
    replace_existing: bool,
    whole_documents: bool,
) -> tuple[Table, Changes]:
    """Return the next generation's rows. Writes to the logs alone; a replacement keeps its place in the corpus.

    Raises ValueError for an id given twice, or already there unless `replace_existing`.
    """
    check_distinct(passages)
    existing = find_rows(snapshot.table["id"], _hashes(passage.id for passage in passages))
    stored = [snapshot.passages[row] if row >= 0 else None for row in existing.tolist()]
    _check_ids(passages, stored, replace_existing)
    changed = np.array([not _same(before, now) for before, now in zip(stored, passages, strict=True)], dtype=bool)
    fresh = [passage for passage, is_changed in zip(passages, changed, strict=True) if is_changed]
    vectors, sums, embedded = _vectors(snapshot, fresh, embedder)
    rows = new_rows(fresh, snapshot.passage_log.append(fresh))
    rows["vector"], rows["vector_sum"] = vectors, sums
    targets = existing[changed]
    old = targets >= 0
    table = snapshot.table.copy()
    table[targets[old]] = rows[old]
    gone = _left_over(snapshot, passages, existing) if whole_documents else np.empty(0, dtype=np.int64)
    table = np.concatenate([np.delete(table, gone), rows[~old]])
    changes = Changes(
        added=int(np.count_nonzero(~old)),
        replaced=int(np.count_nonzero(old)),
        unchanged=len(passages) - len(fresh),
        deleted=len(gone),
        embedded=embedded,
    )
    return table, changes


def without_documents(snapshot: Snapshot, document_ids: Collection[str]) -> tuple[Table, Changes]:
    """Return the rows that remain without the documents' passages. Passages without a document belong to none."""
    gone = _rows_of_documents(snapshot, set(document_ids) - {""})
    return np.delete(snapshot.table, gone), Changes(deleted=len(gone))


def check_distinct(passages: Sequence[Passage]) -> None:
    """Raise ValueError for an id that is given twice."""
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise ValueError(f"passage id {passage.id!r} is given twice: ids are unique in an index")
        seen.add(passage.id)


def _check_ids(passages: Sequence[Passage], stored: Sequence[Passage | None], replace_existing: bool) -> None:
    for passage, before in zip(passages, stored, strict=True):
        if before is None:
            continue
        if before.id != passage.id:
            raise RasError(f"passage ids {before.id!r} and {passage.id!r} have the same hash: rename one of them")
        if not replace_existing:
            raise already_there(passage.id)


def already_there(passage_id: str) -> ValueError:
    """Return the error of adding a passage whose id is taken."""
    return ValueError(f"passage id {passage_id!r} is already in the index: `upsert` replaces it")


def _same(before: Passage | None, now: Passage) -> bool:
    """Return whether nothing has to be written; JSON makes a list of a tuple, which is no change."""
    return before is not None and (before == now or passage_line(before) == passage_line(now))


def _hashes(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    return np.array([hash_of(text) for text in texts], dtype=np.uint64)


def _rows_of_documents(snapshot: Snapshot, documents: Collection[str]) -> Ints:
    candidates = np.flatnonzero(np.isin(snapshot.table["document"], _hashes(documents)))
    return np.array([row for row in candidates if snapshot.passages[int(row)].document_id in documents], dtype=np.int64)


def _left_over(snapshot: Snapshot, passages: Sequence[Passage], existing: Ints) -> Ints:
    """Return the rows of the passages' documents that hold none of the passages."""
    documents = {passage.document_id for passage in passages} - {""}
    return np.setdiff1d(_rows_of_documents(snapshot, documents), existing)


def _vectors(snapshot: Snapshot, passages: Sequence[Passage], embedder: Embedder | None) -> tuple[Ints, Checksums, int]:
    """Return the number and the checksum of each passage's vector.

    The last number is how many texts had to be embedded because no passage had them.
    """
    log, numbers = snapshot.vector_log, np.full(len(passages), -1, dtype=np.int64)
    sums = np.zeros(len(passages), dtype=np.uint32)
    if log is None or embedder is None:
        return numbers, sums, 0
    texts = [indexed_text(passage) for passage in passages]
    same = find_rows(snapshot.table["text"], _hashes(texts))
    unseen = []
    for position, (text, row) in enumerate(zip(texts, same.tolist(), strict=True)):
        if row >= 0 and indexed_text(snapshot.passages[row]) == text:
            numbers[position], sums[position] = snapshot.table[["vector", "vector_sum"]][row]
        else:
            unseen.append(position)
    for start in range(0, len(unseen), EMBED_AT_ONCE):
        batch = unseen[start : start + EMBED_AT_ONCE]
        first, sums[batch] = _append(log, [texts[position] for position in batch], embedder)
        numbers[batch] = np.arange(first, first + len(batch))
    return numbers, sums, len(unseen)


def _append(log: VectorLog, texts: list[str], embedder: Embedder) -> tuple[int, Checksums]:
    vectors = embed(texts, embedder, log.dimension)
    return log.append(vectors), row_sums(vectors)


def embed(texts: list[str], embedder: Embedder, dimension: int) -> Floats:
    """Return the vectors of texts, (len(texts), dimension). Raises IndexMismatch for an array of another shape."""
    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    if vectors.shape != (len(texts), dimension):
        raise IndexMismatch(
            f"embedder {embedder.name!r} gave an array of shape {vectors.shape} for {len(texts)} texts, "
            f"the index holds vectors of {dimension} numbers: use the embedder that built the index"
        )
    return vectors
