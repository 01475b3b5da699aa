"""Rows of passages and vectors in a database: their content, and their remains when they are erased."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.errors import ErasedPassage, IndexMismatch
from ras_agent.records import Passage
from ras_agent.tools.index.passages import (
    ERASED,
    NO_VECTOR,
    check_rows,
    erase,
    erase_vectors,
    field_hash,
    find_rows,
    hash_of,
    hashes,
    indexed_text,
    insert,
    insert_vectors,
    passage_in,
    passage_line,
    read_passage,
    read_passages,
    read_vectors,
    row_of,
    rows_between,
    take_out_dead,
    term_hash,
    terms_of,
)
from ras_agent.tools.index.postings import Postings
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.schema import PASSAGES
from ras_agent.tools.store.sqlite import SqliteDatabase, make_file
from tests.messages import says

PLAIN = Tokeniser(None)
RED = Passage(
    "red", "red fish, blue fish", "Fish", "dr", {"page": 3, "tags": ["a", "b"]}
)
ODD = Passage("東京", "\ud800 and \u2028 “odd” \0.")
VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


def row(passage: Passage, cell: int, vector: int = NO_VECTOR) -> Any:
    return row_of(passage, passage_line(passage), cell, 10 + cell, vector, PLAIN)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """Three passages in the cells 0 to 2, and four vectors from number 5 on."""
    make_file(tmp_path, [(statement, ()) for statement in PASSAGES])
    database = SqliteDatabase(tmp_path)
    with database.writing() as connection:
        insert(
            connection,
            [row(RED, 0, 5), row(ODD, 1), row(Passage("last", "whale"), 2, 8)],
        )
        insert_vectors(connection, 5, VECTORS)
    yield database
    database.close()


def change(database: SqliteDatabase, statement: str, *values: object) -> None:
    with database.writing() as connection:
        assert connection.execute(statement, values).rowcount


def test_hashes_take_eight_bytes_and_none_is_that_of_something_erased() -> None:
    texts = [f"text {number}" for number in range(1000)] + ["", "\ud800"]
    values = [hash_of(text) for text in texts]
    assert len({*values}) == len(texts)
    assert all(1 << 62 < value < 1 << 63 for value in values)
    assert ERASED == 1 << 62
    assert hashes(texts).tolist() == values
    assert term_hash("whale") == hash_of("whale")
    assert field_hash("page", "3") == hash_of("page\x003")


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
def test_a_passage_comes_back_from_its_line(passage: Passage) -> None:
    assert passage_in(passage_line(passage)) == passage


def test_metadata_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="passage 'p': its metadata is not JSON"):
        passage_line(Passage("p", "text", metadata={"when": {1, 2}}))


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


def test_a_row_has_the_hashes_of_its_passage_and_of_its_metadata() -> None:
    made = row(RED, 4, 6)
    assert (made.cell, made.place, made.vector, made.length) == (4, 14, 6, 5)
    assert (made.id, made.document, made.text) == (
        hash_of("red"),
        hash_of("dr"),
        hash_of(indexed_text(RED)),
    )
    assert json.loads(made.data) == RED.to_dict()
    expected = {("title", "Fish"), ("page", "3"), ("tags", "a"), ("tags", "b")}
    assert {*np.frombuffer(made.fields, "<u8").tolist()} == {
        field_hash(*pair) for pair in expected
    }


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
        insert(
            connection,
            [row(Passage(f"{cell}", "text"), cell) for cell in range(3, 1300)],
        )
    read = read_passages(database, range(1299, 2, -1))
    assert [passage.id for passage in read if passage] == [
        f"{cell}" for cell in range(1299, 2, -1)
    ]


def test_rows_are_listed_in_order_without_those_erased(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        erase(connection, [1], 4)
    with database.reading() as connection:
        assert [columns[0] for columns in rows_between(connection, 0, 3, database)] == [
            0,
            2,
        ]
        (first,) = rows_between(connection, 0, 2, database)
    assert first == (
        0,
        10,
        hash_of("red"),
        hash_of("dr"),
        hash_of(indexed_text(RED)),
        5,
        5,
        *row(RED, 0)[-2:],
    )


def test_vectors_are_read_by_number_in_the_order_asked_for(
    database: SqliteDatabase,
) -> None:
    assert (
        read_vectors(database, np.array([8, 5, 8]), 3).tolist()
        == VECTORS[[3, 0, 3]].tolist()
    )
    assert read_vectors(database, np.array([], dtype=np.int64), 3).shape == (0, 3)


def test_vectors_far_apart_are_read_alike(database: SqliteDatabase) -> None:
    with database.writing() as connection:
        insert_vectors(connection, 90_000, VECTORS)
    assert (
        read_vectors(database, np.array([90_003, 5]), 3).tolist()
        == VECTORS[[3, 0]].tolist()
    )


def test_an_erased_passage_is_none_and_raises_where_it_is_needed(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        erase(connection, [0], 7)
    assert read_passages(database, [0, 1]) == [None, ODD]
    with pytest.raises(
        ErasedPassage, match=says("deleted or replaced", "search again")
    ):
        read_passage(database, 0)
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM dead").fetchall() == [(0, 7)]


def test_an_erased_row_has_as_many_bytes_of_nothing(database: SqliteDatabase) -> None:
    with database.writing() as connection:
        erase(connection, [0], 7)
        erase_vectors(connection, [5])
    with database.reading() as connection:
        (erased,) = connection.execute(
            "SELECT * FROM passages WHERE cell = 0"
        ).fetchall()
        (vector,) = connection.execute(
            "SELECT * FROM vectors WHERE number = 5"
        ).fetchall()
    before = row(RED, 0, 5)
    blank = [bytes(len(blob)) for blob in (before.data, before.terms, before.fields)]
    assert erased == (0, 10, ERASED, ERASED, ERASED, 5, 5, ERASED, *blank)
    assert vector == (5, ERASED, bytes(12))
    assert read_vectors(database, np.array([5, 6]), 3).tolist() == [
        [0, 0, 0],
        VECTORS[1].tolist(),
    ]


def test_nothing_of_an_erased_row_is_in_the_file_once_its_log_is_empty(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with database.writing() as connection:
        # of several pages
        insert(
            connection,
            [row(Passage("long", "Quinquereme " * 2000, document_id="Nineveh"), 3)],
        )
    with database.writing() as connection:
        erase(connection, [0, 3], 7)
        erase_vectors(connection, [8])
    assert database.sweep()
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        for left in (b"blue fish", b"Quinquereme", b"Nineveh", VECTORS[3].tobytes()):
            assert left not in data
        for text in ("red", "dr", "long", "Nineveh", "quinquereme", "blue"):
            assert hash_of(text).to_bytes(8, "big") not in data
            assert hash_of(text).to_bytes(8, "little") not in data


def test_dead_rows_and_vectors_that_nothing_uses_are_taken_out(
    database: SqliteDatabase,
) -> None:
    with database.writing() as connection:
        erase(connection, [0], 7)
        take_out_dead(connection, {8})
    with database.reading() as connection:
        assert connection.execute("SELECT cell FROM passages").fetchall() == [
            (1,),
            (2,),
        ]
        assert connection.execute("SELECT number FROM vectors").fetchall() == [(8,)]
        assert connection.execute("SELECT * FROM dead").fetchall() == []
    assert read_passages(database, [0, 1]) == [None, ODD]


@pytest.mark.parametrize("column", ["data", "terms", "fields"])
def test_a_row_that_is_not_what_was_written_is_damaged(
    database: SqliteDatabase, column: str
) -> None:
    check_rows(database)
    change(database, f"UPDATE passages SET {column} = ? WHERE cell = 0", b"{}")

    def read() -> object:
        if column == "data":
            return read_passages(database, [1, 0])
        with database.reading() as connection:
            return list(rows_between(connection, 0, 3, database))

    for one in (read, lambda: check_rows(database)):
        with pytest.raises(
            IndexMismatch,
            match=says(database.where, "damaged", "cell 0", "delete the folder"),
        ):
            one()
    assert read_passages(database, [1]) == [ODD]


@pytest.mark.parametrize("data", [b"", bytes(12), bytes(16)])
def test_a_vector_that_is_not_what_was_written_is_damaged(
    database: SqliteDatabase, data: bytes
) -> None:
    change(database, "UPDATE vectors SET data = ? WHERE number = 6", data)
    for read in (
        lambda: read_vectors(database, np.array([5, 6]), 3),
        lambda: check_rows(database),
    ):
        with pytest.raises(
            IndexMismatch, match=says("damaged", "vector 6", "delete the folder")
        ):
            read()


def test_vectors_of_another_width_are_damaged(database: SqliteDatabase) -> None:
    with pytest.raises(IndexMismatch, match=says("damaged", "vector 5")):
        read_vectors(database, np.array([5]), 4)


def test_a_passage_is_damaged_where_its_bytes_are_zeros_without_having_been_erased(
    database: SqliteDatabase,
) -> None:
    change(database, "UPDATE passages SET data = zeroblob(length(data)) WHERE cell = 0")
    with pytest.raises(IndexMismatch, match=says("damaged", "cell 0")):
        read_passage(database, 0)


def test_rows_can_be_read_by_any_program_of_sqlite(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection:
        (data,) = connection.execute(
            "SELECT data FROM passages WHERE cell = 0"
        ).fetchone()
    assert json.loads(data)["text"] == "red fish, blue fish"
