"""The names of files and documents in an index: no two alike, no renaming, short where possible."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.identity import (
    _unlike_others,
    document_id,
    gone_sources,
    settled_state,
    size_and_time,
)
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.store.journal import open_journal


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "my.index"


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text)
    return path


def records(path: Path, *items: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def stored(out: Path) -> dict[str, str]:
    return {passage.id: passage.text for passage in PassageIndex.open(out).passages}


def short(out: Path) -> list[tuple[str, str]]:
    """Return ids and texts, with the digest in a source's name replaced by dots."""
    return [(name.replace(name.partition("~")[2][:6], "...") if "~" in name else name, text)
            for name, text in stored(out).items()]  # fmt: skip


class TestSources:
    def test_two_folders_of_one_name_are_two_sources(
        self, tmp_path: Path, out: Path
    ) -> None:
        ingest([folder(tmp_path / "a/docs", x="of a")], out)
        ingest([folder(tmp_path / "b/docs", x="of b", y="more of b")], out)
        assert short(out) == [
            ("docs/x.txt", "of a"), ("docs~.../x.txt", "of b"), ("docs~.../y.txt", "more of b"),
        ]  # fmt: skip

    def test_one_run_over_both_gives_the_same_names_as_two(
        self, tmp_path: Path, out: Path
    ) -> None:
        one, two = (
            folder(tmp_path / "a/docs", x="of a"),
            folder(tmp_path / "b/docs", x="of b"),
        )
        ingest([one, two], out)
        ingest([one], tmp_path / "second.index")
        ingest([two], tmp_path / "second.index")
        assert stored(out) == stored(tmp_path / "second.index")

    def test_names_stay_whatever_is_named_later_and_in_whatever_order(
        self, tmp_path: Path, out: Path
    ) -> None:
        one, two = (
            folder(tmp_path / "a/docs", x="of a"),
            folder(tmp_path / "b/docs", x="of b"),
        )
        ingest([one], out)
        ingest([two], out)
        before = stored(out)
        report = ingest([two, one], out)
        assert (report.files_unchanged, stored(out)) == (2, before)

    def test_two_files_of_one_name_keep_their_suffix(
        self, tmp_path: Path, out: Path
    ) -> None:
        ingest(
            [
                folder(tmp_path / "a", x="of a") / "x.txt",
                folder(tmp_path / "b", x="of b") / "x.txt",
            ],
            out,
        )
        assert short(out) == [("x.txt", "of a"), ("x~....txt", "of b")]

    def test_a_name_that_was_forgotten_is_free_again(
        self, tmp_path: Path, out: Path
    ) -> None:
        ingest([folder(tmp_path / "a/docs", x="of a")], out)
        ingest([folder(tmp_path / "b/docs", x="of b")], out, forget=["docs/x.txt"])
        assert stored(out) == {"docs/x.txt": "of b"}

    def test_the_letters_of_a_name_are_of_its_place_and_more_where_they_are_taken(
        self,
    ) -> None:
        taken = {"docs", "a.tar.txt"}
        with open_journal(None) as journal:
            names = [
                _unlike_others(
                    "docs", Path("/b/docs"), False, journal, taken.__contains__
                )
            ]
            names.append(
                _unlike_others(
                    "docs",
                    Path("/b/docs"),
                    False,
                    journal,
                    {*taken, *names}.__contains__,
                )
            )
            names.append(
                _unlike_others(
                    "a.tar.txt", Path("/b/a.tar.txt"), True, journal, taken.__contains__
                )
            )
        assert names == ["docs~852ea9", "docs~852ea95", "a.tar~1e9901.txt"]


