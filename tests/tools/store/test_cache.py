"""Caches in a file and in PostgreSQL: the first value stays; a locked, full or damaged file is reported."""

import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IndexExists, SettingsError, StoreError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.cache import ReplyCache
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.store.cache import StoredCache
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.messages import says

TURNS = (Turn("user", "Who?"),)
Open = Callable[[str], StoredCache]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "facts.sqlite"


@pytest.fixture(params=["file", "postgres"])
def cache(request: pytest.FixtureRequest, path: Path) -> Open:
    """The opener of a cache of a kind, as another process would."""
    place = path if request.param == "file" else request.getfixturevalue("address")
    return lambda kind: StoredCache(place, kind)


@pytest.fixture
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that holds the file for itself until it is closed."""
    StoredCache(path, "facts").put("a", b"1")
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def cache_of(path: Path, patience: float = 0.05) -> StoredCache:
    return StoredCache(path, "facts", patience)


def test_the_first_value_for_a_key_stays(cache: Open) -> None:
    facts = cache("facts")
    assert facts.get("a") is None
    facts.put("a", b'"first \xe2\x98\x8e"', "about a")
    cache("facts").put("a", b"second")
    assert (cache("facts").get("a"), len(facts)) == (b'"first \xe2\x98\x8e"', 1)


def test_kinds_do_not_see_each_other(cache: Open) -> None:
    facts, replies = cache("facts"), cache("replies")
    facts.put("a", b"fact")
    replies.put("a", b"reply")
    replies.put("b", b"reply")
    assert (facts.get("a"), replies.get("a"), facts.get("b")) == (
        b"fact",
        b"reply",
        None,
    )
    assert (len(facts), len(replies)) == (1, 2)


def test_only_a_file_is_read_without_a_thread(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert StoredCache(tmp_path / "new" / "facts.sqlite", "facts").is_local
    assert not StoredCache(request.getfixturevalue("address"), "facts").is_local


def test_an_index_and_a_cache_have_places_of_their_own(
    tmp_path: Path, address: Address
) -> None:
    PassageIndex.create(address)
    with pytest.raises(
        SettingsError,
        match=says("cannot store facts", "holds other tables", "another schema"),
    ):
        StoredCache(address, "facts")
    PassageIndex.create(tmp_path / "an.index")
    with pytest.raises(
        SettingsError,
        match=says("cannot store facts", "no such table: cache", "name another file"),
    ):
        StoredCache(tmp_path / "an.index" / "index.sqlite", "facts")


def test_an_index_is_made_in_no_schema_of_a_cache(address: Address) -> None:
    StoredCache(address, "facts")
    with pytest.raises(IndexExists, match="holds other tables"):
        PassageIndex.create(address)


def test_a_database_that_cannot_be_reached_is_told_without_its_password() -> None:
    nowhere = Address.parse("postgresql://me:secret@127.0.0.1:9/none")
    with pytest.raises(
        SettingsError, match=says("cannot store facts", "postgresql://me@127.0.0.1:9")
    ) as raised:
        StoredCache(nowhere, "facts")
    assert "secret" not in str(raised.value)


MAKER = """
import sys
from pathlib import Path
from ras_agent.tools.store.cache import StoredCache

for number in range(20):
    sys.stdin.readline()
    StoredCache(Path(sys.argv[1]) / f"{number}.sqlite", "facts").put(sys.argv[2], b"x")
    print("put", flush=True)
"""


@pytest.mark.slow("processes")
def test_processes_that_make_a_cache_at_once_lose_nothing(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for round_ in range(20):
        for maker in makers:
            assert maker.stdin
            maker.stdin.write("\n")
            maker.stdin.flush()
        for maker in makers:
            assert maker.stdout
            assert maker.stdout.readline() == "put\n"
        assert len(StoredCache(tmp_path / f"{round_}.sqlite", "facts")) == 4
    for maker in makers:
        maker.communicate()
        assert maker.returncode == 0


def test_a_value_that_was_put_is_there_after_a_kill(path: Path) -> None:
    program = """
import os, signal, sys
from ras_agent.tools.store.cache import StoredCache
StoredCache(sys.argv[1], "facts").put("a", b"1")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert StoredCache(path, "facts").get("a") == b"1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_uses_the_cache_of_its_parent(path: Path) -> None:
    facts = StoredCache(path, "facts")
    facts.put("a", b"1")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            facts.put("b", b"2")
            status = 0 if facts.get("a") == b"1" else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    facts.put("c", b"3")
    assert len(StoredCache(path, "facts")) == 3


