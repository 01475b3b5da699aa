"""Rows of passages and vectors in the database of an index: written once, read by number, overwritten in place."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import ErasedPassage, IndexMismatch
from ras_agent.filters import OWN_FIELDS, texts_of
from ras_agent.records import Passage
from ras_agent.text.titles import with_title
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.database import Connection, Database

Hashes = npt.NDArray[np.uint64]

_FULL = 1 << 62
"""Set in every hash and checksum, so that each takes eight bytes in the database and can be overwritten in place."""
ERASED = _FULL
"""The hash of nothing, which replaces the hashes of an erased passage."""
NO_VECTOR = -1
_LOW = (1 << 31) - 1
COLUMNS = ("cell", "place", "id", "document", "text", "vector", "length")
_PACKED = struct.Struct(f"<{len(COLUMNS)}q")
_AT_ONCE = 500  # parameters of one statement, rows of one reading


class Row(NamedTuple):
    """Row of the table `passages`, as it is written.

    id, document, text: hashes of the passage's id, of its document's id, and of its indexed text. length: in terms.
    """

    cell: int
    place: int
    id: int
    document: int
    text: int
    vector: int
    length: int
    crc: int
    data: bytes
    terms: bytes
    fields: bytes


def indexed_text(passage: Passage) -> str:
    """Return title, headings and text as one."""
    return with_title(passage.heading, passage.text)


def hash_of(text: str) -> int:
    """Return 62 bits of a digest of `text`, and a 63rd that is always set."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
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


def passage_line(passage: Passage) -> bytes:
    """Return the passage as JSON. Raises ValueError for metadata that JSON cannot hold."""
    try:
        line = json.dumps(passage.to_dict(), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"passage {passage.id!r}: its metadata is not JSON: {error}"
        ) from error
    # text may hold lone surrogates, which plain UTF-8 cannot
    return line.encode("utf-8", "surrogatepass")


def row_of(
    passage: Passage,
    line: bytes,
    cell: int,
    place: int,
    vector: int,
    tokeniser: Tokeniser,
) -> Row:
    """Return the row of a passage. line: the passage as JSON."""
    text = indexed_text(passage)
    terms, length = terms_of(text, tokeniser)
    fields = np.array(sorted(_fields_of(passage)), dtype="<u8").tobytes()
    identity = hash_of(passage.id), hash_of(passage.document_id), hash_of(text)
    columns = cell, place, *identity, vector, length
    return Row(
        *columns,
        _data_crc(line) | checksum(as_bytes(columns), terms, fields),
        line,
        terms,
        fields,
    )


def _fields_of(passage: Passage) -> set[int]:
    keys = ["title", *(key for key in passage.metadata if key not in OWN_FIELDS)]
    return {field_hash(key, text) for key in keys for text in texts_of(passage, key)}


def terms_of(text: str, tokeniser: Tokeniser) -> tuple[bytes, int]:
    """Return the terms of a text as a row holds them, and how many there are, repeated ones counted again."""
    terms = tokeniser.terms(text)
    counts = Counter(terms)
    keys = np.fromiter(map(term_hash, counts), dtype="<u8", count=len(counts))
    return keys.tobytes() + np.fromiter(
        counts.values(), dtype="<u4", count=len(counts)
    ).tobytes(), len(terms)


def check_free(
    connection: Connection, database: Database, cell: int, vector: int
) -> None:
    """Raise IndexMismatch if a cell or a vector's number from those on is taken, which come next."""
    for table, name, number in (
        ("passages", "cell", cell),
        ("vectors", "number", vector),
    ):
        if connection.execute(
            f"SELECT 1 FROM {table} WHERE {name} >= ?", (number,)
        ).fetchone():
            raise damaged(
                database, f"a row of {table} has a number that was never given"
            )


def insert(connection: Connection, rows: Sequence[Row]) -> None:
    """Write rows of new cells."""
    connection.executemany(f"INSERT INTO passages VALUES ({', '.join('?' * 11)})", rows)


def insert_vectors(connection: Connection, first: int, vectors: Floats) -> None:
    """Write vectors (n, d) under the numbers from `first` on."""
    data = [vector.tobytes() for vector in np.ascontiguousarray(vectors, dtype="<f4")]
    rows = [
        (first + number, _vector_crc(first + number, one), one)
        for number, one in enumerate(data)
    ]
    connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)


