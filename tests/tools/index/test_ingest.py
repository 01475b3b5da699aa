"""Files into an index: nothing lost, nothing done twice, whatever happens in between."""

import gc
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.contracts.errors import (
    FilterError,
    IndexExists,
    IndexMismatch,
    IngestError,
)
from ras_agent.tools.index import ingest as ingest_module
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.fields import Fields
from ras_agent.tools.index.ingest import Progress, ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store.journal import Journal, open_journal
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.messages import says

LONG = "Bell was born in Edinburgh. He moved to Canada. He patented the telephone."
HALVES = Chunking(50, 0)


def raising(error: OSError) -> NoReturn:
    raise error


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Four files of one document each."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.txt").write_text(f"Text of {name}.")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "my.index"


def stored(out: Path) -> dict[str, str]:
    return {passage.id: passage.text for passage in PassageIndex.open(out).passages}


def records(path: Path, *items: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def touch_later(path: Path, text: str) -> None:
    """Change a file, also for a file system whose clock is coarse."""
    path.write_text(text)
    later = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))


def test_a_folder_becomes_an_index(docs: Path, out: Path) -> None:
    report = ingest([docs], out)
    assert stored(out) == {f"docs/{name}.txt": f"Text of {name}." for name in "abcd"}
    assert (
        report.files,
        report.documents_written,
        report.passages_written,
        report.passages_total,
    ) == (4, 4, 4, 4)
    assert (report.skipped, report.vanished) == ((), ())


def test_the_index_answers_queries(docs: Path, out: Path) -> None:
    (docs / "e.txt").write_text("Bell patented the telephone.")
    ingest([docs], out)
    (hit, *_) = retriever_over(PassageIndex.open(out), "bm25").retrieve(
        "Who patented the telephone?", k=1
    )
    assert hit.passage.id == "docs/e.txt"


def test_a_file_whose_path_was_damaged_in_the_journal_is_not_indexed_twice(
    docs: Path, out: Path
) -> None:
    ingest([docs], out)
    gc.collect()  # closes the database
    file, row = out / "index.sqlite", b"docs/a.txt" + os.fsencode(docs / "a.txt")
    content = file.read_bytes()
    assert content.count(row) == 1
    file.write_bytes(
        content.replace(
            row,
            row.replace(b"a.txt", b"q.txt")[: len(row)].replace(
                b"docs/q", b"docs/a", 1
            ),
        )
    )
    (docs / "a.txt").write_text("Another text of a.")
    with pytest.raises(
        IndexMismatch, match=says(str(out), "is damaged", "ras-agent index")
    ):
        ingest([docs], out)


def test_the_same_input_gives_the_same_ids(
    docs: Path, out: Path, tmp_path: Path
) -> None:
    (docs / "long.txt").write_text(LONG)
    ingest([docs], out, chunking=HALVES)
    ingest([docs], tmp_path / "other.index", chunking=HALVES)
    assert list(stored(out)) == list(stored(tmp_path / "other.index"))


