"""References between rows: the database itself refuses an orphan, and a row that goes takes along the rows that rest on it."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.address import Address
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.store.database import Database


@pytest.fixture(params=["file", "memory", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """The database of an index with a document of a sent file, a passage with a vector, and a name with a vector."""
    if request.param == "memory":
        made = PassageIndex.in_memory([]).database
    else:
        place: Path | Address = (
            tmp_path / "i"
            if request.param == "file"
            else request.getfixturevalue("address")
        )
        made = PassageIndex.create(place).database
    with made.writing() as connection:
        connection.execute(
            "INSERT INTO files VALUES ('z.txt', ?, '')", (b"upload:/z.txt",)
        )
        connection.execute(
            "INSERT INTO documents VALUES ('z', 'z.txt', 'z', '', ?, 1)", (b"",)
        )
        connection.execute(
            "INSERT INTO uploads VALUES (?, ?)", (b"upload:/z.txt", b"bytes")
        )
        connection.execute(
            "INSERT INTO passages VALUES (3, 3, 'p', 'z', '', 'text', '{}', ?, ?)",
            (b"", b""),
        )
        connection.execute("INSERT INTO vectors VALUES (3, ?)", (b"",))
        connection.execute("INSERT INTO kg_names VALUES (2, 'Bell', 'bell')")
        connection.execute("INSERT INTO kg_near VALUES (2, ?)", (b"",))
        connection.execute(
            "INSERT INTO kg_passages VALUES (5, 'z', 1, 0, -1, ?, 'offline')", (b"",)
        )
        connection.execute(
            "INSERT INTO kg_facts (reading, place, subject, predicate, object, start, stop)"
            " VALUES (5, 0, 2, 2, 2, 0, 0)"
        )
        connection.execute("INSERT INTO kg_mentions VALUES (5, 2, 1)")
    return made


def _write(database: Database, statement: str, *values: Any) -> None:
    with database.writing() as connection:
        connection.execute(statement, values)


def _count(database: Database, table: str) -> int:
    with database.reading() as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


@pytest.mark.parametrize(
    ("table", "statement", "values"),
    [
        (
            "documents",
            "INSERT INTO documents VALUES ('y', 'y.txt', 'y', '', ?, 1)",
            [b""],
        ),
        ("files", "DELETE FROM files", []),
        ("uploads", "UPDATE uploads SET path = ?", [b"upload:/y.txt"]),
        ("vectors", "INSERT INTO vectors VALUES (4, ?)", [b""]),
        ("kg_near", "INSERT INTO kg_near VALUES (3, ?)", [b""]),
        ("kg_mentions", "INSERT INTO kg_mentions VALUES (6, 2, 1)", []),
        ("kg_facts", "UPDATE kg_facts SET reading = 6", []),
    ],
)
def test_the_database_refuses_an_orphan(
    database: Database, table: str, statement: str, values: list[bytes]
) -> None:
    with pytest.raises(Exception, match=r"(?i)foreign key constraint"):
        _write(database, statement, *values)
    assert _count(database, table) == 1


@pytest.mark.parametrize(
    ("owner", "tables"),
    [
        ("passages", ["vectors"]),
        ("kg_names", ["kg_near"]),
        ("kg_passages", ["kg_facts", "kg_mentions"]),
    ],
)
def test_a_row_that_goes_takes_along_what_rests_on_it(
    database: Database, owner: str, tables: list[str]
) -> None:
    _write(database, f"DELETE FROM {owner}")
    assert [_count(database, table) for table in tables] == [0] * len(tables)


def test_a_file_may_be_written_anew_within_a_transaction_while_documents_refer_to_it(
    database: Database,
) -> None:
    with database.writing() as connection:
        connection.execute("DELETE FROM files")
        connection.execute(
            "INSERT INTO files VALUES ('z.txt', ?, '2')", (b"upload:/z.txt",)
        )
    assert (_count(database, "documents"), _count(database, "uploads")) == (1, 1)


@pytest.mark.parametrize("column", ["cell", "id"])
def test_no_two_passages_have_one_cell_or_one_id(
    database: Database, column: str
) -> None:
    cell, name = (3, "q") if column == "cell" else (4, "p")
    insert = "INSERT INTO passages VALUES (?, 4, ?, '', '', '', '{}', ?, ?)"
    with pytest.raises(Exception, match=r"(?i)unique"):
        _write(database, insert, cell, name, b"", b"")
    assert _count(database, "passages") == 1
