"""Reads and writes passages and vectors as rows of an index. Each is written once, read by its cell, and deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.config.filters import OWN_FIELDS, texts_of
from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import ErasedPassage, IndexMismatch
from ras_agent.contracts.records import Passage
from ras_agent.text.normal_form import storable
from ras_agent.text.titles import with_title
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.passages import Row
from ras_agent.tools.store.statements import PARAMETERS
from ras_agent.tools.store.transaction import Transaction

Hashes = npt.NDArray[np.uint64]

_FULL = 1 << 62
"""A bit that is set in every hash, so that no hash is 0."""
COLUMNS = ("cell", "place", "id", "document", "text", "length")
"""The columns of the arrays that are searched: id, document and text are hashes, length is the number of terms."""


def indexed_text(passage: Passage) -> str:
    """Return the title, headings and text of a passage as one text."""
    return with_title(passage.heading, passage.text)


def hash_of(text: str) -> int:
    """Return a hash of `text` in its stored form: 62 bits of a digest, and a 63rd bit that is always set."""
    data = storable(text).encode()
    digest = blake2b(data, digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return (number & (_FULL - 1)) | _FULL


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
    numbers = [hash_of(text) for text in texts]
    return np.array(numbers, dtype=np.uint64)


def find_rows(column: Hashes, wanted: Hashes) -> Ints:
    """Return the first row at which `column` holds each wanted value, -1 if it is missing; shape (len(wanted),).

    Reads the column once and sorts only the wanted values.
    """
    values, inverse = np.unique(wanted, return_inverse=True)
    rows_of_values = np.full(len(values), -1, dtype=np.int64)
    if len(values):
        last = len(values) - 1
        at = np.searchsorted(values, column).clip(max=last)
        rows = np.flatnonzero(values[at] == column)
        rows = rows[::-1]  # so that the first row overwrites later ones
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
            f"passage {passage.id!r}: its metadata is not JSON ({error}): use texts, numbers, lists and mappings"
        ) from error
    return Passage(
        storable(passage.id),
        storable(passage.text),
        storable(passage.title),
        storable(passage.document_id),
        json.loads(storable(metadata)),
    )


def row_of(passage: Passage, cell: int, place: int, tokeniser: Tokeniser) -> Row:
    """Return a passage as a row of the database.

    Args:
        passage: a passage that a database can hold, see `storable_passage`.
        cell: the number of the row.
        place: the passage's position in the corpus.
        tokeniser: splits its text into terms.
    """
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
    names = passage.metadata.keys() - OWN_FIELDS
    fields: set[int] = set()
    for name in ("title", *names):
        for text in texts_of(passage, name):
            fields.add(field_hash(name, text))
    texts = (passage.id, passage.document_id, indexed_text(passage))
    keys = [*map(hash_of, texts), *sorted(fields)]
    return np.array(keys, dtype="<u8").tobytes()


def terms_of(text: str, tokeniser: Tokeniser) -> tuple[bytes, int]:
    """Return the terms of a text in the form stored in a row (hashes, then counts), and the number of terms with
    repeats."""
    terms = tokeniser.terms(text)
    occurrences = Counter(terms)
    size = len(occurrences)
    hashed = np.fromiter(map(term_hash, occurrences), dtype="<u8", count=size)
    counts = np.fromiter(occurrences.values(), dtype="<u4", count=size)
    return hashed.tobytes() + counts.tobytes(), len(terms)


def rows_of_ids(
    transaction: Transaction, database: Database, ids: Sequence[str]
) -> dict[str, tuple[Row, Passage]]:
    """Return the row and the passage of each of `ids` that is stored, by id."""
    found = {}
    for row in transaction.passages.having("id", ids):
        found[row.id] = (row, passage_in(row, database))
    return found


def cells_of_documents(
    transaction: Transaction, documents: Collection[str]
) -> dict[str, int]:
    """Return the cell of each passage of the given documents, by passage id. Passages without a document are never
    included."""
    named = sorted(set(documents) - {""})
    rows = transaction.passages.having("document", named)
    return {row.id: row.cell for row in rows}


def read_passages(database: Database, cells: Sequence[int]) -> list[Passage | None]:
    """Return the passages in the given cells, None for one that was deleted. Raises IndexMismatch for a damaged one."""
    by_cell: dict[int, Passage] = {}
    is_one_query = len(cells) <= PARAMETERS
    with database.reading(once=is_one_query) as transaction:
        for row in transaction.passages.having("cell", cells):
            by_cell[row.cell] = passage_in(row, database)
    return [by_cell.get(cell) for cell in cells]


def read_vectors(database: Database, cells: Ints, dimension: int) -> Floats:
    """Return the vectors of cells, (len(cells), dimension), with zeros for a cell whose passage is gone.

    Raises IndexMismatch for a damaged or missing vector.
    """
    wanted, inverse = np.unique(cells, return_inverse=True)
    vectors = np.zeros((len(wanted), dimension), dtype=np.float32)
    left = {cell: row for row, cell in enumerate(wanted.tolist())}
    with database.reading() as transaction:
        for cell, data in transaction.passages.vectors_of(list(left)):
            row = left.pop(cell, None)
            if row is not None:
                vectors[row] = _vector_in(cell, data, dimension, database)
        for passage in transaction.passages.having("cell", list(left)):
            problem = f"the vector of cell {passage.cell:,} is missing"
            raise damaged(database, problem)
    return vectors[inverse]


def _vector_in(cell: int, data: bytes, dimension: int, database: Database) -> Floats:
    if not isinstance(data, bytes) or len(data) != 4 * dimension:
        raise damaged(database, f"the vector of cell {cell:,} has another size")
    return np.frombuffer(data, "<f4")


def check_rows(database: Database) -> None:
    """Read all passages. Raises IndexMismatch for a damaged one."""
    with database.reading() as transaction:
        for row in transaction.passages.all():
            passage_in(row, database)


def read_passage(database: Database, cell: int) -> Passage:
    """Return the passage in a cell, a row of the database. Raises ErasedPassage if it was deleted, IndexMismatch if
    damaged.
    """
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
        problem = f"the metadata of the passage in cell {row.cell:,} is not JSON"
        raise damaged(database, problem)
    return Passage(row.id, row.text, row.title, row.document, metadata)


def damaged(database: Database, what: str) -> IndexMismatch:
    """Return the error for a damaged database.

    Args:
        what: describes the damage.
    """
    return IndexMismatch(f"{database.where} is damaged ({what}): {database.remedy}")


Table = Mapping[str, npt.NDArray[Any]]
"""Columns of all passages in corpus order, by the names in COLUMNS."""
