"""Works out which passages of a write are new, replace others or need a vector, and writes these changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, RasError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.embedders import check_not_zeros
from ras_agent.tools.index.passages import (
    NO_VECTOR,
    check_free,
    erase,
    erase_vectors,
    find_rows,
    hashes,
    indexed_text,
    insert,
    insert_vectors,
    leave_remains,
    passage_line,
    row_of,
)
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.store.database import Connection

_EMBED_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Changes:
    """Counts the passages that a write added, replaced and so on. `embedded`: the texts that were embedded for it."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    embedded: int = 0

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.added or self.replaced or self.deleted)


def put(
    connection: Connection,
    snapshot: Snapshot,
    passages: Sequence[Passage],
    embedder: Embedder | None,
    *,
    replace_existing: bool,
    whole_documents: bool,
) -> Changes:
    """Write passages to the index of which `snapshot` is the last state; a replacement keeps its place in the corpus.

    Raises ValueError for an id given twice, or already there unless `replace_existing`.
    """
    _check_distinct(passages)
    existing = find_rows(
        snapshot.column("id"), hashes(passage.id for passage in passages)
    )
    old = np.flatnonzero(existing >= 0)
    stored: list[Passage | None] = [None] * len(passages)
    for at, passage in zip(
        old.tolist(), snapshot.passages.take(existing[old]), strict=True
    ):
        stored[at] = passage
    _check_ids(passages, stored, replace_existing)
    lines = [passage_line(passage) for passage in passages]
    fresh = [
        at
        for at, (before, passage) in enumerate(zip(stored, passages, strict=True))
        if before is None or (before != passage and passage_line(before) != lines[at])
    ]
    gone = (
        _left_over(snapshot, passages, existing)
        if whole_documents
        else np.empty(0, dtype=np.int64)
    )
    replaced = (
        existing[fresh][existing[fresh] >= 0] if fresh else np.empty(0, dtype=np.int64)
    )
    changes = Changes(
        added=len(fresh) - len(replaced),
        replaced=len(replaced),
        unchanged=len(passages) - len(fresh),
        deleted=len(gone),
    )
    if not changes:
        return changes
    state = snapshot.state
    check_free(connection, snapshot.database, state.cells, state.vectors)
    vectors, new = _vectors(snapshot, [passages[at] for at in fresh], embedder)
    insert_vectors(connection, state.vectors, new)
    place_of = snapshot.column("place")
    places = state.places
    rows = []
    for number, (at, vector) in enumerate(zip(fresh, vectors.tolist(), strict=True)):
        if existing[at] >= 0:
            place = int(place_of[existing[at]])
        else:
            place = places
            places = places + 1
        rows.append(
            row_of(
                passages[at],
                lines[at],
                state.cells + number,
                place,
                vector,
                snapshot.tokeniser,
            )
        )
    insert(connection, rows)
    _erase(
        connection,
        snapshot,
        np.concatenate([replaced, gone]),
        keep=set(vectors.tolist()),
    )
    more = changes.added - changes.deleted
    _advance(
        connection,
        cells=len(rows),
        places=places - state.places,
        passages=more,
        vectors=len(new),
    )
    return Changes(
        changes.added, changes.replaced, changes.unchanged, changes.deleted, len(new)
    )


def delete(
    connection: Connection, snapshot: Snapshot, document_ids: Collection[str]
) -> Changes:
    """Delete the passages of documents. Passages without a document are never deleted."""
    gone = _rows_of_documents(snapshot, set(document_ids) - {""})
    if len(gone):
        _erase(connection, snapshot, gone, keep=set())
        _advance(connection, passages=-len(gone))
    return Changes(deleted=len(gone))


def _check_distinct(passages: Sequence[Passage]) -> None:
    """Raise ValueError for an id that is given twice."""
    seen: set[str] = set()
    for passage in passages:
        if passage.id in seen:
            raise ValueError(
                f"passage id {passage.id!r} is given twice: ids are unique in an index"
            )
        seen.add(passage.id)


