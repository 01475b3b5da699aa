"""What files and documents are called in an index: no two alike, none renamed, short where possible."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from ras_agent.errors import IndexMismatch
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.ingest import JOURNAL, ingest
from ras_agent.tools.index.store import PassageIndex


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
    def test_two_folders_of_one_name_are_two_sources(self, tmp_path: Path, out: Path) -> None:
        ingest([folder(tmp_path / "a/docs", x="of a")], out)
        ingest([folder(tmp_path / "b/docs", x="of b", y="more of b")], out)
        assert short(out) == [
            ("docs/x.txt", "of a"), ("docs~.../x.txt", "of b"), ("docs~.../y.txt", "more of b"),
        ]  # fmt: skip

    def test_one_run_over_both_gives_the_same_names_as_two(self, tmp_path: Path, out: Path) -> None:
        one, two = folder(tmp_path / "a/docs", x="of a"), folder(tmp_path / "b/docs", x="of b")
        ingest([one, two], out)
        ingest([one], tmp_path / "second.index")
        ingest([two], tmp_path / "second.index")
        assert stored(out) == stored(tmp_path / "second.index")

    def test_names_stay_whatever_is_named_later_and_in_whatever_order(self, tmp_path: Path, out: Path) -> None:
        one, two = folder(tmp_path / "a/docs", x="of a"), folder(tmp_path / "b/docs", x="of b")
        ingest([one], out)
        ingest([two], out)
        before = stored(out)
        report = ingest([two, one], out)
        assert (report.files_unchanged, stored(out)) == (2, before)

    def test_two_files_of_one_name_keep_their_suffix(self, tmp_path: Path, out: Path) -> None:
        ingest([folder(tmp_path / "a", x="of a") / "x.txt", folder(tmp_path / "b", x="of b") / "x.txt"], out)
        assert short(out) == [("x.txt", "of a"), ("x~....txt", "of b")]

    def test_a_name_that_was_forgotten_is_free_again(self, tmp_path: Path, out: Path) -> None:
        ingest([folder(tmp_path / "a/docs", x="of a")], out)
        ingest([folder(tmp_path / "b/docs", x="of b")], out, forget=["docs/x.txt"])
        assert stored(out) == {"docs/x.txt": "of b"}


class TestOneDocument:
    def test_a_file_and_then_its_folder(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "docs", x="one", y="two")
        ingest([docs / "x.txt"], out)
        report = ingest([docs], out)
        assert (report.files_unchanged, stored(out)) == (1, {"x.txt": "one", "docs/y.txt": "two"})

    def test_a_folder_and_then_its_file(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "docs", x="one")
        ingest([docs], out)
        assert ingest([docs / "x.txt"], out).files_unchanged == 1
        assert stored(out) == {"docs/x.txt": "one"}

    def test_a_folder_by_another_path(self, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    def test_a_folder_that_was_moved_keeps_its_documents(self, tmp_path: Path, out: Path) -> None:
        docs = folder(tmp_path / "a/docs", x="one", y="two")
        ingest([docs], out)
        new = docs.rename(folder(tmp_path / "b") / "docs")
        report = ingest([new], out)
        assert (report.files_unchanged, report.moved) == (2, ((str(docs), str(new)),))
        assert stored(out) == {"docs/x.txt": "one", "docs/y.txt": "two"}
        (new / "x.txt").unlink()
        ingest([new], out, prune=True)
        assert stored(out) == {"docs/y.txt": "two"}

    def test_a_copy_beside_the_original_is_another_source(self, tmp_path: Path, out: Path) -> None:
        docs, copy = folder(tmp_path / "a/docs", x="one"), folder(tmp_path / "b/docs", x="one")
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


class TestRecords:
    def test_equal_ids_in_two_files_are_two_records(self, tmp_path: Path, out: Path) -> None:
        one = records(tmp_path / "a.jsonl", {"id": 1, "text": "of a"})
        two = records(tmp_path / "b.jsonl", {"id": 1, "text": "of b"}, {"id": 2, "text": "more"})
        assert ingest([one, two], out).errors == ()
        assert stored(out) == {"1": "of a", "b.jsonl/1": "of b", "2": "more"}
        assert ingest([two, one], out).files_unchanged == 2

    def test_each_is_changed_and_forgotten_alone(self, tmp_path: Path, out: Path) -> None:
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
        assert stored(out) == {"docs/b.txt": "the record", "docs/b.txt/docs/b.txt": "the file"}

    @pytest.mark.parametrize("order", [("long.txt", "z.jsonl"), ("z.jsonl", "long.txt")])
    def test_a_record_called_as_a_piece_of_a_document_is_not_in_its_place(
        self, tmp_path: Path, out: Path, order: tuple[str, str]
    ) -> None:
        (folder(tmp_path) / "long.txt").write_text("Bell lived here. He wrote much.")
        halves = Chunking(20, 0)
        ingest([tmp_path / "long.txt"], tmp_path / "first.index", chunking=halves)
        piece = next(iter(stored(tmp_path / "first.index")))
        records(tmp_path / "z.jsonl", {"id": piece, "text": "A crafted record."})
        ingest([tmp_path / name for name in order], out, chunking=halves)
        assert sorted(stored(out).values()) == ["A crafted record.", "Bell lived here.", "He wrote much."]


def test_a_journal_that_did_not_note_folders_is_refused_with_a_remedy_that_works(tmp_path: Path, out: Path) -> None:
    docs = folder(tmp_path / "docs", x="one")
    ingest([docs], out)
    (out / JOURNAL).unlink()
    (out / f"{JOURNAL}.sum").unlink()
    with sqlite3.connect(out / JOURNAL) as old:
        old.execute("CREATE TABLE files (label TEXT PRIMARY KEY, root TEXT NOT NULL, stamp TEXT NOT NULL)")
    old.close()
    with pytest.raises(IndexMismatch, match=r"ingest\.sqlite was written by an earlier version, .*: delete it and run"):
        ingest([docs], out)
    (out / JOURNAL).unlink()
    assert ingest([docs], out).passages_total == 1
