"""The work of every database of an index: transactions, readers during a write, one run over files at a time."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IngestError, StoreError
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.postgres import PostgresDatabase, make_tables
from ras_agent.tools.store.schema import GRAPH, JOURNAL, PASSAGES, UPLOADS
from ras_agent.tools.store.sqlite import SqliteDatabase, make_file
from tests.messages import says

Open = Callable[[], Database]
STATEMENTS: list[tuple[str, tuple[object, ...]]] = [
    ("CREATE TABLE notes (number INTEGER PRIMARY KEY, text TEXT NOT NULL)", ()),
    (PASSAGES[0], ()),
    ("INSERT INTO index_state VALUES (1, 0, 7, 0, 0, 0, 0, 0, 0, '')", ()),
]


def write(database: Database, *texts: str) -> None:
    with database.writing() as connection:
        (last,) = connection.execute("SELECT max(number) FROM notes").fetchone()
        rows = [((last or 0) + number, text) for number, text in enumerate(texts, 1)]
        connection.executemany("INSERT INTO notes VALUES (?, ?)", rows)
        connection.execute("UPDATE index_state SET revision = revision + 1")


def texts(database: Database) -> list[str]:
    with database.reading() as connection:
        return [
            text
            for (text,) in connection.execute("SELECT text FROM notes ORDER BY number")
        ]


@contextmanager
def opening(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Open]:
    """Make a database, and give a function that opens it again, as another process would."""
    opened: list[Database] = []
    if kind == "file":
        make_file(folder, STATEMENTS)
    else:
        address: Address = request.getfixturevalue("address")
        make_tables(address, STATEMENTS)

    def open_it() -> Database:
        opened.append(
            SqliteDatabase(folder) if kind == "file" else PostgresDatabase(address)
        )
        return opened[-1]

    yield open_it
    for one in opened:
        one.close()


@pytest.fixture(params=["file", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    with opening(request.param, request, tmp_path) as open_it:
        yield open_it


@pytest.fixture(params=["memory", "file", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param != "memory":
        with opening(request.param, request, tmp_path) as open_it:
            yield open_it()
        return
    database = SqliteDatabase()
    with database.writing() as connection:
        for statement, values in STATEMENTS:
            connection.execute(statement, values)
    yield database


class TakenBack(Exception):
    """Ends a transaction that is not to be stored."""


def write_and_fail(database: Database, text: str) -> None:
    def write_in_a_transaction() -> None:
        with database.writing():
            write(database, text)
            raise TakenBack

    with pytest.raises(TakenBack):
        write_in_a_transaction()


def test_what_is_written_is_read(database: Database) -> None:
    write(database, "one", "two")
    assert texts(database) == ["one", "two"]


def test_an_error_takes_back_all_of_a_transaction(database: Database) -> None:
    write(database, "one")
    write_and_fail(database, "two")
    assert texts(database) == ["one"]
    assert database.rollbacks == 1
    write(database, "three")
    assert texts(database) == ["one", "three"]


def test_a_transaction_within_another_is_part_of_it(database: Database) -> None:
    with database.writing():
        write(database, "one")
        assert database.is_writing()
    assert not database.is_writing()
    write_and_fail(database, "two")
    assert texts(database) == ["one"]


def test_an_error_within_takes_back_the_outer_transaction(database: Database) -> None:
    def write_both() -> None:
        with database.writing() as outer:
            outer.execute("INSERT INTO notes VALUES (1, 'one')")
            with database.writing() as inner:
                inner.execute("INSERT INTO notes VALUES (2, 'two')")
                raise TakenBack

    with pytest.raises(TakenBack):
        write_both()
    assert texts(database) == []
    write(database, "three")
    assert texts(database) == ["three"]


def test_an_error_that_is_caught_takes_back_the_outer_transaction_all_the_same(
    database: Database,
) -> None:
    def write_on() -> None:
        with database.writing():
            write(database, "one")
            write_and_fail(database, "two")
            write(database, "three")

    with pytest.raises(
        StoreError, match=says("a part of a write failed", "all of it was undone")
    ):
        write_on()
    assert texts(database) == []
    write(database, "four")
    assert texts(database) == ["four"]


def test_a_writer_reads_what_it_has_not_committed_yet_and_others_do_not(
    shared: Open,
) -> None:
    file, other = shared(), shared()
    seen: list[list[str]] = []
    with file.writing():
        write(file, "one")
        assert texts(file) == ["one"]
        assert texts(other) == []
        thread = Thread(target=lambda: seen.append(texts(file)))
        thread.start()
        thread.join()
    assert seen == [[]]
    assert texts(other) == ["one"]


def test_a_task_of_an_event_loop_neither_joins_nor_sees_the_transaction_of_another(
    shared: Open,
) -> None:
    file = shared()

    async def write_one(begun: asyncio.Event, ended: asyncio.Event) -> None:
        with file.writing():
            write(file, "one")
            begun.set()
            await ended.wait()

    async def write_both() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(write_one(begun, ended))
        await begun.wait()
        assert texts(file) == []
        with pytest.raises(StoreError, match=says("another task", "asyncio.to_thread")):
            write(file, "two")
        ended.set()
        await task

    asyncio.run(write_both())
    assert texts(file) == ["one"]


def test_a_reading_sees_one_moment(shared: Open) -> None:
    file = shared()
    write(file, "one")
    with file.reading() as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (1,)
        write(file, "two")
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    assert texts(file) == ["one", "two"]


def test_a_second_writer_waits_for_the_first(shared: Open) -> None:
    file, other, begun = shared(), shared(), Event()

    def write_too() -> None:
        begun.set()
        write(other, "second")

    thread = Thread(target=write_too)
    with file.writing():
        write(file, "first")
        thread.start()
        begun.wait()
        write(file, "first again")
    thread.join()
    assert texts(file) == ["first", "first again", "second"]


def test_its_state_changes_with_each_commit_of_anybody_and_with_nothing_else(
    shared: Open,
) -> None:
    file, other = shared(), shared()
    states = [file.state()]
    texts(file)
    assert file.state() == states[0]
    for database in (file, other, file):
        write(database, "text")
        states.append(file.state())
        assert file.state() == states[-1]
    write_and_fail(file, "text")
    assert file.state() == states[-1]
    assert len({*states}) == 4


def test_connections_of_a_parent_process_are_left_alone(shared: Open) -> None:
    file = shared()
    write(file, "parent")
    file.state()
    assert texts(file) == ["parent"]
    child = (
        os.fork()
        if hasattr(os, "fork")
        else pytest.skip("processes are not forked there")
    )
    if child == 0:
        try:
            write(file, "child")
            os._exit(0 if texts(file) == ["parent", "child"] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    write(file, "parent again")
    assert texts(file) == ["parent", "child", "parent again"]


def test_an_error_of_the_caller_passes_as_it_is(database: Database) -> None:
    with pytest.raises(KeyError), database.reading():
        raise KeyError("mine")
    assert texts(database) == []


def test_one_run_alone_indexes_files(shared: Open) -> None:
    file, other = shared(), shared()
    with file.alone():
        with (
            pytest.raises(IngestError, match="another run is writing this index"),
            other.alone(),
        ):
            raise AssertionError
        write(other, "what is not a run may write")
    with other.alone():
        assert texts(file) == ["what is not a run may write"]


def test_closed_it_can_be_used_again(shared: Open) -> None:
    file = shared()
    write(file, "one")
    file.close()
    assert texts(file) == ["one"]


def test_compaction_keeps_what_there_is(shared: Open) -> None:
    file = shared()
    with file.writing() as connection:
        for statement in (*PASSAGES[1:], *JOURNAL, *UPLOADS, *GRAPH):
            connection.execute(statement)
    write(file, "one")
    assert file.compact()
    file.check()
    assert texts(file) == ["one"]


def test_bytes_and_numbers_of_63_bits_come_back_as_they_were_written(
    shared: Open,
) -> None:
    file = shared()
    with file.writing() as connection:
        connection.execute(
            "CREATE TABLE things (name TEXT PRIMARY KEY, number INTEGER NOT NULL, data BLOB NOT NULL)"
        )
        connection.execute(
            "INSERT INTO things VALUES (?, ?, ?)",
            ("50% \\ ' ä", (1 << 63) - 1, b"\x00\xff'"),
        )
    with file.reading() as connection:
        assert connection.execute("SELECT * FROM things").fetchall() == [
            ("50% \\ ' ä", (1 << 63) - 1, b"\x00\xff'")
        ]


def test_names_are_ordered_by_their_characters(shared: Open) -> None:
    file = shared()
    write(file, "b", "a", "B", "ä", "_")
    with file.reading() as connection:
        assert [
            name
            for (name,) in connection.execute("SELECT text FROM notes ORDER BY text")
        ] == list("B_abä")