def erase(connection: Connection, cells: Iterable[int], revision: int) -> None:
    """List cells as dead, and overwrite their contents."""
    listed = list(cells)
    connection.executemany(
        "INSERT INTO dead VALUES (?, ?)", [(cell, revision) for cell in listed]
    )
    blank = f"""UPDATE passages SET id = {ERASED}, document = {ERASED}, text = {ERASED}, crc = {ERASED},
        data = zeroblob(length(data)), terms = zeroblob(length(terms)), fields = zeroblob(length(fields))
        WHERE cell = ?"""
    connection.executemany(blank, [(cell,) for cell in listed])


def erase_vectors(connection: Connection, numbers: Iterable[int]) -> None:
    """Overwrite vectors that no passage uses any more."""
    blank = f"UPDATE vectors SET crc = {ERASED}, data = zeroblob(length(data)) WHERE number = ?"
    connection.executemany(blank, [(number,) for number in numbers])


def take_out_dead(connection: Connection, used: set[int]) -> None:
    """Delete the rows of dead cells, and the vectors with numbers that are not in `used`."""
    connection.execute("DELETE FROM passages WHERE cell IN (SELECT cell FROM dead)")
    numbers = [
        number
        for (number,) in connection.execute("SELECT number FROM vectors")
        if number not in used
    ]
    connection.executemany(
        "DELETE FROM vectors WHERE number = ?", [(number,) for number in numbers]
    )


