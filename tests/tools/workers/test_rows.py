"""Rows in a file that is locked, full or damaged: waited for once, reported with what to do."""

import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ras_agent.errors import SettingsError, StoreError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.cache import ReplyCache
from ras_agent.tools.workers.rows import FileRows
from tests.messages import says

TURNS = (Turn("user", "Who?"),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "facts.sqlite"


@pytest.fixture
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that holds the file for itself until it is closed."""
    FileRows(path, ("key", "facts"), "facts").put(("a", "1"))
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def rows_of(path: Path, patience: float = 0.05) -> FileRows:
    return FileRows(path, ("key", "facts"), "facts", patience)


def test_a_locked_file_is_reported_with_what_to_do(path: Path, locked: sqlite3.Connection) -> None:
    rows = rows_of(path)
    assert rows.get("a") == ("a", "1")  # readers need not wait
    told = says("cannot keep facts", str(path), "database is locked", "wait for the process", "name another file")
    with pytest.raises(StoreError, match=told):
        rows.put(("b", "2"))


def test_a_file_that_was_waited_for_in_vain_is_not_waited_for_again(
    path: Path, locked: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    connection = FileRows._connection

    def noting(rows: FileRows, patience: float) -> Any:
        waits.append(patience)
        return connection(rows, patience)

    monkeypatch.setattr(FileRows, "_connection", noting)
    first, second = rows_of(path, 0.1), rows_of(path, 0.2)
    for rows in (first, first, second):
        with pytest.raises(StoreError):
            rows.put(("b", "2"))
    locked.close()
    second.put(("b", "2"))
    assert first.get("b") == ("b", "2")
    assert waits == [0.1, 0.2, 0.1, 0.0, 0.0, 0.0, 0.1]


def test_a_file_that_is_locked_when_it_is_opened_may_be_free_later(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("CREATE TABLE notes (text)")
    rows = rows_of(path)
    with pytest.raises(StoreError, match="database is locked"):
        rows.get("a")
    other.close()
    rows.put(("a", "1"))
    assert rows.get("a") == ("a", "1")


def test_a_full_disk_is_reported_as_one(path: Path) -> None:
    rows = rows_of(path)
    rows._connection(0.05).execute("PRAGMA max_page_count = 3")
    with pytest.raises(StoreError, match="database or disk is full; make room on the disk"):
        rows.put(("a", "1" * 100_000))
    rows.put(("a", "1"))
    assert len(rows) == 1


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((SettingsError, OSError), match="file"):
        rows_of(tmp_path / "file" / "facts.sqlite")


def test_a_locked_reply_cache_is_done_without_and_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.tools.chat.cache._PATIENCE", 0.05)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    other = sqlite3.connect(tmp_path / "replies.sqlite")
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(RuntimeWarning, match=says("replies", "database is locked", "wait for the process")):
        cache.put({}, TURNS, {"text": "Bell."})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put({}, TURNS, {"text": "Bell."})
        assert cache.get({}, TURNS) is None
        other.close()
        cache.put({}, TURNS, {"text": "Bell."})
        assert cache.get({}, TURNS) == {"text": "Bell."}
