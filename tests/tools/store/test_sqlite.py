"""A database of SQLite: transactions, readers during a write, and nothing left of erased rows."""

import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import (
    IndexMismatch,
    IndexNotFound,
    IngestError,
    StoreError,
)
from ras_agent.tools.store import sqlite as sqlite_module
from ras_agent.tools.store.schema import JOURNAL, PASSAGES, UPLOADS
from ras_agent.tools.store.sqlite import FILE, SqliteDatabase, make_file
from tests.messages import says

TABLE = "CREATE TABLE notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL)"


def write(database: SqliteDatabase, *texts: str) -> None:
    with database.writing() as connection:
        connection.executemany(
            "INSERT INTO notes (text) VALUES (?)", [(text,) for text in texts]
        )


def texts(database: SqliteDatabase) -> list[str]:
    with database.reading() as connection:
        return [
            text
            for (text,) in connection.execute("SELECT text FROM notes ORDER BY number")
        ]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteDatabase]:
    make_file(tmp_path, [(TABLE, ())])
    database = SqliteDatabase(tmp_path)
    yield database
    database.close()


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest) -> SqliteDatabase:
    if request.param == "file":
        made: SqliteDatabase = request.getfixturevalue("file")
        return made
    database = SqliteDatabase()
    with database.writing() as connection:
        connection.execute(TABLE)
    return database


class TakenBack(Exception):
    """Ends a transaction that is not to be stored."""


def write_and_fail(database: SqliteDatabase, text: str) -> None:
    def write_in_a_transaction() -> None:
        with database.writing():
            write(database, text)
            raise TakenBack

    with pytest.raises(TakenBack):
        write_in_a_transaction()


def test_a_transaction_is_on_the_disk_when_it_has_ended(file: SqliteDatabase) -> None:
    with file.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_a_file_that_was_made_anew_is_read_anew(
    file: SqliteDatabase, tmp_path: Path
) -> None:
    write(file, "old")
    before = file.state()
    (tmp_path / "index.sqlite").unlink()
    with pytest.raises(
        IndexNotFound,
        match=says(str(tmp_path), "holds no index any more", "ras-agent index"),
    ):
        file.state()
    for path in tmp_path.iterdir():
        path.unlink()
    make_file(tmp_path, [(TABLE, ())])
    assert file.state() != before
    assert texts(file) == []
    write(file, "new")
    assert texts(SqliteDatabase(tmp_path)) == ["new"]


def test_a_file_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=says("index.sqlite.new", "could not be written")
    ):
        make_file(tmp_path, [(TABLE, ()), ("no SQL", ())])
    assert not (tmp_path / "index.sqlite").exists()
    make_file(tmp_path, [(TABLE, ()), ("INSERT INTO notes VALUES (?, ?)", (1, "one"))])
    assert [path.name for path in tmp_path.iterdir()] == ["index.sqlite"]
    assert texts(SqliteDatabase(tmp_path)) == ["one"]


def test_a_log_that_was_left_beside_no_file_is_not_read_into_a_new_one(
    tmp_path: Path,
) -> None:
    for folder in (tmp_path / "old", tmp_path / "new"):
        folder.mkdir()
    make_file(tmp_path / "old", [(TABLE, ())])
    old = SqliteDatabase(tmp_path / "old")
    write(old, "of the past")
    log = (tmp_path / "old" / "index.sqlite-wal").read_bytes()
    (tmp_path / "new" / "index.sqlite-wal").write_bytes(log)
    make_file(tmp_path / "new", [(TABLE, ())])
    assert texts(SqliteDatabase(tmp_path / "new")) == []


def test_nothing_is_left_of_what_was_overwritten_and_deleted(
    file: SqliteDatabase, tmp_path: Path
) -> None:
    write(file, *(f"secret{number}" * 3 for number in range(500)))
    with file.writing() as connection:
        connection.execute("UPDATE notes SET text = 'open' WHERE number <= 250")
        connection.execute("DELETE FROM notes WHERE number > 250")
    assert file.compact()
    assert (tmp_path / "index.sqlite-wal").stat().st_size == 0
    assert b"secret" not in (tmp_path / "index.sqlite").read_bytes()


def test_the_log_cannot_be_emptied_while_a_reader_needs_it(
    file: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "_LOG_WAITS", 0)
    write(file, "secret")
    other = SqliteDatabase(tmp_path)
    with other.reading() as connection:
        assert connection.execute("SELECT text FROM notes").fetchone() == ("secret",)
        with file.writing() as writer:
            writer.execute("UPDATE notes SET text = 'open'")
        assert not file.compact()
    assert file.compact()
    assert texts(other) == ["open"]
    with file.writing() as connection:  # a writer waits for others as long as before
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (3_600_000,)


def test_what_is_in_memory_is_compacted_too() -> None:
    database = SqliteDatabase()
    assert database.compact()
    database.check()
    assert database.state() is None
    with database.alone():
        pass
    database.close()


def test_compaction_gives_back_the_space_of_deleted_rows(
    file: SqliteDatabase, tmp_path: Path
) -> None:
    write(file, *("text" * 100 for _ in range(1000)))
    file.compact()
    size = (tmp_path / "index.sqlite").stat().st_size
    with file.writing() as connection:
        connection.execute("DELETE FROM notes WHERE number > 10")
    file.compact()
    assert (tmp_path / "index.sqlite").stat().st_size < size / 10
    assert len(texts(file)) == 10


