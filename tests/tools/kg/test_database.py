"""Databases that one process has open: what is told of one that something else has changed."""

from pathlib import Path

import pytest

from ras_agent.errors import IndexMismatch, IngestError
from ras_agent.tools.kg.database import check_database, open_database
from ras_agent.tools.store import checksums


def write(path: Path, value: str) -> None:
    with open_database(path, "index", "delete it") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS names (name TEXT)")
        connection.execute("INSERT INTO names VALUES (?)", (value,))
        connection.commit()


def change(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def test_a_name_that_something_else_changed_is_told(tmp_path: Path) -> None:
    write(path := tmp_path / "d.sqlite", "Edinburgh")
    write(path, "Leith")
    check_database(path, "delete it", whole=True)
    change(path, b"Edinburgh", b"Edinburgk")
    with pytest.raises(IndexMismatch, match=r"d\.sqlite is damaged .*: delete it$"):
        write(path, "more")


def test_a_large_one_is_read_only_when_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "SMALL", 0)
    write(path := tmp_path / "d.sqlite", "Edinburgh")
    change(path, b"Edinburgh", b"Edinburgk")
    check_database(path, "delete it")
    with pytest.raises(IndexMismatch, match="not those that were written"):
        check_database(path, "delete it", whole=True)


def test_one_that_was_left_open_by_a_killed_process_is_not_damaged(tmp_path: Path) -> None:
    write(path := tmp_path / "d.sqlite", "Edinburgh")
    (tmp_path / "d.sqlite.sum").write_bytes(b"")  # as it is while the database is open
    change(path, b"Edinburgh", b"Edinburgk")
    check_database(path, "delete it", whole=True)
    write(path, "Leith")


def test_a_second_opener_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    with (
        open_database(path, "graph", "delete it"),
        pytest.raises(IngestError, match="another run is writing this graph"),
        open_database(path, "graph", "delete it"),
    ):
        pytest.fail("two at once")


@pytest.mark.parametrize("name", ["d.sqlite", "d.sqlite.sum"])
def test_what_cannot_be_opened_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises((IngestError, IndexMismatch), match=rf"{name.replace('.', '[.]')} cannot be|{name}: unable"):
        write(tmp_path / "d.sqlite", "Edinburgh")


def test_a_damaged_one_is_not_given_a_checksum(tmp_path: Path) -> None:
    path = tmp_path / "d.sqlite"
    path.write_bytes(b"no database" * 500)
    for _ in range(2):
        with pytest.raises(IndexMismatch, match="file is not a database"):
            write(path, "Edinburgh")
    with pytest.raises(IndexMismatch, match="file is not a database"):
        check_database(path, "delete it", whole=True)