def test_threads_write_at_once(path: Path) -> None:
    facts = [StoredCache(path, "facts") for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda number: facts[number % 3].put(f"{number % 30}", b"x"), range(60)
            )
        )
    assert len(facts[0]) == 30


def test_a_locked_file_is_reported_with_what_to_do(
    path: Path, locked: sqlite3.Connection
) -> None:
    facts = cache_of(path)
    assert facts.get("a") == b"1"  # readers need not wait
    told = says(
        "cannot store facts",
        str(path),
        "database is locked",
        "wait for it",
        "name another file",
    )
    with pytest.raises(StoreError, match=told):
        facts.put("b", b"2")


def test_a_file_that_was_waited_for_in_vain_is_not_waited_for_again(
    path: Path, locked: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = cache_of(path, 0.1), cache_of(path, 0.2)
    waits: list[float] = []
    writing = SqliteDatabase.writing
    monkeypatch.setattr(
        SqliteDatabase,
        "writing",
        lambda database: (waits.append(database.wait), writing(database))[1],
    )
    for facts in (first, first, second):
        with pytest.raises(StoreError):
            facts.put("b", b"2")
        assert not second.is_local
    locked.close()
    second.put("b", b"2")
    first.put("c", b"3")
    assert first.get("b") == b"2"
    assert waits == [0.1, 0.0, 0.0, 0.0, 0.1]
    assert second.is_local


def test_a_file_that_is_locked_when_it_is_opened_may_be_free_later(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    facts = cache_of(path)
    with pytest.raises(StoreError, match="database is locked"):
        facts.get("a")
    other.close()
    facts.put("a", b"1")
    assert facts.get("a") == b"1"


def test_a_full_disk_is_reported_as_one(path: Path) -> None:
    facts = cache_of(path)
    with facts._database.writing() as connection:
        connection.execute("PRAGMA max_page_count = 4")
    with pytest.raises(
        StoreError, match=says("cannot store facts", "the disk is full", "make room")
    ):
        facts.put("a", b"1" * 100_000)
    facts.put("a", b"1")
    assert len(facts) == 1


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        SettingsError, match=says("cannot store facts", "file", "name another file")
    ):
        cache_of(tmp_path / "file" / "facts.sqlite")


def test_a_folder_is_no_cache(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError,
        match=says("cannot store facts", str(tmp_path), "could not be used"),
    ):
        cache_of(tmp_path)


def test_a_damaged_cache_is_named_with_its_remedy(path: Path) -> None:
    facts = cache_of(path)
    for number in range(100):
        facts.put(f"{number}", b"x" * 200)
    facts._database.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    told = says(
        "cannot store facts",
        str(path),
        "is damaged",
        "name another file, or delete this one",
    )
    with pytest.raises(StoreError, match=told):
        facts.get("1")
    with pytest.raises(SettingsError, match=told):
        cache_of(path)


def test_a_cache_that_cannot_be_written_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_of(path).put("a", b"1")
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    facts = cache_of(path)
    assert facts.get("a") == b"1"
    with pytest.raises(
        StoreError, match=says("cannot store facts", "could not be used")
    ):
        facts.put("b", b"2")


def test_a_locked_reply_cache_is_done_without_and_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.tools.chat.cache._PATIENCE", 0.05)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    other = sqlite3.connect(tmp_path / "replies.sqlite")
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(
        RuntimeWarning,
        match=says("cannot store replies", "database is locked", "wait for it"),
    ):
        cache.slot({}, TURNS).put({"text": "Bell."})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.slot({}, TURNS).put({"text": "Bell."})
        assert cache.slot({}, TURNS).get(dict) is None
        other.close()
        cache.slot({}, TURNS).put({"text": "Bell."})
        assert cache.slot({}, TURNS).get(dict) == {"text": "Bell."}


def test_the_file_of_a_cache_can_be_read_by_any_program_of_sqlite(path: Path) -> None:
    StoredCache(path, "facts").put("a", b"[1]", "a model, a title")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT * FROM cache").fetchall() == [
            ("facts", "a", "a model, a title", b"[1]")
        ]
