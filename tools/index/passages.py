"""Rows of passages and vectors in the database of an index: written once, read by their cells, deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import ErasedPassage, IndexMismatch
from ras_agent.filters import OWN_FIELDS, texts_of
from ras_agent.records import Passage
from ras_agent.text.normal_form import storable
from ras_agent.text.titles import with_title
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.database import Connection, Database

Hashes = npt.NDArray[np.uint64]

_FULL = 1 << 62
"""Set in every hash, so that none is 0."""
COLUMNS = ("cell", "place", "id", "document", "text", "length")
"""Of the arrays that are searched: id, document and text are hashes, length is in terms."""
_AT_ONCE = 500  # parameters of one statement, rows of one reading
_ROW = "cell, place, id, document, title, text, metadata"


class Row(NamedTuple):
    """Row of the table `passages`. metadata: JSON. terms: as `terms_of` returns them."""

    cell: int
    place: int
    id: str
    document: str
    title: str
    text: str
    metadata: str
    terms: bytes = b""


def indexed_text(passage: Passage) -> str:
    """Return title, headings and text as one."""
    return with_title(passage.heading, passage.text)


def hash_of(text: str) -> int:
    """Return 62 bits of a digest of `text` as a database holds it, and a 63rd that is always set."""
    digest = blake2b(storable(text).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") & (_FULL - 1)) | _FULL


@lru_cache(1 << 18)
def term_hash(term: str) -> int:
    """Return the hash of a term."""
    return hash_of(term)


@lru_cache(1 << 12)
def field_hash(key: str, text: str) -> int:
    """Return the hash of a value of a metadata key, as text."""
    return hash_of(f"{key}\0{text}")


def hashes(texts: Iterable[str]) -> Hashes:
    """Return the hashes of texts."""
    return np.array([hash_of(text) for text in texts], dtype=np.uint64)


def find_rows(column: Hashes, wanted: Hashes) -> Ints:
    """Return for each wanted value the first row where `column` holds it, or else -1; shape (len(wanted),).

    Reads the column once and sorts only the wanted values.
    """
    values, inverse = np.unique(wanted, return_inverse=True)
    rows_of_values = np.full(len(values), -1, dtype=np.int64)
    if len(values):
        at = np.searchsorted(values, column).clip(max=len(values) - 1)
        # backwards, so that the first row is written last
        rows = np.flatnonzero(values[at] == column)[::-1]
        rows_of_values[at[rows]] = rows
    return rows_of_values[inverse]


def storable_passage(passage: Passage) -> Passage:
    """Return the passage as a database can hold it: with U+FFFD for halves of characters and the character 0.

    Raises ValueError for metadata that JSON cannot hold.
    """
    try:
        metadata = json.dumps(passage.metadata, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"passage {passage.id!r}: its metadata is not JSON: {error}"
        ) from error
    return Passage(
        storable(passage.id),
        storable(passage.text),
        storable(passage.title),
        storable(passage.document_id),
        json.loads(storable(metadata)),
    )


def row_of(passage: Passage, cell: int, place: int, tokeniser: Tokeniser) -> Row:
    """Return the row of a storable passage."""
    terms, _ = terms_of(indexed_text(passage), tokeniser)
    metadata = json.dumps(passage.metadata, ensure_ascii=False)
    return Row(
        cell,
        place,
        passage.id,
        passage.document_id,
        passage.title,
        passage.text,
        metadata,
        terms,
    )


def fields_of(passage: Passage) -> bytes:
    """Return the hashes of the values of a passage's title and metadata, ascending."""
    keys = ["title", *(key for key in passage.metadata if key not in OWN_FIELDS)]
    found = {field_hash(key, text) for key in keys for text in texts_of(passage, key)}
    return np.array(sorted(found), dtype="<u8").tobytes()


def terms_of(text: str, tokeniser: Tokeniser) -> tuple[bytes, int]:
    """Return the terms of a text as a row holds them, and how many there are, repeated ones counted again."""
    terms = tokeniser.terms(text)
    counts = Counter(terms)
    keys = np.fromiter(map(term_hash, counts), dtype="<u8", count=len(counts))
    return keys.tobytes() + np.fromiter(
        counts.values(), dtype="<u4", count=len(counts)
    ).tobytes(), len(terms)


def rows_of_ids(
    connection: Connection, database: Database, ids: Sequence[str]
) -> dict[str, tuple[Row, Passage]]:
    """Return the rows and passages of those ids that are there."""
    found = {}
    for row in _rows_having(connection, "id", ids):
        found[row.id] = (row, passage_in(row, database))
    return found


def cells_of_documents(
    connection: Connection, documents: Collection[str]
) -> dict[str, int]:
    """Return the cell of each passage of some documents by its id. Passages without a document are of none."""
    named = sorted(set(documents) - {""})
    return {row.id: row.cell for row in _rows_having(connection, "document", named)}


def _rows_having(
    connection: Connection, column: str, values: Sequence[object]
) -> Iterator[Row]:
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        query = f"SELECT {_ROW} FROM passages WHERE {column} IN ({marks})"
        for row in connection.execute(query, part):
            yield Row(*row)


