"""Determines which passages of a write are new, replace others or need a vector, and writes these changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.text.normal_form import storable
from ras_agent.tools.embed.embedders import check_not_zeros
from ras_agent.tools.index.passages import (
    cells_of_documents,
    find_rows,
    hashes,
    indexed_text,
    row_of,
    rows_of_ids,
    storable_passage,
)
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.store.transaction import Transaction

_EMBED_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Changes:
    """Counts the passages that a write added, replaced, left unchanged and deleted."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    embedded: int = 0
    """How many texts were embedded for it."""

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.added or self.replaced or self.deleted)


def put(
    transaction: Transaction,
    snapshot: Snapshot,
    passages: Sequence[Passage],
    embedder: Embedder | None,
    *,
    replace_existing: bool,
    whole_documents: bool,
) -> Changes:
    """Write passages to the index whose last state is `snapshot`. A replacement keeps its place in the corpus.

    Raises ValueError for an id that is given twice, or that is already stored unless `replace_existing`.

    Args:
        embedder: embeds new texts; None for an index without vectors.
        replace_existing: whether passages replace stored ones with the same id.
        whole_documents: whether the passages are complete documents, so that other passages of these are deleted.
    """
    given = [storable_passage(passage) for passage in passages]
    _check_distinct(given)
    database = snapshot.database
    known = rows_of_ids(transaction, database, [passage.id for passage in given])
    if known and not replace_existing:
        first = next(one.id for one in given if one.id in known)
        raise ValueError(
            f"passage id {first!r} is already in the index: `upsert` replaces it"
        )
    fresh = [
        passage
        for passage in given
        if passage.id not in known or known[passage.id][1] != passage
    ]
    gone = [known[passage.id][0].cell for passage in fresh if passage.id in known]
    replaced = len(gone)
    if whole_documents:
        gone += _left_over(transaction, given)
    changes = Changes(
        added=len(fresh) - replaced,
        replaced=replaced,
        unchanged=len(given) - len(fresh),
        deleted=len(gone) - replaced,
    )
    if not changes:
        return changes
    vectors, embedded = _vectors(snapshot, fresh, embedder)
    rows = []
    for cell, passage in enumerate(fresh, start=snapshot.state.cells):
        before = known.get(passage.id)
        place = before[0].place if before else cell
        rows.append(row_of(passage, cell, place, snapshot.tokeniser))
    transaction.passages.forget(gone, snapshot.state.revision + 1)
    transaction.passages.add(rows)
    cells = [row.cell for row in rows[: len(vectors)]]
    transaction.passages.add_vectors(cells, vectors)
    added = changes.added - changes.deleted
    transaction.state.advance(passages=added, cells=len(rows))
    return replace(changes, embedded=embedded)


def delete(
    transaction: Transaction, snapshot: Snapshot, document_ids: Collection[str]
) -> Changes:
    """Delete the passages of documents. Passages without a document are never deleted."""
    named = list(map(storable, document_ids))
    gone = list(cells_of_documents(transaction, named).values())
    if gone:
        transaction.passages.forget(gone, snapshot.state.revision + 1)
        transaction.state.advance(passages=-len(gone))
    return Changes(deleted=len(gone))


def _check_distinct(passages: Sequence[Passage]) -> None:
    """Raise ValueError for an id that is given twice."""
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise ValueError(
                f"two passages have the id {passage.id!r}: give each passage its own id"
            )
        seen.add(passage.id)


def _embed(texts: list[str], embedder: Embedder, dimension: int) -> Floats:
    """Return the vectors of texts, (len(texts), dimension).

    Raises IndexMismatch for an array of another shape, and ModelCallError for a vector of zeros.
    """
    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    if vectors.shape != (len(texts), dimension):
        raise IndexMismatch(
            f"embedder {embedder.name!r} gave an array of shape {vectors.shape} for {len(texts)} texts, "
            f"the index holds vectors of {dimension} numbers: use the embedder that built the index"
        )
    check_not_zeros(embedder, texts, vectors)
    return vectors


def _left_over(transaction: Transaction, passages: Sequence[Passage]) -> list[int]:
    """Return the cells of stored passages that belong to the documents of `passages` but are not among them."""
    documents = {passage.document_id for passage in passages}
    cells = cells_of_documents(transaction, documents)
    for passage in passages:
        cells.pop(passage.id, None)
    return list(cells.values())


def _vectors(
    snapshot: Snapshot, passages: Sequence[Passage], embedder: Embedder | None
) -> tuple[Floats, int]:
    """Return the vectors of passages, (n, d), or an empty array without an embedder, and how many texts were embedded.

    A text that is already in the index, or that occurs twice, is not embedded again.
    """
    identity = snapshot.manifest.embedder
    if identity is None or embedder is None:
        return np.empty((0, 0), dtype=np.float32), 0
    texts = [indexed_text(passage) for passage in passages]
    vectors = np.empty((len(texts), identity.dimension), dtype=np.float32)
    same = find_rows(snapshot.column("text"), hashes(texts))
    there = np.flatnonzero(same >= 0)
    cells = snapshot.column("cell")[same[there]]
    vectors[there] = snapshot.read_vectors(cells)
    unseen = np.flatnonzero(same < 0).tolist()
    row_of_text: dict[str, int] = {}
    for at in unseen:
        row_of_text.setdefault(texts[at], len(row_of_text))
    wanted = list(row_of_text)
    batches = []
    for start in range(0, len(wanted), _EMBED_AT_ONCE):
        batch = wanted[start : start + _EMBED_AT_ONCE]
        batches.append(_embed(batch, embedder, identity.dimension))
    if batches:
        rows = [row_of_text[texts[at]] for at in unseen]
        vectors[unseen] = np.concatenate(batches)[rows]
    return vectors, len(wanted)