class TestOneDocument:
    def test_a_file_and_then_its_folder(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "docs", x="one", y="two")
        ingest([docs / "x.txt"], out)
        report = ingest([docs], out)
        assert (report.files_unchanged, stored(out)) == (
            1,
            {"x.txt": "one", "docs/y.txt": "two"},
        )

    def test_a_folder_and_then_its_file(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "docs", x="one")
        ingest([docs], out)
        assert ingest([docs / "x.txt"], out).files_unchanged == 1
        assert stored(out) == {"docs/x.txt": "one"}

    def test_a_folder_by_another_path(
        self, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        docs = folder(tmp_path / "docs", x="one")
        (tmp_path / "link").symlink_to(docs)
        ingest([docs], out)
        for path in ("../docs", ".", "../docs/../docs", "../link"):
            monkeypatch.chdir(docs)
            assert ingest([path], out).files_unchanged == 1
        assert stored(out) == {"docs/x.txt": "one"}

    def test_a_file_that_vanished_is_pruned_by_whichever_path_its_folder_is_named(
        self, tmp_path: Path, out: Path
    ) -> None:
        docs = folder(tmp_path / "docs", x="one", y="two")
        ingest([docs / "x.txt", docs], out)
        (docs / "x.txt").unlink()
        assert ingest([docs], out).vanished == ("x.txt",)
        ingest([docs], out, prune=True)
        assert stored(out) == {"docs/y.txt": "two"}


class TestMoved:
    def test_a_folder_that_was_moved_keeps_its_documents(
        self, tmp_path: Path, out: Path
    ) -> None:
        docs = folder(tmp_path / "a/docs", x="one", y="two")
        ingest([docs], out)
        new = docs.rename(folder(tmp_path / "b") / "docs")
        report = ingest([new], out)
        assert (report.files_unchanged, report.moved) == (2, ((str(docs), str(new)),))
        assert stored(out) == {"docs/x.txt": "one", "docs/y.txt": "two"}
        (new / "x.txt").unlink()
        ingest([new], out, prune=True)
        assert stored(out) == {"docs/y.txt": "two"}

    def test_a_copy_beside_the_original_is_another_source(
        self, tmp_path: Path, out: Path
    ) -> None:
        docs, copy = (
            folder(tmp_path / "a/docs", x="one"),
            folder(tmp_path / "b/docs", x="one"),
        )
        same = (docs / "x.txt").stat().st_mtime_ns
        os.utime(copy / "x.txt", ns=(same, same))
        ingest([docs], out)
        assert ingest([copy], out).moved == ()
        assert len(stored(out)) == 2

    def test_another_folder_in_place_of_one_that_is_gone_replaces_nothing_and_is_told(
        self, tmp_path: Path, out: Path
    ) -> None:
        docs = folder(tmp_path / "a/docs", x="one", y="two")
        ingest([docs], out)
        later = (docs / "x.txt").stat().st_mtime_ns + 1_000_000_000
        docs.rename(tmp_path / "unmounted")
        other = folder(tmp_path / "b/docs", x="uno", y="two")
        os.utime(other / "x.txt", ns=(later, later))
        report = ingest([other], out, prune=True)
        assert (report.moved, report.stranded) == ((), (str(docs),))
        assert short(out) == [
            ("docs/x.txt", "one"), ("docs/y.txt", "two"), ("docs~.../x.txt", "uno"), ("docs~.../y.txt", "two"),
        ]  # fmt: skip

    def test_several_folders_that_were_moved_at_once_keep_their_documents(
        self, tmp_path: Path, out: Path
    ) -> None:
        olds = [
            folder(tmp_path / name / "docs", **{name: f"of {name}"})
            for name in ("a", "b", "c")
        ]
        ingest(olds, out)
        before = stored(out)
        news = [
            old.rename(folder(tmp_path / "new" / old.parent.name) / "docs")
            for old in olds
        ]
        report = ingest(news, out)
        assert report.moved == tuple(
            (str(old), str(new)) for old, new in zip(olds, news, strict=True)
        )
        assert stored(out) == before

    def test_a_folder_that_is_known_already_is_not_taken_for_one_that_was_moved(
        self, tmp_path: Path, out: Path
    ) -> None:
        gone, here = (
            folder(tmp_path / "a/docs", x="one"),
            folder(tmp_path / "b/docs", x="two"),
        )
        new = tmp_path / "c/docs"
        ingest([gone, here], out)
        gone.rename(folder(new.parent) / "docs")
        report = ingest([here, new], out)
        assert report.moved == ((str(gone), str(new)),)

    def test_a_place_that_cannot_be_asked_is_not_taken_for_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there, gone, below_a_file = (
            tmp_path,
            tmp_path / "gone",
            folder(tmp_path, x="a file") / "x.txt" / "below",
        )

        def lstat(path: Path) -> os.stat_result:
            if path == there:
                raise PermissionError(13, "no rights", str(path))
            return os.stat(path)

        monkeypatch.setattr("ras_agent.tools.index.identity.os.lstat", lstat)
        with open_journal(None) as journal:
            for number, path in enumerate((there, gone, below_a_file)):
                journal.put_source(path, f"source {number}")
            assert gone_sources(journal) == [gone, below_a_file]

    def test_the_stamp_of_a_file_that_cannot_be_asked_is_empty(
        self, tmp_path: Path
    ) -> None:
        assert size_and_time(tmp_path / "gone") == ""
        path = folder(tmp_path, x="four") / "x.txt"
        os.utime(path, ns=(5, 7))
        assert size_and_time(path) == "4 7 "

    def test_a_file_that_was_just_changed_is_asked_when_another_change_shows(
        self, tmp_path: Path
    ) -> None:
        path = folder(tmp_path, x="four") / "x.txt"
        state = settled_state(path)
        path.write_text("five")
        assert size_and_time(path) != state


class TestRecords:
    def test_records_of_one_file_with_one_id_are_counted_from_two(
        self, tmp_path: Path, out: Path
    ) -> None:
        one = records(tmp_path / "a.jsonl", {"id": "Q1", "text": "first"})
        ingest([one], out)
        with open_journal(PassageIndex.open(out).database) as journal:
            names = []
            for digest in (b"1", b"2", b"3"):
                names.append(document_id("Q1", "b.jsonl", journal))
                journal.put_document(names[-1], "b.jsonl", "Q1", "", digest)
        assert names == ["b.jsonl/Q1", "b.jsonl/Q1~2", "b.jsonl/Q1~3"]

    def test_equal_ids_in_two_files_are_two_records(
        self, tmp_path: Path, out: Path
    ) -> None:
        one = records(tmp_path / "a.jsonl", {"id": 1, "text": "of a"})
        two = records(
            tmp_path / "b.jsonl", {"id": 1, "text": "of b"}, {"id": 2, "text": "more"}
        )
        assert ingest([one, two], out).errors == ()
        assert stored(out) == {"1": "of a", "b.jsonl/1": "of b", "2": "more"}
        assert ingest([two, one], out).files_unchanged == 2

    def test_each_is_changed_and_forgotten_alone(
        self, tmp_path: Path, out: Path
    ) -> None:
        one = records(tmp_path / "a.jsonl", {"id": 1, "text": "of a"})
        ingest([one, records(tmp_path / "b.jsonl", {"id": 1, "text": "of b"})], out)
        ingest([records(tmp_path / "b.jsonl", {"id": 1, "text": "of b again"})], out)
        assert stored(out) == {"1": "of a", "b.jsonl/1": "of b again"}
        ingest([], out, forget=["1"])
        assert stored(out) == {"b.jsonl/1": "of b again"}

    def test_a_record_may_be_called_as_a_file(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "docs", b="the file")
        records(docs / "a.jsonl", {"id": "docs/b.txt", "text": "the record"})
        ingest([docs], out)
        assert stored(out) == {
            "docs/b.txt": "the record",
            "docs/b.txt/docs/b.txt": "the file",
        }

    @pytest.mark.parametrize(
        "order", [("long.txt", "z.jsonl"), ("z.jsonl", "long.txt")]
    )
    def test_a_record_called_as_a_piece_of_a_document_is_not_in_its_place(
        self, tmp_path: Path, out: Path, order: tuple[str, str]
    ) -> None:
        (folder(tmp_path) / "long.txt").write_text("Bell lived here. He wrote much.")
        halves = Chunking(20, 0)
        ingest([tmp_path / "long.txt"], tmp_path / "first.index", chunking=halves)
        piece = next(iter(stored(tmp_path / "first.index")))
        records(tmp_path / "z.jsonl", {"id": piece, "text": "A crafted record."})
        ingest([tmp_path / name for name in order], out, chunking=halves)
        assert sorted(stored(out).values()) == [
            "A crafted record.",
            "Bell lived here.",
            "He wrote much.",
        ]
