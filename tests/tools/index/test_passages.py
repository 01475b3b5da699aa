"""Rows of passages and vectors in a database: their content, and nothing of them once they are deleted."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ras_agent.contracts.errors import ErasedPassage, IndexMismatch
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.passages import (
    cells_of_documents,
    check_rows,
    field_hash,
    find_rows,
    hash_of,
    hashes,
    indexed_text,
    keys_of,
    passage_in,
    read_passage,
    read_passages,
    read_vectors,
    row_of,
    rows_of_ids,
    storable_passage,
    term_hash,
    terms_of,
)
from ras_agent.tools.index.postings import Postings
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.passages import Row
from ras_agent.tools.store.schema import PASSAGES
from ras_agent.tools.store.sqlite import SqliteDatabase, make_file
from tests.messages import says

PLAIN = Tokeniser(None)
RED = Passage(
    "red", "red fish, blue fish", "Fish", "dr", {"page": 3, "tags": ["a", "b"]}
)
ODD = Passage("東京", "\u2028 “odd” ?")
VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


def row(passage: Passage, cell: int) -> Row:
    return row_of(passage, cell, 10 + cell, PLAIN)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """Three passages in the cells 0 to 2, and their vectors."""
    make_file(tmp_path, [(statement, ()) for statement in PASSAGES])
    database = SqliteDatabase(tmp_path)
    with database.writing() as connection:
        state = "INSERT INTO index_state VALUES (1, 0, 0, 0, 0, 0, 0, 0, 0, '')"
        connection.execute(state)
        connection.passages.add(
            [row(RED, 0), row(ODD, 1), row(Passage("last", "whale"), 2)]
        )
        connection.passages.add_vectors([0, 1, 2], VECTORS[:3])
    yield database
    database.close()


def change(database: SqliteDatabase, statement: str, *values: object) -> None:
    with database.writing() as connection:
        assert connection.execute(statement, values).rowcount


def test_hashes_have_63_bits_and_none_is_0() -> None:
    texts = [f"text {number}" for number in range(1000)] + ["", "\ufffd"]
    values = [hash_of(text) for text in texts]
    assert len({*values}) == len(texts)
    assert all(1 << 62 < value < 1 << 63 for value in values)
    assert hashes(texts).tolist() == values
    assert term_hash("whale") == hash_of("whale")
    assert field_hash("page", "3") == hash_of("page\x003")
    assert hash_of("\ud800") == hash_of("\ufffd")


def test_the_first_row_of_each_value_is_found() -> None:
    column = np.array([7, 5, 7, 9], dtype=np.uint64)
    assert find_rows(column, np.array([9, 7, 8, 7], dtype=np.uint64)).tolist() == [
        3,
        0,
        -1,
        0,
    ]
    assert find_rows(column[:0], np.array([9], dtype=np.uint64)).tolist() == [-1]
    assert find_rows(column, column[:0]).tolist() == []


def test_the_title_is_indexed_before_the_text() -> None:
    assert indexed_text(RED) == "Fish. red fish, blue fish"
    assert indexed_text(Passage("p", "text")) == "text"


@pytest.mark.parametrize("passage", [RED, ODD, Passage("", "")])
def test_a_passage_comes_back_from_its_row(
    passage: Passage, database: SqliteDatabase
) -> None:
    assert storable_passage(passage) == passage
    assert passage_in(row(passage, 4), database) == passage


def test_what_no_database_holds_is_replaced() -> None:
    odd = Passage("a\ud800", "b\0", "c\udfff", "d\0", {"k\ud800": ["v\ud800"]})
    assert storable_passage(odd) == Passage(
        "a\ufffd", "b\ufffd", "c\ufffd", "d\ufffd", {"k\ufffd": ["v\ufffd"]}
    )


def test_metadata_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="passage 'p': its metadata is not JSON"):
        storable_passage(Passage("p", "text", metadata={"when": {1, 2}}))


def test_terms_are_hashes_with_their_counts() -> None:
    blob, length = terms_of("red fish, blue fish", PLAIN)
    postings = Postings.of_terms([blob])
    assert dict(zip(postings.keys.tolist(), postings.counts.tolist(), strict=True)) == {
        hash_of("red"): 1,
        hash_of("fish"): 2,
        hash_of("blue"): 1,
    }
    assert (length, len(blob)) == (4, 3 * 12)
    assert terms_of("...", PLAIN) == (b"", 0)


def test_a_row_has_the_passage_in_plain_columns() -> None:
    made = row(RED, 4)
    assert made[:-2] == (
        4,
        14,
        "red",
        "dr",
        "Fish",
        "red fish, blue fish",
        '{"page": 3, "tags": ["a", "b"]}',
    )
    assert made.keys == keys_of(RED)
    assert made.terms == terms_of(indexed_text(RED), PLAIN)[0]


def test_keys_are_hashes_of_id_document_text_title_and_each_value_of_the_metadata() -> (
    None
):
    fields = [("title", "Fish"), ("page", "3"), ("tags", "a"), ("tags", "b")]
    assert np.frombuffer(keys_of(RED), "<u8").tolist() == [
        *map(hash_of, ("red", "dr", "Fish. red fish, blue fish")),
        *sorted(field_hash(*pair) for pair in fields),
    ]


def test_passages_are_read_by_cell_in_the_order_asked_for(
    database: SqliteDatabase,
) -> None:
    assert read_passages(database, [1, 0, 7, 1]) == [ODD, RED, None, ODD]
    assert read_passages(database, []) == []
    assert read_passage(database, 0) == RED


def test_more_cells_are_read_than_a_statement_has_parameters(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        connection.passages.add(
            [row(Passage(f"{cell}", "text"), cell) for cell in range(3, 1300)],
        )
    read = read_passages(database, range(1299, 2, -1))
    assert [passage.id for passage in read if passage] == [
        f"{cell}" for cell in range(1299, 2, -1)
    ]


def test_rows_are_listed_in_order_without_those_deleted(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        connection.passages.forget([1], 4)
    with database.reading() as connection:
        assert connection.passages.searched(0, 3).cells == [0, 2]
        first = row(RED, 0)
        columns = ([0], [10], [first.keys], [first.terms])
        assert connection.passages.searched(0, 2) == columns


def test_rows_are_found_by_their_ids_and_by_their_documents(
    database: SqliteDatabase,
) -> None:
    with database.reading() as connection:
        ((name, (one, passage)),) = rows_of_ids(
            connection, database, ["red", "blue"]
        ).items()
        assert (name, one.cell, one.place, passage) == ("red", 0, 10, RED)
        assert cells_of_documents(connection, ["dr", "", "dx"]) == {"red": 0}


def test_vectors_are_read_by_cell_in_the_order_asked_for(
    database: SqliteDatabase,
) -> None:
    assert (
        read_vectors(database, np.array([2, 0, 2]), 3).tolist()
        == VECTORS[[2, 0, 2]].tolist()
    )
    assert read_vectors(database, np.array([], dtype=np.int64), 3).shape == (0, 3)


def test_vectors_far_apart_are_read_alike(database: SqliteDatabase) -> None:
    with database.writing() as connection:
        connection.passages.add([row(Passage("far", "away"), 90_000)])
        connection.passages.add_vectors([90_000], VECTORS[3:])
    assert (
        read_vectors(database, np.array([90_000, 0]), 3).tolist()
        == VECTORS[[3, 0]].tolist()
    )


def test_a_deleted_passage_is_none_and_raises_where_it_is_needed(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        connection.passages.forget([0], 7)
    assert read_passages(database, [0, 1]) == [None, ODD]
    assert read_vectors(database, np.array([0, 1]), 3).tolist() == [
        [0, 0, 0],
        VECTORS[1].tolist(),
    ]
    with pytest.raises(
        ErasedPassage, match=says("deleted or replaced", "search again")
    ):
        read_passage(database, 0)
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM dead").fetchall() == [(0, 7)]


def test_nothing_of_a_deleted_row_is_in_the_file_once_it_is_compacted(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with database.writing() as connection:
        # of several pages
        long = Passage("long", "Quinquereme " * 2000, document_id="Nineveh")
        connection.passages.add([row(long, 3)])
        connection.passages.add_vectors([3], VECTORS[3:])
    with database.writing() as connection:
        connection.passages.forget([0, 3], 7)
    assert database.compact()
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        for left in (b"blue fish", b"Quinquereme", b"Nineveh", VECTORS[3].tobytes()):
            assert left not in data
        for text in ("quinquereme", "blue"):
            assert hash_of(text).to_bytes(8, "little") not in data


@pytest.mark.parametrize("metadata", ["", "{", "[]", "7"])
def test_a_passage_without_an_object_of_metadata_is_damaged(
    database: SqliteDatabase, metadata: str
) -> None:
    check_rows(database)
    change(database, "UPDATE passages SET metadata = ? WHERE cell = 0", metadata)
    told = says(database.where, "damaged", "cell 0", "delete the folder")
    for read in (
        lambda: read_passages(database, [1, 0]),
        lambda: check_rows(database),
    ):
        with pytest.raises(IndexMismatch, match=told):
            read()
    assert read_passages(database, [1]) == [ODD]


def test_vectors_of_another_width_are_damaged(database: SqliteDatabase) -> None:
    with pytest.raises(IndexMismatch, match=says("damaged", "vector of cell 0")):
        read_vectors(database, np.array([0]), 4)


def test_rows_can_be_read_by_any_program_of_sqlite(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        query = "SELECT id, text FROM passages WHERE document = 'dr'"
        assert connection.execute(query).fetchall() == [("red", "red fish, blue fish")]