ALONE = """
import sys
from pathlib import Path
from ras_agent.contracts.errors import IngestError
from ras_agent.tools.store.sqlite import SqliteDatabase

try:
    with SqliteDatabase(Path(sys.argv[1])).alone():
        print("alone")
except IngestError as error:
    print(error)
"""


def test_one_process_alone_indexes_files(file: SqliteDatabase, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", ALONE, str(tmp_path)]
    with file.alone():
        told = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout
        assert (
            told
            == f"{tmp_path}: another run is writing this index; wait for it to end\n"
        )
        with (
            pytest.raises(IngestError, match="another run is writing this index"),
            SqliteDatabase(tmp_path).alone(),
        ):
            pass
        write(SqliteDatabase(tmp_path), "what is not a run may write")
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == "alone\n"
    )


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="lists the open files of this process as Linux does",
)
def test_closed_it_holds_no_file_open_and_can_be_used_again(
    file: SqliteDatabase, tmp_path: Path
) -> None:
    def listed() -> list[str]:
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{name}"))
            except FileNotFoundError:  # that of the listing itself
                continue
        return [path for path in found if path.startswith(str(tmp_path))]

    for text in ("one", "two"):
        write(file, text)
        file.state()
        assert texts(file)[-1] == text
        assert listed()
        file.close()
        assert listed() == []
        assert [path.name for path in tmp_path.iterdir()] == ["index.sqlite"]
    assert texts(file) == ["one", "two"]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """The file of a database of several pages, which nobody has open."""
    make_file(tmp_path, [(TABLE, ())])
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as connection, connection:
        connection.executemany(
            "INSERT INTO notes (text) VALUES (?)", [("text" * 100,) for _ in range(200)]
        )
    return tmp_path / "index.sqlite"


DAMAGES: dict[str, Any] = {
    "nothing": lambda data: b"",
    "garbage": lambda data: b"\x9c" * len(data),
    "half": lambda data: data[: len(data) // 2 // 4096 * 4096],
    "other pages": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_with_the_remedy(large: Path, damage: str) -> None:
    large.write_bytes(DAMAGES[damage](large.read_bytes()))
    told = says(
        str(large),
        "is damaged",
        "delete the folder",
        "index its files again with `ras-agent index FILES",
    )
    with pytest.raises(IndexMismatch, match=told):
        texts(SqliteDatabase(large.parent))
    if damage != "nothing":  # that is a whole database without tables
        with pytest.raises(IndexMismatch, match=told):
            SqliteDatabase(large.parent).check()


def test_damage_that_no_reading_meets_is_found_by_the_check(large: Path) -> None:
    SqliteDatabase(large.parent).check()
    data = large.read_bytes()
    large.write_bytes(data[:-4096] + bytes(4096))
    with pytest.raises(IndexMismatch, match=says(str(large), "is damaged")):
        SqliteDatabase(large.parent).check()


def test_what_is_no_file_that_can_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").mkdir()
    with pytest.raises(
        StoreError,
        match=says(str(tmp_path / "index.sqlite"), "could not be used", "again"),
    ):
        texts(SqliteDatabase(tmp_path))


def test_a_full_disk_is_told_as_one(file: SqliteDatabase, tmp_path: Path) -> None:
    write(file, "one")
    with file.writing() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
    told = says(
        str(tmp_path / "index.sqlite"),
        "could not be written",
        "the disk is full",
        "make room",
        "again",
    )
    with pytest.raises(StoreError, match=told):
        write(file, "text" * 10_000)
    assert texts(file) == ["one"]


def test_a_row_that_is_there_twice_is_no_damage(database: SqliteDatabase) -> None:
    with (
        pytest.raises(Exception, match="UNIQUE") as raised,
        database.writing() as connection,
    ):
        connection.executemany("INSERT INTO notes VALUES (1, ?)", [("one",), ("two",)])
    assert not isinstance(raised.value, IndexMismatch)
    assert texts(database) == []


def test_a_folder_that_cannot_be_written_can_be_read(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    database = SqliteDatabase(large.parent)
    assert len(texts(database)) == 200
    assert database.state() == database.state()
    assert [path.name for path in large.parent.iterdir()] == ["index.sqlite"]
    with pytest.raises(
        StoreError, match=says(str(large), "could not be used", "can be written")
    ):
        write(database, "more")


def test_no_copy_of_a_deleted_name_is_left_in_the_file(tmp_path: Path) -> None:
    make_file(
        tmp_path, [(statement, ()) for statement in (*PASSAGES, *JOURNAL, *UPLOADS)]
    )
    # in no order, so that rows move; without the compaction, copies of two in a thousand are left
    database, draw = SqliteDatabase(tmp_path), random.Random(0)
    names = [
        f"{draw.getrandbits(64):016x}{'x' * draw.randrange(30)}" for _ in range(12_000)
    ]
    gone = names[::6]
    with database.writing() as connection:
        connection.execute(
            "INSERT INTO files VALUES ('a.jsonl', ?, '')", (b"/a.jsonl",)
        )
    for start in range(0, 12_000, 500):
        with database.writing() as connection:
            rows = [
                (name, "a.jsonl", name[::-1], "line 1", b"", 1)
                for name in names[start : start + 500]
            ]
            connection.executemany(
                "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?)", rows
            )
    with database.writing() as connection:
        connection.executemany(
            "DELETE FROM documents WHERE id = ?", [(name,) for name in gone]
        )
    assert database.compact()
    left = set(re.findall(rb"(?=([0-9a-f]{16}))", (tmp_path / FILE).read_bytes()))
    assert [
        name for name in gone if left & {name[:16].encode(), name[15::-1].encode()}
    ] == []
    database.check()