class TestAgain:
    def test_unchanged_files_are_not_read(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ingest([docs], out)
        monkeypatch.setattr(ingest_module, "load", None)
        report = ingest([docs], out)
        assert (report.files, report.files_unchanged, report.passages_total) == (
            0,
            4,
            4,
        )

    def test_a_changed_file_replaces_its_passages(self, docs: Path, out: Path) -> None:
        (docs / "a.txt").write_text(LONG)
        ingest([docs], out, chunking=HALVES)
        touch_later(docs / "a.txt", "Short now.")
        report = ingest([docs], out, chunking=HALVES)
        assert (report.files, report.files_unchanged, report.documents_written) == (
            1,
            3,
            1,
        )
        assert stored(out) == {"docs/a.txt": "Short now."} | {
            f"docs/{name}.txt": f"Text of {name}." for name in "bcd"
        }

    def test_of_a_changed_file_only_changed_records_are_written(
        self, tmp_path: Path, out: Path
    ) -> None:
        path = records(
            tmp_path / "a.jsonl",
            {"id": 1, "text": "one"},
            {"id": 2, "text": "two"},
            {"id": 3, "text": "3"},
        )
        ingest([path], out)
        touch_later(path, '{"id": 1, "text": "one"}\n{"id": 2, "text": "TWO"}\n')
        report = ingest([path], out)
        assert (
            report.documents_unchanged,
            report.documents_written,
            report.documents_removed,
        ) == (1, 1, 1)
        assert stored(out) == {"1": "one", "2": "TWO"}

    def test_files_are_read_again_by_a_version_that_reads_them_in_another_way(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = ingest_module.READING
        with monkeypatch.context() as earlier:
            earlier.setattr(ingest_module, "READING", now - 1)
            ingest([docs], out)
            assert ingest([docs], out).files_unchanged == 4
        again = ingest([docs], out)
        assert (again.files_unchanged, again.documents_written) == (0, 4)
        assert ingest([docs], out).files_unchanged == 4

    def test_another_way_of_cutting_cuts_everything_anew(
        self, tmp_path: Path, out: Path
    ) -> None:
        (tmp_path / "a.txt").write_text(LONG)
        ingest([tmp_path / "a.txt"], out)
        ingest([tmp_path / "a.txt"], out, chunking=HALVES)
        assert list(stored(out).values()) == [
            "Bell was born in Edinburgh. He moved to Canada.",
            "He patented the telephone.",
        ]

    def test_more_files_can_be_added(self, docs: Path, out: Path) -> None:
        ingest([docs / "a.txt"], out)
        ingest([docs / "b.txt"], out)
        assert list(stored(out)) == ["a.txt", "b.txt"]

    def test_vanished_files_are_reported_and_pruned_when_asked(
        self, docs: Path, out: Path
    ) -> None:
        ingest([docs], out)
        (docs / "b.txt").unlink()
        assert ingest([docs], out).vanished == ("docs/b.txt",)
        assert "docs/b.txt" in stored(out)
        report = ingest([docs], out, prune=True)
        assert (report.vanished, report.documents_removed) == ((), 1)
        assert "docs/b.txt" not in stored(out)

    def test_an_unreadable_folder_keeps_its_own_files_from_pruning_and_no_others(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (docs / "in").mkdir()
        (docs / "in" / "e.txt").write_text("Text of e.")
        (docs / "in.txt").write_text("Text beside.")
        ingest([docs], out)
        (docs / "b.txt").unlink()
        (docs / "in.txt").unlink()
        listed = Path.iterdir
        closed = PermissionError(13, "Permission denied")
        monkeypatch.setattr(
            Path,
            "iterdir",
            lambda path: raising(closed) if path.name == "in" else listed(path),
        )
        report = ingest([docs, docs.parent / "gone"], out, prune=True)
        assert list(stored(out)) == [
            "docs/a.txt",
            "docs/c.txt",
            "docs/d.txt",
            "docs/in/e.txt",
        ]
        assert (report.vanished, report.documents_removed) == (("docs/in/e.txt",), 2)
        assert [item.place for item in report.errors] == [
            "docs/in",
            str(docs.parent / "gone"),
        ]

    def test_an_entry_that_cannot_be_looked_at_is_reported_and_stays(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ingest([docs], out)
        (docs / "c.txt").unlink()
        looked, closed = Path.is_dir, PermissionError(13, "Permission denied")
        monkeypatch.setattr(
            Path,
            "is_dir",
            lambda path: raising(closed) if path.name == "b.txt" else looked(path),
        )
        report = ingest([docs], out, prune=True)
        assert list(stored(out)) == ["docs/a.txt", "docs/b.txt", "docs/d.txt"]
        assert [str(item) for item in report.errors] == [
            "docs/b.txt: cannot be read: Permission denied"
        ]

    def test_a_named_folder_that_cannot_be_looked_at_is_reported(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked, closed = Path.is_dir, PermissionError(13, "Permission denied")
        monkeypatch.setattr(
            Path,
            "is_dir",
            lambda path: raising(closed) if path.name == "closed" else looked(path),
        )
        report = ingest([docs, docs / "closed"], out)
        assert [str(item) for item in report.errors] == [
            f"{docs}/closed: cannot be read: Permission denied"
        ]
        assert len(stored(out)) == 4

    def test_files_of_a_named_folder_that_is_gone_stay_though_another_of_its_name_is_there(
        self, docs: Path, out: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "other" / "docs").mkdir(parents=True)
        (tmp_path / "other" / "docs" / "z.txt").write_text("Text of z.")
        ingest([docs, tmp_path / "other" / "docs"], out)
        docs.rename(tmp_path / "unmounted")
        report = ingest([docs, tmp_path / "other" / "docs"], out, prune=True)
        assert len(stored(out)) == 5
        assert (report.vanished, report.documents_removed) == ((), 0)
        assert [str(item) for item in report.errors] == [
            f"{docs}: no such file or folder"
        ]


class TestErrors:
    def test_what_cannot_be_loaded_is_counted_and_the_rest_indexed(
        self, docs: Path, out: Path
    ) -> None:
        (docs / "b.txt").write_bytes(b"\xff\xfe\x00")
        (docs / "photo.png").touch()
        report = ingest([docs], out)
        assert list(stored(out)) == ["docs/a.txt", "docs/c.txt", "docs/d.txt"]
        assert [item.place for item in report.skipped] == [
            "docs/photo.png",
            "docs/b.txt",
        ]
        assert [item.place for item in report.errors] == ["docs/b.txt"]

    def test_a_file_with_an_error_is_read_again(
        self, tmp_path: Path, out: Path
    ) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text('{"id": 1, "text": "one"}\nbroken\n')
        ingest([path], out)
        report = ingest([path], out)
        assert (report.files, report.documents_unchanged, len(report.errors)) == (
            1,
            1,
            1,
        )

    def test_an_error_in_a_file_removes_nothing_from_the_index(
        self, tmp_path: Path, out: Path
    ) -> None:
        path = records(
            tmp_path / "a.jsonl", {"id": 1, "text": "one"}, {"id": 2, "text": "two"}
        )
        ingest([path], out)
        touch_later(path, '{"id": 1, "text": "one"}\n{"id": 2, "text": \n')
        ingest([path], out)
        assert stored(out) == {"1": "one", "2": "two"}

    def test_an_id_used_twice_in_a_file_is_reported_with_both_places(
        self, tmp_path: Path, out: Path
    ) -> None:
        one = records(
            tmp_path / "a.jsonl", {"id": 1, "text": "one"}, {"id": 1, "text": "again"}
        )
        report = ingest([one], out)
        assert [str(item) for item in report.errors] == [
            "a.jsonl line 2: id '1' is already taken by a.jsonl line 1"
        ]
        assert stored(out) == {"1": "one"}

    def test_ids_that_restart_in_every_file_can_be_left_aside(
        self, tmp_path: Path, out: Path
    ) -> None:
        files = [
            records(tmp_path / name, {"id": 1, "text": name})
            for name in ("a.jsonl", "b.jsonl")
        ]
        ingest(files, out, fields=Fields(id=None))
        assert stored(out) == {"a.jsonl:1": "a.jsonl", "b.jsonl:1": "b.jsonl"}

    def test_a_file_whose_first_records_are_all_bad_is_given_up(
        self, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ingest_module, "HOPELESS", 3)
        path = records(tmp_path / "a.jsonl", *[{"body": "x"}] * 9)
        report = ingest([path], out)
        assert len(report.errors) == 4
        assert says(
            "a.jsonl", "first 3 records", "bad", "the rest was not read"
        ).search(str(report.errors[3]))

    def test_nothing_to_read_is_an_error(self, tmp_path: Path, out: Path) -> None:
        with pytest.raises(IngestError, match="gone: no such file or folder"):
            ingest([tmp_path / "gone"], out)
        assert not out.exists()

    def test_a_place_that_holds_something_else_is_refused(self, docs: Path) -> None:
        with pytest.raises(IndexExists, match="holds something else"):
            ingest([docs / "a.txt"], docs)

    def test_a_second_writer_is_refused(self, docs: Path, out: Path) -> None:
        def second_run(_: Progress) -> None:
            with (
                pytest.raises(IngestError, match="another run is writing this index"),
                open_journal(SqliteDatabase(out)) as journal,
            ):
                journal.put_file("x", Path("/x"), "x")

        ingest([docs], out, on_progress=second_run)

    def test_a_damaged_index_names_the_remedy(self, docs: Path, out: Path) -> None:
        ingest([docs], out)
        before = stored(out)
        (out / "index.sqlite").write_bytes(b"no database" * 500)
        with pytest.raises(
            IndexMismatch,
            match=says("index.sqlite", "damaged", "delete the folder", "again"),
        ):
            ingest([docs], out)
        shutil.rmtree(out)
        ingest([docs], out)
        assert stored(out) == before


def test_what_stays_of_a_file_that_can_no_longer_be_read_is_reported(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.jsonl"
    records(file, {"id": "x", "text": "It leaks."}, {"id": "y", "text": "Since May."})
    ingest([file], tmp_path / "index")
    touch_later(file, '{"id": "x", "text": "It leaks."}\n{"id": "y",\n')
    report = ingest([file], tmp_path / "index")
    assert report.passages_total == 2
    assert (
        str(report.skipped[-1])
        == "a.jsonl: a document that an earlier run read in it can still be found: mend the file, or --forget it"
    )
    assert not report.skipped[-1].error


@pytest.mark.parametrize(("name", "kind"), [("a.RTF", "DOCX"), ("a.xls", "XLSX")])
def test_a_file_of_an_older_program_is_reported_with_the_format_to_save_it_in(
    tmp_path: Path, out: Path, name: str, kind: str
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(IngestError, match=says("unknown kind", f"save it as {kind}")):
        ingest([tmp_path / name], out)


def grow(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"id": "c", "te')


def be_replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text('{"id": "d", "text": "Of another file."}\n')
    os.replace(other, path)


def shrink(path: Path) -> None:
    os.truncate(path, 40)


@pytest.mark.parametrize("change", [grow, be_replaced, shrink, Path.unlink])
@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_what_is_read_of_a_file_after_it_changed_is_not_indexed_and_is_reported(
    tmp_path: Path, out: Path, name: str, change: Callable[[Path], None]
) -> None:
    file = tmp_path / name
    whole = [{"id": "a", "text": "It leaks."}, {"id": "b", "text": "Since May."}]
    records(file, *whole)
    changes = iter([change])

    def change_once(progress: Progress) -> None:
        for one in changes:
            one(file)

    report = ingest([file], out, on_progress=change_once)
    assert [str(error) for error in report.errors] == [
        f"{name}: changed or vanished while it was read; run again when no program writes it"
    ]
    assert report.passages_total == 0
    records(file, *whole)
    again = ingest([file], out)
    assert not again.errors
    assert again.documents_written == (2 if name == "a.jsonl" else 1)


class TestStrict:
    def test_the_first_error_ends_the_run_before_a_new_index_is_made(
        self, docs: Path, out: Path
    ) -> None:
        (docs / "c.txt").write_bytes(b"\xe9")
        with pytest.raises(IngestError, match=r"docs/c.txt line 1: not UTF-8"):
            ingest([docs], out, strict=True)
        assert not out.exists()

    def test_an_existing_index_is_left_as_it_was(self, docs: Path, out: Path) -> None:
        ingest([docs], out)
        before = PassageIndex.open(out).commit, stored(out)
        touch_later(docs / "a.txt", "Changed.")
        records(
            docs / "e.jsonl", {"id": "x", "text": "one"}, {"id": "x", "text": "two"}
        )
        with pytest.raises(
            IngestError,
            match=says("docs/e.jsonl line 2", "id 'x'", "taken", "docs/e.jsonl line 1"),
        ):
            ingest([docs], out, strict=True)
        assert (PassageIndex.open(out).commit, stored(out)) == before

    def test_what_is_left_out_on_purpose_is_no_error(
        self, docs: Path, out: Path
    ) -> None:
        (docs / ".hidden.txt").touch()
        (docs / "photo.png").touch()
        assert ingest([docs], out, strict=True).passages_total == 4


IMPORTS = """
from __future__ import annotations
import os, signal, sys
import numpy as np
from ras_agent.tools.index import ingest as ingest_module
from ras_agent.tools.index.ingest import ingest
"""
KILLED = """
def stop_in_the_third_file(progress):
    if progress.file == "docs/c.txt":
        os.kill(os.getpid(), signal.SIGKILL)

ingest_module.FIRST_BATCH = ingest_module.LARGEST_BATCH = 1
ingest([sys.argv[1]], sys.argv[2], embedder=EMBEDDER, on_progress=stop_in_the_third_file)
"""


class Letters:
    """Embeds a text as how often it holds each letter."""

    name, dimension = "letters", 26

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.seen += texts
        counts = [
            [text.lower().count(chr(97 + at)) + 1 for at in range(26)] for text in texts
        ]
        vectors = np.array(counts, np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def kill_in_the_third_file(docs: Path, out: Path, embedder: str) -> None:
    script = IMPORTS + inspect.getsource(Letters) + KILLED.replace("EMBEDDER", embedder)
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script, str(docs), str(out)], capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


DYING = """
from ras_agent.tools.store.journal import Journal
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.store.sqlite import SqliteDatabase

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

owner, _, method = sys.argv[3].partition(".")
setattr({"Journal": Journal, "PassageIndex": PassageIndex}[owner], method, die)
ingest_module.FIRST_BATCH = ingest_module.LARGEST_BATCH = 1
ingest([sys.argv[1]], sys.argv[2])
"""


class TestKilled:
    @pytest.mark.parametrize(
        "at", ["PassageIndex.upsert", "PassageIndex.delete_documents", "Journal.commit"]
    )
    def test_between_index_and_journal_nothing_is_lost_and_nothing_left_over(
        self, docs: Path, out: Path, at: str
    ) -> None:
        ingest([docs], out)
        touch_later(docs / "a.txt", "Changed.")
        touch_later(docs / "b.txt", " ")
        (docs / "e.txt").write_text("Text of e.")
        command = [sys.executable, "-P", "-c", IMPORTS + DYING, str(docs), str(out), at]
        assert (
            subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
        )
        ingest([docs], out)
        texts = {
            "a": "Changed.",
            "c": "Text of c.",
            "d": "Text of d.",
            "e": "Text of e.",
        }
        assert stored(out) == {f"docs/{name}.txt": text for name, text in texts.items()}

    def test_a_killed_run_is_taken_up_where_it_stopped(
        self, docs: Path, out: Path
    ) -> None:
        kill_in_the_third_file(docs, out, "None")
        assert list(stored(out)) == ["docs/a.txt", "docs/b.txt"]
        report = ingest([docs], out)
        assert (report.files_unchanged, report.files) == (2, 2)
        assert stored(out) == {
            f"docs/{name}.txt": f"Text of {name}." for name in "abcd"
        }

    def test_what_was_embedded_is_not_embedded_again(
        self, docs: Path, out: Path
    ) -> None:
        pytest.importorskip("faiss")
        kill_in_the_third_file(docs, out, "Letters()")
        letters = Letters()
        ingest([docs], out, embedder=letters)
        assert [
            text
            for text in "abcd"
            if any(f"of {text}." in seen for seen in letters.seen)
        ] == ["c", "d"]


class TestFields:
    """Are given once, for all files or for those of a pattern."""

    @pytest.fixture
    def mixed(self, tmp_path: Path) -> Path:
        folder = tmp_path / "mixed"
        folder.mkdir()
        records(folder / "a.jsonl", {"id": "a", "body": "One."})
        records(folder / "b.json.jsonl", {"id": "b", "text": "Two.", "body": "Six."})
        (folder / "c.csv").write_text("id,note,team\nc,Three.,x\n")
        return folder

    RULES: ClassVar = {"a*.jsonl": Fields("body"), "*.csv": Fields("note")}

    def test_the_first_pattern_that_fits_names_them_and_the_rest_is_metadata(
        self, mixed: Path, out: Path
    ) -> None:
        assert ingest([mixed], out, fields=self.RULES).errors == ()
        found = {
            passage.text: dict(passage.metadata)
            for passage in PassageIndex.open(out).passages
        }
        assert found == {
            "One.": {"file": "mixed/a.jsonl"},
            "Two.": {"file": "mixed/b.json.jsonl", "body": "Six."},
            "Three.": {"file": "mixed/c.csv", "team": "x"},
        }

    def test_the_index_remembers_them_for_new_files_and_for_parts_of_the_folder(
        self, mixed: Path, out: Path
    ) -> None:
        ingest([mixed], out, fields=self.RULES)
        (mixed / "sub").mkdir()
        (mixed / "sub" / "d.csv").write_text("note\nFour.\n")
        report = ingest([mixed], out)
        assert (report.errors, report.files_unchanged, report.documents_written) == (
            (),
            3,
            1,
        )
        assert ingest([mixed / "sub"], out).files_unchanged == 1

    def test_what_is_given_later_wins_and_rereads_the_files_that_it_is_for(
        self, mixed: Path, out: Path
    ) -> None:
        ingest([mixed], out, fields=self.RULES)
        report = ingest([mixed], out, fields={"b*": Fields("body")})
        assert (report.files_unchanged, report.documents_written, stored(out)["b"]) == (
            2,
            1,
            "Six.",
        )

    def test_other_sources_are_read_as_usual(
        self, mixed: Path, out: Path, tmp_path: Path
    ) -> None:
        ingest([mixed / "a.jsonl"], out, fields=Fields("body"))
        other = records(tmp_path / "other.jsonl", {"id": "o", "text": "Usual."})
        assert ingest([other, mixed / "a.jsonl"], out).errors == ()

    def test_they_move_with_the_folder_and_are_forgotten_with_it(
        self, mixed: Path, out: Path, tmp_path: Path
    ) -> None:
        ingest([mixed], out, fields=self.RULES)
        (tmp_path / "elsewhere").mkdir()
        moved = mixed.rename(tmp_path / "elsewhere" / "mixed")
        assert ingest([moved], out).files_unchanged == 3
        ingest([], out, forget=[str(moved)])
        assert not any(
            b"elsewhere" in file.read_bytes()
            for file in out.rglob("*")
            if file.is_file()
        )


class TestMetadata:
    """Is given to the named files, remembered, and wins over a file's own words."""

    @pytest.fixture
    def teams(self, tmp_path: Path) -> Path:
        folder = tmp_path / "teams"
        (folder / "hr").mkdir(parents=True)
        (folder / "a.txt").write_text("Bell was born in Edinburgh.")
        (folder / "b.md").write_text(
            "---\nteam: hr\nyear: 2019\n---\nThe depot is in Ostrell."
        )
        (folder / "hr" / "c.jsonl").write_text(
            '{"id": "c", "text": "Ada works here.", "team": "labs"}\n'
        )
        return folder

    @staticmethod
    def found(out: Path, *keys: str) -> dict[str, list[object]]:
        passages = PassageIndex.open(out).passages
        return {
            passage.file: [passage.metadata.get(key) for key in keys]
            for passage in passages
        }

    def test_no_file_says_otherwise(self, teams: Path, out: Path) -> None:
        ingest([teams], out, metadata={"team": "sales"})
        assert self.found(out, "team", "year") == {
            "teams/a.txt": ["sales", None],
            "teams/b.md": ["sales", "2019"],
            "teams/hr/c.jsonl": ["sales", None],
        }

    def test_the_index_remembers_it_and_gives_it_to_new_files(
        self, teams: Path, out: Path
    ) -> None:
        ingest([teams], out, metadata={"team": "sales"})
        (teams / "d.txt").write_text("New.")
        (teams / "a.txt").write_text("Changed.")
        assert ingest([teams], out).files_unchanged == 2
        assert set(map(str, self.found(out, "team").values())) == {"['sales']"}

    def test_another_value_updates_it_and_the_other_fields_stay(
        self, teams: Path, out: Path
    ) -> None:
        ingest([teams], out, metadata={"team": "sales", "year": 2024})
        assert (
            ingest([teams], out, metadata={"team": ["labs", "hr"]}).documents_written
            == 3
        )
        assert self.found(out, "team", "year")["teams/a.txt"] == [["labs", "hr"], 2024]
        ingest([teams], out, metadata={"team": None})
        assert self.found(out, "team", "year")["teams/b.md"] == ["hr", 2024]

    def test_the_nearest_folder_that_was_named_counts(
        self, teams: Path, out: Path
    ) -> None:
        ingest([teams], out, metadata={"team": "sales", "year": 2024})
        ingest([teams / "hr"], out, metadata={"team": "hr"})
        assert ingest([teams], out).files_unchanged == 3
        found = self.found(out, "team", "year")
        assert (found["teams/hr/c.jsonl"], found["teams/a.txt"]) == (
            ["hr", 2024],
            ["sales", 2024],
        )

    def test_it_moves_with_the_folder_and_is_forgotten_with_the_file(
        self, teams: Path, out: Path
    ) -> None:
        ingest([teams / "a.txt"], out, metadata={"team": "sales"})
        (teams.parent / "new").mkdir()
        moved = (teams / "a.txt").rename(teams.parent / "new" / "a.txt")
        assert ingest([moved], out).files_unchanged == 1
        assert self.found(out, "team") == {"a.txt": ["sales"]}
        delete_documents(out, "a.txt")
        ingest([moved], out)
        assert self.found(out, "team") == {"a.txt": [None]}

    @pytest.mark.parametrize(
        ("metadata", "message"),
        [
            ({"title": "x"}, "metadata: 'title' is a field of the passage itself"),
            ({"page": 3}, "metadata: 'page' is a field of the passage itself"),
            (
                {"team": {"not": "x"}},
                "metadata: 'team' must be a text, a number, true or false",
            ),
            ({"team": []}, "metadata: filter key 'team' has no value"),
            ({"team": float("nan")}, "metadata: Out of range float"),
            ({"team": "\ud800"}, "metadata: 'utf-8' codec can't encode"),
        ],
    )
    def test_what_no_filter_can_compare_is_an_error(
        self, teams: Path, out: Path, metadata: dict[str, object], message: str
    ) -> None:
        with pytest.raises(FilterError, match=message):
            ingest([teams], out, metadata=metadata)
        assert not out.exists()


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("german", "Die Häuser der Altstadt.", "ein Haus"),
        ("french", "Les rivières traversent la ville.", "une rivière"),
        ("chinese", "利斯河流经爱丁堡。", "爱丁堡"),
    ],
)
def test_an_index_stems_in_its_language_and_remembers_it(
    tmp_path: Path, language: str, text: str, query: str
) -> None:
    for name, content in (("a", text), ("b", "Der, le, 的.")):
        (tmp_path / f"{name}.txt").write_text(content)
    out, files = tmp_path / "i", [tmp_path / "a.txt", tmp_path / "b.txt"]
    ingest(files, out, language=language)
    assert ingest(files, out).files_unchanged == 2
    (hit,) = retriever_over(PassageIndex.open(out)).retrieve(query, 5)
    assert hit.passage.text == text
    with pytest.raises(
        IndexMismatch,
        match=says(f"texts in {language}", "not in english", "leave the language"),
    ):
        ingest(files, out, language="english")


def test_another_embedder_is_refused(docs: Path, out: Path) -> None:
    ingest([docs], out)
    with pytest.raises(IndexMismatch, match="holds no vectors"):
        ingest([docs], out, embedder=Letters())


def test_progress_counts_bytes_to_the_end(docs: Path, out: Path) -> None:
    seen: list[Progress] = []
    ingest([docs], out, on_progress=seen.append)
    assert (seen[-1].bytes_read, seen[-1].bytes_total, seen[-1].passages) == (40, 40, 4)
    assert [progress.bytes_read for progress in seen] == sorted(
        progress.bytes_read for progress in seen
    )


def test_a_number_that_is_none_is_no_value_of_a_record(
    tmp_path: Path, out: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"id": "a", "text": "Ada.", "score": NaN, "most": Infinity, "age": 7, "in": {"x": [NaN, 1], "y": NaN}}\n',
        "utf-8",
    )
    ingest([path], out)
    (passage,) = PassageIndex.open(out).passages
    known = {"file": "a.jsonl", "age": 7, "in": {"x": [None, 1]}}
    assert dict(passage.metadata) == known


class TestForgetting:
    def test_a_file_is_forgotten_by_its_label_and_a_record_by_its_id(
        self, docs: Path, out: Path
    ) -> None:
        records(
            docs / "e.jsonl", {"id": "x", "text": "one"}, {"id": "y", "text": "two"}
        )
        ingest([docs], out)
        report = ingest([], out, forget=["docs/a.txt", "x"])
        assert (report.documents_removed, report.passages_total) == (2, 4)
        assert list(stored(out)) == ["docs/b.txt", "docs/c.txt", "docs/d.txt", "y"]

    def test_a_forgotten_file_that_is_still_there_is_reported_since_the_next_run_reads_it(
        self, docs: Path, out: Path
    ) -> None:
        ingest([docs], out)
        (docs / "b.txt").unlink()
        report = ingest([], out, forget=["docs/a.txt", "docs/b.txt"])
        assert report.remaining == (str(docs / "a.txt"),)

    def test_what_came_from_a_folder_is_forgotten_by_its_path_though_it_is_gone(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ingest(
            [docs, records(docs.parent / "e.jsonl", {"id": "x", "text": "one"})], out
        )
        docs.rename(docs.parent / "moved")
        monkeypatch.chdir(docs.parent)
        assert ingest([], out, forget=["docs"]).documents_removed == 4
        assert (
            ingest([], out, forget=[str(docs.parent / "e.jsonl")]).documents_removed
            == 1
        )
        assert stored(out) == {}

    def test_a_file_that_was_renamed_takes_its_records_along_when_the_old_name_is_forgotten(
        self, tmp_path: Path, out: Path
    ) -> None:
        old = records(tmp_path / "old.jsonl", {"id": "x", "text": "one"})
        ingest([old], out)
        new = old.rename(tmp_path / "new.jsonl")
        assert ingest([new], out, forget=["old.jsonl"]).errors == ()
        assert stored(out) == {"x": "one"}

    def test_a_name_that_is_not_there_is_an_error(self, docs: Path, out: Path) -> None:
        ingest([docs], out)
        with pytest.raises(
            IngestError, match=r"nothing in the index came from 'a.txt'"
        ):
            ingest([], out, forget=["a.txt"])


class Killed(BaseException):
    """Ends a run where it is raised."""


def kill(*_: object) -> NoReturn:
    raise Killed


def files_with(content: bytes, folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and content in path.read_bytes()
    )


class TestErasing:
    @pytest.fixture
    def interrupted(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Path:
        """The index where a run that forgot docs/a.txt ended after its commit and before it was compacted."""
        ingest([docs], out)
        (docs / "a.txt").unlink()
        with monkeypatch.context() as patch:
            patch.setattr(PassageIndex, "finish", kill)
            with pytest.raises(Killed):
                ingest([], out, forget=["docs/a.txt"])
        assert len(stored(out)) == 3
        assert not PassageIndex.open(out).is_finished()
        return out

    def test_the_same_call_ends_a_killed_one(self, interrupted: Path) -> None:
        with pytest.raises(
            IngestError, match=r"nothing in the index came from 'docs/a\.txt'"
        ):
            ingest([], interrupted, forget=["docs/a.txt"])
        assert (
            files_with(b"Text of a.", interrupted)
            == files_with(b"a.txt", interrupted)
            == []
        )

    def test_so_does_any_other_run(self, interrupted: Path, docs: Path) -> None:
        ingest([docs], interrupted, prune=True)
        assert (
            files_with(b"Text of a.", interrupted)
            == files_with(b"a.txt", interrupted)
            == []
        )

    def test_a_run_may_leave_it_to_a_later_one(self, docs: Path, out: Path) -> None:
        ingest([docs], out)
        ingest([], out, forget=["docs/a.txt"], compact="later")
        assert "docs/a.txt" not in PassageIndex.open(out).document_ids()
        (docs / "b.txt").write_text("Changed.")
        ingest([docs / "b.txt"], out, compact="later")
        assert not PassageIndex.open(out).is_finished()
        ingest([docs / "b.txt"], out)
        assert PassageIndex.open(out).is_finished()
        assert files_with(b"Text of a.", out) == files_with(b"a.txt", out) == []
        assert files_with(b"Text of b.", out) == []

    def test_no_name_of_many_that_were_removed_is_left_in_the_journal(
        self, tmp_path: Path, out: Path
    ) -> None:
        many = [
            {"id": f"<{number:x}-{'x' * (number % 40)}>", "text": "one"}
            for number in range(3000)
        ]
        file = records(tmp_path / "e.jsonl", *many)
        ingest([file], out)
        records(file, *(item for number, item in enumerate(many) if number % 3))
        ingest([file], out)
        held = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
        assert [
            number
            for number in range(0, 3000, 3)
            if str(many[number]["id"]).encode() in held
        ] == []

    def test_a_removal_that_was_killed_before_its_commit_has_not_begun(
        self, docs: Path, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ingest([docs], out)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "commit", kill)
            with pytest.raises(Killed):
                ingest([], out, forget=["docs/a.txt"])
        assert len(stored(out)) == 4
        assert ingest([], out, forget=["docs/a.txt"]).documents_removed == 1
        assert len(stored(out)) == 3


def test_a_row_of_very_many_columns_is_skipped_unless_it_has_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "_MOST_FIELDS", 1_000)
    columns = [f"c{number}" for number in range(300)]
    cells = ["a value" for _ in columns]
    wide = f"{','.join(columns)}\n{','.join(cells)}\n"
    (tmp_path / "wide.csv").write_text(wide)
    (tmp_path / "named.csv").write_text(f"id,{columns[0]}\nk1,a value\n")
    report = ingest([tmp_path], tmp_path / "index")
    (problem,) = report.skipped
    assert "fields would be repeated in each of about" in problem.reason
    assert "give it an id" in problem.reason
    assert report.documents_written == 1
