"""Stores passages and vectors as rows in the database of an index. Each row is written once, read by its cell, and
deleted.
"""

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
from ras_agent.tools.store.database import Connection, Database, read_columns

Hashes = npt.NDArray[np.uint64]

_FULL = 1 << 62
"""A bit that is set in every hash, so that no hash is 0."""
COLUMNS = ("cell", "place", "id", "document", "text", "length")
"""The columns of the arrays that are searched: id, document and text are hashes, length is the number of terms."""
# how many parameters a statement has, and how many rows are read at once
_AT_ONCE = 500
_ROW = "cell, place, id, document, title, text, metadata"


class Row(NamedTuple):
    """Holds the columns of the table `passages`; schema.py describes them."""

    cell: int
    place: int
    id: str
    document: str
    title: str
    text: str
    metadata: str
    """As JSON."""
    keys: bytes = b""
    """In the form of `keys_of`; empty in a row that is read."""
    terms: bytes = b""
    """In the form of `terms_of`; empty in a row that is read."""


class SearchedColumns(NamedTuple):
    """Holds the columns of some passages from which the searched arrays are made, one value for each passage."""

    cells: list[int]
    places: list[int]
    keys: list[bytes]
    terms: list[bytes]


def indexed_text(passage: Passage) -> str:
    """Return the title, headings and text of a passage as one text."""
    return with_title(passage.heading, passage.text)


def hash_of(text: str) -> int:
    """Return a hash of `text` in its stored form: 62 bits of a digest, and a 63rd bit that is always set."""
    digest = blake2b(storable(text).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "little") & (_FULL - 1)) | _FULL


@lru_cache(1 << 18)
def term_hash(term: str) -> int:
    """Return the hash of a term."""
    return hash_of(term)


@lru_cache(1 << 12)
def field_hash(key: str, text: str) -> int:
    """Return the hash of a value of a metadata key, both as text."""
    return hash_of(f"{key}\0{text}")


def hashes(texts: Iterable[str]) -> Hashes:
    """Return the hashes of texts."""
    return np.array([hash_of(text) for text in texts], dtype=np.uint64)


def find_rows(column: Hashes, wanted: Hashes) -> Ints:
    """Return the first row at which `column` holds each wanted value, -1 if it is missing; shape (len(wanted),).

    Reads the column once and sorts only the wanted values.
    """
    values, inverse = np.unique(wanted, return_inverse=True)
    rows_of_values = np.full(len(values), -1, dtype=np.int64)
    if len(values):
        at = np.searchsorted(values, column).clip(max=len(values) - 1)
        # in reverse order, so that the first row overwrites later ones
        rows = np.flatnonzero(values[at] == column)[::-1]
        rows_of_values[at[rows]] = rows
    return rows_of_values[inverse]


def storable_passage(passage: Passage) -> Passage:
    """Return the passage in a form that a database can hold: surrogates and null characters become U+FFFD.

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
    """Return the row of a passage, which must be storable."""
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
        keys_of(passage),
        terms,
    )


def keys_of(passage: Passage) -> bytes:
    """Return the hashes of a passage's id, document and indexed text, then those of the values of its title and
    metadata, ascending."""
    names = ["title", *(key for key in passage.metadata if key not in OWN_FIELDS)]
    fields: set[int] = set()
    for name in names:
        fields.update(field_hash(name, text) for text in texts_of(passage, name))
    texts = (passage.id, passage.document_id, indexed_text(passage))
    values = [*map(hash_of, texts), *sorted(fields)]
    return np.array(values, dtype="<u8").tobytes()


def terms_of(text: str, tokeniser: Tokeniser) -> tuple[bytes, int]:
    """Return the terms of a text in the form stored in a row (hashes, then counts), and the number of terms with
    repeats."""
    terms = tokeniser.terms(text)
    counts = Counter(terms)
    keys = np.fromiter(map(term_hash, counts), dtype="<u8", count=len(counts))
    return keys.tobytes() + np.fromiter(
        counts.values(), dtype="<u4", count=len(counts)
    ).tobytes(), len(terms)


def rows_of_ids(
    connection: Connection, database: Database, ids: Sequence[str]
) -> dict[str, tuple[Row, Passage]]:
    """Return the row and the passage of each of `ids` that is stored, by id."""
    found = {}
    for row in _rows_having(connection, "id", ids):
        found[row.id] = (row, passage_in(row, database))
    return found


def cells_of_documents(
    connection: Connection, documents: Collection[str]
) -> dict[str, int]:
    """Return the cell of each passage of the given documents, by passage id. Passages without a document are never
    included."""
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
    """Write rows to new cells."""
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
    """Delete the passages in the given cells, and list these cells as dead since `revision`."""
    gone = [(cell,) for cell in cells]
    dead = [(cell, revision) for (cell,) in gone]
    connection.executemany("DELETE FROM passages WHERE cell = ?", gone)
    connection.executemany("INSERT INTO dead VALUES (?, ?)", dead)
    if gone:
        leave_remains(connection)


def leave_remains(connection: Connection) -> None:
    """Record that rows were deleted whose bytes remain until the database is compacted."""
    connection.execute("UPDATE index_state SET erasures = erasures + 1")


def searched_columns(connection: Connection, first: int, end: int) -> SearchedColumns:
    """Return the columns of the passages in the cells from `first` up to, but not including, `end`."""
    query = """SELECT cell, place, keys, terms FROM passages
        WHERE cell >= ? AND cell < ? ORDER BY cell"""
    columns = SearchedColumns([], [], [], [])
    read_columns(connection.execute(query, (first, end)), columns)
    return columns


def read_passages(database: Database, cells: Sequence[int]) -> list[Passage | None]:
    """Return the passages in the given cells, None for one that was deleted. Raises IndexMismatch for a damaged one."""
    by_cell: dict[int, Passage] = {}
    with database.reading(once=len(cells) <= _AT_ONCE) as connection:
        for row in _rows_having(connection, "cell", cells):
            by_cell[row.cell] = passage_in(row, database)
    return [by_cell.get(cell) for cell in cells]


def read_vectors(database: Database, cells: Ints, dimension: int) -> Floats:
    """Return the vectors of cells, (len(cells), dimension), with zeros for a cell whose passage is gone.

    Raises IndexMismatch for a damaged or missing vector.
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
    """Yield the vectors of the given cells, which ascend; if they are dense, vectors of cells between them are
    included."""
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
    """Read all passages. Raises IndexMismatch for a damaged one."""
    with database.reading() as connection:
        query = f"SELECT {_ROW} FROM passages ORDER BY cell"
        for row in connection.execute(query):
            passage_in(Row(*row), database)


def read_passage(database: Database, cell: int) -> Passage:
    """Return the passage in a cell. Raises ErasedPassage if it is gone, and IndexMismatch if it is damaged."""
    (passage,) = read_passages(database, [cell])
    if passage is None:
        raise ErasedPassage(
            f"a passage of {database.where} was deleted or replaced while it was being searched: search again"
        )
    return passage


def passage_in(row: Row, database: Database) -> Passage:
    """Return the passage of a row. Raises IndexMismatch if the row is damaged."""
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
    """Return the error for a damaged database.

    Args:
        what: describes the damage.
    """
    return IndexMismatch(f"{database.where} is damaged ({what}): {database.remedy}")


Table = Mapping[str, npt.NDArray[Any]]
"""Columns of all passages in corpus order, by the names in COLUMNS."""
