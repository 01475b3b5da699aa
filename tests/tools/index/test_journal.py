"""The journal: the sources of an index, file by file and document by document."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.store.journal import (
    Journal,
    JournalEntry,
    JournalFile,
    open_journal,
)


@pytest.fixture
def journal() -> Iterator[Journal]:
    with open_journal(None) as opened:
        yield opened


def test_each_run_has_the_number_after_the_last_that_was_committed(
    tmp_path: Path,
) -> None:
    PassageIndex.create(tmp_path / "i")
    for number in (1, 2, 3):
        with open_journal(PassageIndex.open(tmp_path / "i").database) as opened:
            assert opened.run == number
            opened.commit()


def test_what_is_not_committed_is_not_stored(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "i")
    with open_journal(PassageIndex.open(tmp_path / "i").database) as opened:
        opened.put_file("docs/a.txt", Path("/docs/a.txt"), "1")
        opened.commit()
        opened.put_file("docs/b.txt", Path("/docs/b.txt"), "1")
        opened.rollback()
        opened.put_file("docs/c.txt", Path("/docs/c.txt"), "1")
        opened.commit()
        opened.put_file("docs/d.txt", Path("/docs/d.txt"), "1")
    with open_journal(PassageIndex.open(tmp_path / "i").database) as opened:
        assert [file.label for file in opened.files_in(Path("/docs"))] == [
            "docs/a.txt",
            "docs/c.txt",
        ]


def test_a_file_is_found_by_its_label_and_by_its_path(journal: Journal) -> None:
    journal.put_file("docs/a.txt", Path("/home/docs/a.txt"), "7")
    journal.put_file("docs/a.txt", Path("/home/docs/a.txt"), "8")
    found = JournalFile("docs/a.txt", Path("/home/docs/a.txt"), "8")
    assert (
        journal.file("docs/a.txt") == journal.file_at(Path("/home/docs/a.txt")) == found
    )
    assert journal.file("docs/b.txt") is None
    assert journal.file_at(Path("/home/docs")) is None


def test_a_name_that_is_no_text_is_a_path_all_the_same(journal: Journal) -> None:
    path = Path(os.fsdecode(b"/docs/\xff.txt"))
    journal.put_file("docs/?.txt", path, "1")
    assert journal.file_at(path) == JournalFile("docs/?.txt", path, "1")


def test_files_of_a_folder_are_those_in_it_and_not_those_of_a_folder_whose_name_begins_alike(
    journal: Journal,
) -> None:
    for number, path in enumerate(
        ["/a/z", "/a/b/c", "/a0", "/a.txt", "/ab/c", "/a-b/c", "/A/z"]
    ):
        journal.put_file(f"{number}", Path(path), "1")
    assert [file.label for file in journal.files_in(Path("/a"))] == ["0", "1"]
    assert [file.label for file in journal.files_in(Path("/a.txt"))] == ["3"]
    assert [file.label for file in journal.files_in(Path("/"))] == list("0123456")
    assert journal.files_in(Path("/x")) == []


def test_sources_are_listed_by_path_and_have_a_name_each(journal: Journal) -> None:
    journal.put_source(Path("/b/docs"), "docs-2")
    journal.put_source(Path("/a/docs"), "docs")
    assert list(journal.sources().items()) == [
        (Path("/a/docs"), "docs"),
        (Path("/b/docs"), "docs-2"),
    ]
    assert (journal.source_at(Path("/a/docs")), journal.source_at(Path("/a"))) == (
        "docs",
        None,
    )
    assert (journal.has_source("docs-2"), journal.has_source("docs-3")) == (True, False)


def test_a_source_that_no_file_is_left_of_leaves_its_name_free(
    journal: Journal,
) -> None:
    journal.put_source(Path("/a/docs"), "docs")
    journal.put_source(Path("/b/docs"), "docs-2")
    journal.put_file("docs-2/x", Path("/b/docs/x"), "1")
    journal.drop_empty_sources()
    assert journal.sources() == {Path("/b/docs"): "docs-2"}


def test_what_moves_takes_all_that_is_in_it_along(journal: Journal) -> None:
    journal.put_source(Path("/a/docs"), "docs")
    journal.put_source(Path("/a/docs/inner"), "inner")
    journal.put_source(Path("/a/docs2"), "docs2")
    journal.put_file("docs/x", Path("/a/docs/x"), "1")
    journal.put_file("docs2/x", Path("/a/docs2/x"), "1")
    journal.move_source(Path("/a/docs"), Path("/elsewhere"))
    assert journal.sources() == {
        Path("/a/docs2"): "docs2",
        Path("/elsewhere"): "docs",
        Path("/elsewhere/inner"): "inner",
    }
    assert [file.path for file in journal.files_in(Path("/"))] == [
        Path("/elsewhere/x"),
        Path("/a/docs2/x"),
    ]


def test_a_document_is_found_by_its_id_and_by_the_id_that_its_file_gives_it(
    journal: Journal,
) -> None:
    journal.put_document("docs/a#1", "docs/a", "1", "line 3", b"digest")
    entry = JournalEntry("docs/a#1", "docs/a", "1", "line 3", b"digest", 1)
    assert journal.document("docs/a#1") == journal.document_of("docs/a", "1") == entry
    assert journal.document("docs/a") is None
    assert journal.document_of("docs/a", "2") is None
    assert journal.document_of("docs/b", "1") is None


def test_ids_of_a_range_begin_with_the_first_and_end_before_the_end(
    journal: Journal,
) -> None:
    for name in ("a", "b", "bb", "c"):
        journal.put_document(name, "f", name, "", b"")
    assert sorted(journal.ids_from("b", "c")) == ["b", "bb"]


def test_a_run_has_not_seen_what_only_earlier_runs_put_there(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "i")
    with open_journal(PassageIndex.open(tmp_path / "i").database) as first:
        for name in ("f", "g"):
            first.put_file(name, Path("/", name), "")
        for name in ("b", "a"):
            first.put_document(name, "f", name, "", b"")
        first.put_document("other", "g", "other", "", b"")
        first.commit()
    with open_journal(PassageIndex.open(tmp_path / "i").database) as second:
        second.put_document("b", "f", "b", "", b"")
        assert second.documents_of("f", unseen=True) == ["a"]
        assert second.documents_of("f") == ["a", "b"]


def test_what_is_dropped_is_gone(journal: Journal) -> None:
    journal.put_file("docs/a", Path("/docs/a"), "1")
    journal.put_document("d", "docs/a", "d", "", b"")
    journal.drop_document("d")
    journal.drop_document("d")
    journal.drop_file("docs/a")
    assert journal.document("d") is None
    assert journal.file("docs/a") is None


def test_nothing_of_a_dropped_name_is_in_the_file_once_it_is_compacted(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "i")
    with open_journal(index.database) as opened:
        for number in range(500):
            opened.put_file(f"hidden{number}", Path(f"/hidden{number}"), "")
            opened.put_document(f"secret{number}", f"hidden{number}", "own", "", b"")
        opened.commit()
        for number in range(500):
            opened.drop_document(f"secret{number}")
            opened.drop_file(f"hidden{number}")
        opened.commit()
        assert not index.is_finished()
        index.finish()
        # before it is closed, for a kill may come now: neither here nor in SQLite's own journal
        for file in (tmp_path / "i").iterdir():
            assert b"secret" not in file.read_bytes()
            assert b"hidden" not in file.read_bytes()


def test_a_forgotten_document_leaves_its_file_unstamped_while_others_are_in_it(
    journal: Journal,
) -> None:
    journal.put_file("f", Path("/f"), "stamp")
    for name in ("a", "b"):
        journal.put_document(name, "f", name, "", b"")
    journal.forget_document("a")
    assert (journal.file("f"), journal.document("a")) == (
        JournalFile("f", Path("/f"), ""),
        None,
    )
    journal.forget_document("b")
    assert journal.file("f") is None
    journal.forget_document("never")
