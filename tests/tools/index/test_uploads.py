"""Uploaded files in the database of an index: stored with their passages, and deleted with them."""

import os
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IngestError
from ras_agent.tools.index import ingest as ingest_module
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.ingest import dry_run, ingest, upload_label
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.uploads import (
    name_in_part,
    read_upload,
    upload_part,
    upload_path,
)
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.store.journal import Journal
from tests.messages import says

MILL = b"Zyltor built a mill in Leith."
BRIDGE = b"Bolmer built a bridge."


def sent(name: str, data: bytes, own: str = "") -> SourceFile:
    path = upload_path(own, name)
    return SourceFile(
        path, path, "", f"{own}/{name}" if own else name, apart=bool(own), data=data
    )


def texts(place: Path | Address) -> list[str]:
    return [passage.text for passage in PassageIndex.open(place).passages]


def files_with(folder: Path, data: bytes) -> list[str]:
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and data in path.read_bytes()
    ]


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Address:
    """An empty index."""
    made = (
        tmp_path / "my.index"
        if request.param == "file"
        else request.getfixturevalue("address")
    )
    PassageIndex.create(made).close()
    return made


@pytest.fixture
def index(tmp_path: Path) -> Path:
    PassageIndex.create(tmp_path / "my.index").close()
    return tmp_path / "my.index"


def stored(place: Path | Address, name: str, own: str = "") -> bytes | None:
    return read_upload(PassageIndex.open(place).database, upload_path(own, name))


def test_bytes_that_were_replaced_are_gone_from_every_file(index: Path) -> None:
    opened, path = PassageIndex.open(index), upload_path("z.txt")
    with opened.database.writing() as connection:
        connection.execute(
            "INSERT INTO files VALUES ('z.txt', ?, '')", (os.fsencode(path),)
        )
        connection.uploads.put(path, MILL)
    assert opened.is_finished()
    with opened.database.writing() as connection:
        connection.uploads.put(path, BRIDGE)
    assert not opened.is_finished()
    opened.finish()
    assert (
        opened.is_finished(),
        files_with(index, MILL),
        opened.uploaded("z.txt"),
    ) == (True, [], BRIDGE)


def test_a_view_shows_no_uploads(index: Path) -> None:
    with pytest.raises(
        TypeError, match=says("view", "only passages", "from the index itself")
    ):
        PassageIndex.open(index).within({"team": "x"}).uploaded("z.txt")


def test_an_upload_is_stored_as_it_came_and_indexed_under_its_name(
    place: Path | Address,
) -> None:
    report = ingest(
        [sent("z.txt", MILL), sent("b.txt", BRIDGE)], place, metadata={"team": "x"}
    )
    assert (report.files, report.documents_written, report.stranded) == (2, 2, ())
    assert (stored(place, "z.txt"), stored(place, "b.txt"), stored(place, "c.txt")) == (
        MILL,
        BRIDGE,
        None,
    )
    passages = PassageIndex.open(place).passages
    assert [(one.document_id, one.text, one.metadata) for one in passages] == [
        ("z.txt", MILL.decode(), {"file": "z.txt", "team": "x"}),
        ("b.txt", BRIDGE.decode(), {"file": "b.txt", "team": "x"}),
    ]


def test_parts_of_an_index_hold_files_of_one_name(place: Path | Address) -> None:
    ingest([sent("z.txt", MILL)], place)
    ingest([sent("z.txt", BRIDGE, own="team=x~1")], place)
    assert (stored(place, "z.txt"), stored(place, "z.txt", "team=x~1")) == (
        MILL,
        BRIDGE,
    )
    assert upload_label("team=x~1/z.txt", place) == "team=x~1/z.txt"
    assert PassageIndex.open(place).document_ids() == ("z.txt", "team=x~1/z.txt")


def test_an_upload_of_the_same_name_replaces(place: Path | Address) -> None:
    ingest([sent("z.txt", MILL)], place)
    assert ingest([sent("z.txt", BRIDGE)], place).documents_written == 1
    assert (stored(place, "z.txt"), texts(place)) == (BRIDGE, [BRIDGE.decode()])
    assert ingest([sent("z.txt", BRIDGE)], place).documents_unchanged == 1


def test_what_is_forgotten_is_stored_no_more(place: Path | Address) -> None:
    ingest([sent("z.txt", MILL), sent("b.txt", BRIDGE)], place)
    assert ingest([], place, forget=["z.txt"]).documents_removed == 1
    assert (stored(place, "z.txt"), stored(place, "b.txt"), texts(place)) == (
        None,
        BRIDGE,
        [BRIDGE.decode()],
    )
    assert upload_label("z.txt", place) is None
    with pytest.raises(
        IngestError, match=says("nothing in the index came from", "z.txt")
    ):
        ingest([], place, forget=["z.txt"])


def test_a_rehearsal_stores_nothing(place: Path | Address) -> None:
    told = dry_run(
        [sent("z.txt", MILL)],
        place,
        chunking=ingest_module.DEFAULT_CHUNKING,
        fields={},
        metadata={},
    )
    assert (told.documents_written, stored(place, "z.txt"), texts(place)) == (
        1,
        None,
        [],
    )