def _already_there(passage_id: str) -> ValueError:
    """Return the error of adding a passage with an id that is taken."""
    return ValueError(
        f"passage id {passage_id!r} is already in the index: `upsert` replaces it"
    )


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


def _check_ids(
    passages: Sequence[Passage],
    stored: Sequence[Passage | None],
    replace_existing: bool,
) -> None:
    for passage, before in zip(passages, stored, strict=True):
        if before is None:
            continue
        if before.id != passage.id:
            raise RasError(
                f"passage ids {before.id!r} and {passage.id!r} have the same hash: rename one of them"
            )
        if not replace_existing:
            raise _already_there(passage.id)


def _rows_of_documents(snapshot: Snapshot, documents: Collection[str]) -> Ints:
    return np.flatnonzero(np.isin(snapshot.column("document"), hashes(documents)))


def _left_over(snapshot: Snapshot, passages: Sequence[Passage], existing: Ints) -> Ints:
    """Return the rows of the passages' documents that are not rows of these passages."""
    documents = {passage.document_id for passage in passages} - {""}
    return np.setdiff1d(_rows_of_documents(snapshot, documents), existing)


def _vectors(
    snapshot: Snapshot, passages: Sequence[Passage], embedder: Embedder | None
) -> tuple[Ints, Floats]:
    """Return the number of each passage's vector, and those to be written, which begin at the state's next number.

    Equal texts share a vector, whether they are in the index already or come together.
    """
    numbers = np.full(len(passages), NO_VECTOR, dtype=np.int64)
    identity = snapshot.manifest.embedder
    if identity is None or embedder is None:
        return numbers, np.empty((0, 0), dtype=np.float32)
    texts = [indexed_text(passage) for passage in passages]
    same = find_rows(snapshot.column("text"), hashes(texts))
    there = np.flatnonzero(same >= 0)
    numbers[there] = snapshot.column("vector")[same[there]]
    unseen = dict.fromkeys(texts[at] for at in np.flatnonzero(numbers < 0).tolist())
    number_of = {
        text: snapshot.state.vectors + number for number, text in enumerate(unseen)
    }
    for at in np.flatnonzero(numbers < 0).tolist():
        numbers[at] = number_of[texts[at]]
    wanted = list(unseen)
    batches = [
        wanted[start : start + _EMBED_AT_ONCE]
        for start in range(0, len(wanted), _EMBED_AT_ONCE)
    ]
    found = [_embed(batch, embedder, identity.dimension) for batch in batches]
    return numbers, np.concatenate(
        [np.empty((0, identity.dimension), np.float32), *found]
    )


def _erase(
    connection: Connection, snapshot: Snapshot, rows: Ints, keep: set[int]
) -> None:
    """Erase passages, and the vectors that no other passage has. keep: vectors of passages that are new."""
    if not len(rows):
        return
    erase(
        connection, snapshot.column("cell")[rows].tolist(), snapshot.state.revision + 1
    )
    all_vectors = snapshot.column("vector")
    stay = np.ones(len(all_vectors), dtype=bool)
    stay[rows] = False
    numbers = np.setdiff1d(
        all_vectors[rows], all_vectors[stay & np.isin(all_vectors, all_vectors[rows])]
    )
    erase_vectors(
        connection,
        (one for one in numbers.tolist() if one != NO_VECTOR and one not in keep),
    )
    leave_remains(connection)


def _advance(
    connection: Connection,
    *,
    passages: int,
    cells: int = 0,
    places: int = 0,
    vectors: int = 0,
) -> None:
    connection.execute(
        "UPDATE index_state SET revision = revision + 1, cells = cells + ?, places = places + ?, "
        "passages = passages + ?, vectors = vectors + ?",
        (cells, places, passages, vectors),
    )