def insert(connection: Connection, rows: Sequence[Row]) -> None:
    """Write rows of new cells."""
    marks = ", ".join("?" * len(Row._fields))
    connection.executemany(f"INSERT INTO passages VALUES ({marks})", rows)


def insert_vectors(
    connection: Connection, cells: Sequence[int], vectors: Floats
) -> None:
    """Write the vectors (n, d) of cells."""
    data = [vector.tobytes() for vector in np.ascontiguousarray(vectors, dtype="<f4")]
    rows = list(zip(cells, data, strict=True))
    connection.executemany("INSERT INTO vectors VALUES (?, ?)", rows)


def erase(connection: Connection, cells: Iterable[int], revision: int) -> None:
    """Delete the passages in some cells, with all that the database has of them, and list the cells as dead."""
    gone = [(cell,) for cell in cells]
    dead = [(cell, revision) for (cell,) in gone]
    connection.executemany("DELETE FROM passages WHERE cell = ?", gone)
    connection.executemany("INSERT INTO dead VALUES (?, ?)", dead)
    if gone:
        leave_remains(connection)


def leave_remains(connection: Connection) -> None:
    """Note that rows were deleted of which bytes are left until the database is compacted."""
    connection.execute("UPDATE index_state SET erasures = erasures + 1")


def rows_between(connection: Connection, first: int, end: int) -> Iterator[Row]:
    """Yield the rows of the cells from `first` up to `end`."""
    query = (
        f"SELECT {_ROW}, terms FROM passages WHERE cell >= ? AND cell < ? ORDER BY cell"
    )
    cursor = connection.execute(query, (first, end))
    while rows := cursor.fetchmany(_AT_ONCE):
        yield from map(Row._make, rows)


def read_passages(database: Database, cells: Sequence[int]) -> list[Passage | None]:
    """Return the passages in some cells, with None for one that is gone. Raises IndexMismatch for a damaged one."""
    by_cell: dict[int, Passage] = {}
    with database.reading(once=len(cells) <= _AT_ONCE) as connection:
        for row in _rows_having(connection, "cell", cells):
            by_cell[row.cell] = passage_in(row, database)
    return [by_cell.get(cell) for cell in cells]


def read_vectors(database: Database, cells: Ints, dimension: int) -> Floats:
    """Return the vectors of cells, (len(cells), dimension), zeros for one that is gone.

    Raises IndexMismatch for a damaged one.
    """
    wanted, inverse = np.unique(cells, return_inverse=True)
    vectors = np.zeros((len(wanted), dimension), dtype=np.float32)
    left = {cell: row for row, cell in enumerate(wanted.tolist())}
    with database.reading() as connection:
        for cell, data in _vectors_of(connection, list(left)):
            row = left.pop(cell, None)
            if row is not None:
                vectors[row] = _vector_in(cell, data, dimension, database)
        for passage in _rows_having(connection, "cell", list(left)):
            raise damaged(database, f"the vector of cell {passage.cell:,} is missing")
    return vectors[inverse]


def _vectors_of(
    connection: Connection, cells: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """Yield the vectors of ascending cells, and of others between them where these are many."""
    if cells and cells[-1] - cells[0] < 4 * len(cells):
        query = "SELECT cell, data FROM vectors WHERE cell BETWEEN ? AND ?"
        yield from connection.execute(query, (cells[0], cells[-1]))
        return
    for start in range(0, len(cells), _AT_ONCE):
        part = cells[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        query = f"SELECT cell, data FROM vectors WHERE cell IN ({marks})"
        yield from connection.execute(query, part)


def _vector_in(cell: int, data: bytes, dimension: int, database: Database) -> Floats:
    if not isinstance(data, bytes) or len(data) != 4 * dimension:
        raise damaged(database, f"the vector of cell {cell:,} has another size")
    return np.frombuffer(data, "<f4")


def check_rows(database: Database) -> None:
    """Read all passages. Raises IndexMismatch for one that is none."""
    with database.reading() as connection:
        for row in rows_between(connection, 0, _FULL):
            passage_in(row, database)


def read_passage(database: Database, cell: int) -> Passage:
    """Return the passage in a cell. Raises ErasedPassage, and IndexMismatch for a damaged one."""
    (passage,) = read_passages(database, [cell])
    if passage is None:
        raise ErasedPassage(
            f"a passage of {database.where} was deleted or replaced while it was being searched: search again"
        )
    return passage


def passage_in(row: Row, database: Database) -> Passage:
    """Return the passage of a row. Raises IndexMismatch for a damaged one."""
    try:
        metadata = json.loads(row.metadata)
    except (TypeError, ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise damaged(
            database, f"the metadata of the passage in cell {row.cell:,} is not JSON"
        )
    return Passage(row.id, row.text, row.title, row.document, metadata)


def damaged(database: Database, what: str) -> IndexMismatch:
    """Return the error of a row that differs from the one that was written."""
    return IndexMismatch(f"{database.where} is damaged ({what}): {database.remedy}")


Table = Mapping[str, npt.NDArray[Any]]
"""Columns of all passages in corpus order, by the names in COLUMNS."""