@pytest.mark.parametrize("moment", ["put_upload", "put_document", "commit"])
def test_an_upload_that_fails_anywhere_changes_nothing(
    place: Path | Address, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Of a file of more passages than a batch has, after one that is stored already."""
    ingest([sent("z.jsonl", b'{"text": "Zyltor built a mill."}')], place)
    monkeypatch.setattr(ingest_module, "FIRST_BATCH", 2)
    rows = b"".join(b'{"text": "Bolmer %d."}\n' % number for number in range(20))
    calls: list[None] = []
    original = getattr(Journal, moment)

    def fail_at_last(*given: Any) -> Any:
        calls.append(None)
        if len(calls) == {"put_upload": 2, "put_document": 15, "commit": 1}[moment]:
            raise OSError("the plug was pulled")
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, moment, fail_at_last)
        with pytest.raises(OSError, match="plug"):
            ingest([sent("z.jsonl", rows), sent("y.txt", MILL)], place)
    assert (stored(place, "z.jsonl"), stored(place, "y.txt")) == (
        b'{"text": "Zyltor built a mill."}',
        None,
    )
    assert texts(place) == ["Zyltor built a mill."]
    assert upload_label("y.txt", place) is upload_label("./y.txt", place) is None
    assert (
        ingest([sent("z.jsonl", rows), sent("y.txt", MILL)], place).documents_written
        == 21
    )


def test_replaced_and_forgotten_bytes_are_in_no_file(index: Path) -> None:
    for number in range(40):  # small ones share pages
        ingest(
            [sent(f"other{number}.txt", b"A text of another, number %d." % number)],
            index,
        )
    ingest([sent("z.txt", MILL), sent("big.txt", b"Ostrell. " * 4000)], index)
    ingest([sent("z.txt", BRIDGE)], index)
    assert files_with(index, b"Zyltor") == []
    ingest([], index, forget=["z.txt", "big.txt", "other7.txt"])
    for word in (b"Bolmer", b"Ostrell", b"number 7.", b"z.txt", b"big.txt", b"other7"):
        assert files_with(index, word) == []
    assert stored(index, "other8.txt") == b"A text of another, number 8."


def test_replaced_bytes_that_make_the_same_text_are_gone_too(index: Path) -> None:
    ingest(
        [
            sent(
                "z.jsonl",
                b'{"text": "Zyltor built a mill.", "id": "a"}  \n{"note": "Quist"}\n',
            )
        ],
        index,
    )
    report = ingest(
        [sent("z.jsonl", b'{"text": "Zyltor built a mill.", "id": "a"}\n')], index
    )
    assert (report.documents_written, report.documents_unchanged) == (0, 1)
    assert files_with(index, b"Quist") == []


def test_a_document_that_is_deleted_takes_the_bytes_of_its_file_with_it(
    index: Path,
) -> None:
    rows = b'{"id": "a", "text": "Zyltor built a mill."}\n{"id": "b", "text": "Bolmer built a bridge."}\n'
    ingest([sent("z.jsonl", rows)], index)
    delete_documents(index, "a")
    assert (stored(index, "z.jsonl"), texts(index)) == (
        None,
        ["Bolmer built a bridge."],
    )
    assert files_with(index, b"Zyltor") == []
    assert ingest([sent("z.jsonl", rows)], index).documents_written == 1
    assert stored(index, "z.jsonl") == rows


def test_a_page_is_converted_from_its_bytes(index: Path) -> None:
    pytest.importorskip("markitdown", reason="the extra documents is not installed")
    ingest(
        [
            sent(
                "z.html",
                b"<html><body><h1>Zyltor</h1><p>A mill in Leith.</p></body></html>",
            )
        ],
        index,
    )
    (passage,) = PassageIndex.open(index).passages
    assert (passage.title, "A mill in Leith." in passage.text) == ("Zyltor", True)


def test_a_part_is_called_by_its_filter_and_by_the_same_name_for_ever() -> None:
    # documents are stored under these names
    assert upload_part({"team": "sales"}) == "team=sales~cc508c22"
    assert upload_part({"year": 2024, "team": ["x", "y"]}) == upload_part(
        {"team": ["y", "x"], "year": "2024"}
    )
    assert (
        len(
            {
                upload_part({"team": "a b"}),
                upload_part({"team": "a/b"}),
                upload_part({"team": "a-b"}),
            }
        )
        == 3
    )
    assert upload_part(None) == ""


@pytest.mark.parametrize(
    ("name", "part", "whole"),
    [
        ("z.txt", "", "z.txt"),
        ("z.txt", "team=x~1", "team=x~1/z.txt"),
        ("team=x~1/z.txt", "team=x~1", "team=x~1/z.txt"),
    ],
)
def test_a_name_is_given_with_or_without_its_part(
    name: str, part: str, whole: str
) -> None:
    assert name_in_part(name, part) == whole