def rows_between(
    connection: Connection, first: int, end: int, database: Database
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of COLUMNS, then terms and fields, of the living cells from `first` up to `end`.

    Raises IndexMismatch for a damaged row.
    """
    query = f"""SELECT {", ".join(COLUMNS)}, terms, fields, crc FROM passages
        WHERE cell >= ? AND cell < ? AND crc <> {ERASED} ORDER BY cell"""
    cursor = connection.execute(query, (first, end))
    while rows := cursor.fetchmany(_AT_ONCE):
        for *columns, terms, fields, crc in rows:
            try:
                whole = (
                    crc & _LOW == checksum(_PACKED.pack(*columns), terms, fields) & _LOW
                )
            except (
                struct.error,
                TypeError,
            ):  # a damaged page may hold values that are no numbers
                whole = False
            if not whole:
                raise damaged(
                    database,
                    f"the passage in cell {columns[0]:,} is not what was written",
                )
            yield *columns, terms, fields


def read_passages(database: Database, cells: Sequence[int]) -> list[Passage | None]:
    """Return the passages in some cells, with None for an erased one. Raises IndexMismatch for a damaged one."""
    by_cell: dict[int, Passage | None] = {}
    with database.reading(once=len(cells) <= _AT_ONCE) as connection:
        for start in range(0, len(cells), _AT_ONCE):
            part = cells[start : start + _AT_ONCE]
            query = f"SELECT cell, crc, data FROM passages WHERE cell IN ({', '.join('?' * len(part))})"
            for cell, crc, data in connection.execute(query, part):
                if crc != ERASED and crc & ~_LOW != _data_crc(data):
                    raise damaged(
                        database,
                        f"the passage in cell {cell:,} is not what was written",
                    )
                by_cell[cell] = None if crc == ERASED else passage_in(data)
    return [by_cell.get(cell) for cell in cells]


def read_vectors(
    database: Database, numbers: Ints, dimension: int, epoch: int | None = None
) -> Floats:
    """Return vectors by number, (len(numbers), dimension). Raises IndexMismatch for a damaged one.

    epoch: that of the numbers; in a later one those that were erased are missing, and zeros as all that are erased.
    """
    wanted, inverse = np.unique(numbers, return_inverse=True)
    vectors = np.zeros((len(wanted), dimension), dtype=np.float32)
    row = {number: row for row, number in enumerate(wanted.tolist())}
    width = 4 * dimension
    with database.reading() as connection:
        listed = list(row)
        dense = len(listed) and listed[-1] - listed[0] < 4 * len(listed)
        step = len(listed) if dense else _AT_ONCE
        for start in range(0, len(listed), max(step, 1)):
            part = listed[start : start + step]
            if dense:
                found = connection.execute(
                    "SELECT number, crc, data FROM vectors WHERE number BETWEEN ? AND ?",
                    (part[0], part[-1]),
                )
            else:
                query = f"SELECT number, crc, data FROM vectors WHERE number IN ({', '.join('?' * len(part))})"
                found = connection.execute(query, part)
            for number, crc, data in found:
                if number not in row:
                    continue
                if crc != ERASED and (
                    crc != _vector_crc(number, data) or len(data) != width
                ):
                    raise damaged(
                        database, f"vector {number:,} is not what was written"
                    )
                if crc != ERASED:
                    vectors[row[number]] = np.frombuffer(data, "<f4")
                del row[number]
        if (
            row
            and epoch is not None
            and connection.execute("SELECT epoch FROM index_state").fetchone()
            != (epoch,)
        ):
            row = {}
    if row:
        raise damaged(database, f"vector {next(iter(row)):,} is missing")
    return vectors[inverse]


def check_rows(database: Database) -> None:
    """Read all passages and vectors. Raises IndexMismatch for a row that differs from the one that was written."""
    with database.reading() as connection:
        cells = [
            cell
            for (cell,) in connection.execute("SELECT cell FROM passages ORDER BY cell")
        ]
        for start in range(0, len(cells), _AT_ONCE):
            read_passages(database, cells[start : start + _AT_ONCE])
        for _ in rows_between(connection, 0, _FULL, database):
            pass
        for number, crc, data in connection.execute(
            "SELECT number, crc, data FROM vectors"
        ):
            if crc != ERASED and crc != _vector_crc(number, data):
                raise damaged(database, f"vector {number:,} is not what was written")


def leave_remains(connection: Connection) -> None:
    """Have erased text overwritten in the index's files, too, once this is committed."""
    connection.execute(
        "UPDATE index_state SET remains = revision + 1 WHERE remains = 0"
    )


def read_passage(database: Database, cell: int) -> Passage:
    """Return the passage in a cell. Raises ErasedPassage, and IndexMismatch for a damaged one."""
    (passage,) = read_passages(database, [cell])
    if passage is None:
        raise ErasedPassage(
            f"a passage of {database.where} was deleted or replaced while it was being searched: search again"
        )
    return passage


def passage_in(data: bytes) -> Passage:
    """Return the passage of a row."""
    return Passage.from_dict(json.loads(data.decode("utf-8", "surrogatepass")))


def checksum(*blobs: bytes, number: int | None = None) -> int:
    """Return 31 bits of a checksum, never 0, so that it is not that of an erased row, and a 63rd that is set.

    number: of up to 64 bits, which are summed first. A value that is not bytes, as a cell of a damaged page can be, has
    -1, the sum of nothing that was ever written.
    """
    crc = 0 if number is None else crc_of_number(number)
    try:
        for blob in blobs:
            crc = zlib.crc32(blob, crc)
    except TypeError:
        return -1
    return _FULL | crc & _LOW | 1


def crc_of_number(number: int) -> int:
    """Return the CRC-32 of a number, with which that of its row begins."""
    return zlib.crc32((number & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little"))


def checksums(crcs: Ints) -> Ints:
    """Return the values of `checksum` for rows of which the sums are known."""
    return _FULL | crcs & _LOW | 1


def _data_crc(data: bytes) -> int:
    """Return the checksum of a passage's stored JSON, shifted to where a row's checksum has it.

    The lower half is of the hashes and terms, so that the data to search is checked without reading the text.
    """
    return _FULL | (checksum(data) & _LOW) << 31


def _vector_crc(number: int, data: bytes) -> int:
    return checksum(as_bytes([number]), data)


def as_bytes(numbers: Sequence[int]) -> bytes:
    """Return whole numbers as checksums read them."""
    return np.array(numbers, "<i8").tobytes()


def damaged(database: Database, what: str) -> IndexMismatch:
    """Return the error of a row that differs from the one that was written."""
    return IndexMismatch(f"{database.where} is damaged ({what}): {database.remedy}")


Table = Mapping[str, npt.NDArray[Any]]
"""Columns of all passages in corpus order, by the names in COLUMNS."""
