"""`ras-agent index`: its output and its exit codes."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from tests.messages import says

Cli = Callable[..., Any]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "bell.txt").write_text(
        "Bell was born in Edinburgh. He patented the telephone."
    )
    (folder / "phone.md").write_text("# Telephone\n\nIt carries the voice.")
    return folder


def test_a_good_run_is_one_line(cli: Cli, docs: Path) -> None:
    result = cli("index", "docs", "--out", "my.index")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "my.index 2 passages · 2 written\n"


def test_an_index_can_be_asked(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    result = cli(
        "ask",
        "Who patented the telephone?",
        "--index",
        "my.index",
        "--loop",
        "single-shot",
    )
    assert "hits      bell " in result.stdout


def test_the_bundled_sample_can_be_indexed_alone_or_with_files(
    cli: Cli, docs: Path
) -> None:
    assert (
        cli("index", "--sample", "--out", "my.index").stdout
        == "my.index 96 passages · 96 written\n"
    )
    assert (
        cli("index", "docs", "--sample", "--out", "both.index").stdout
        == "both.index 98 passages · 98 written\n"
    )


def test_a_second_run_does_not_read_unchanged_files(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    assert (
        cli("index", "docs", "--out", "my.index").stdout
        == "my.index 2 passages · 2 files unchanged\n"
    )


def test_errors_are_listed_one_by_one_and_make_the_exit_code_3(
    cli: Cli, docs: Path
) -> None:
    (docs / "bad.jsonl").write_text('{"text": \n{"text": "good"}\n[]\n')
    result = cli("index", "docs", "gone", "--out", "my.index")
    assert result.exit_code == 3
    assert result.stderr.splitlines() == [
        "skipped  gone: no such file or folder",
        "skipped  docs/bad.jsonl line 1: not JSON: Expecting value at character 9: '{\"text\":'",
        'skipped  docs/bad.jsonl line 3: expected an object such as {"text": "..."}, got []',
    ]
    assert result.stdout == "my.index 3 passages · 3 written · 3 errors\n"


def test_files_left_out_are_grouped_by_reason(cli: Cli, docs: Path) -> None:
    for name in ("a.bin", "b.bin", "c.bin", "d.bin", ".hidden"):
        (docs / name).touch()
    result = cli("index", "docs", "--out", "my.index")
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert told.startswith(
        "left out hidden: docs/.hidden unknown kind of file '.bin'; known: .adoc, "
    )
    assert told.endswith(
        "; if it is text, give --as text '*.bin': docs/a.bin, docs/b.bin, docs/c.bin and 1 more "
        "my.index 2 passages · 2 written · 5 left out"
    )
    assert (
        "d.bin: unknown kind"
        in cli("index", "docs", "--out", "my.index", "--verbose").stdout
    )


def test_strict_stops_at_the_first_error_and_writes_nothing(
    cli: Cli, docs: Path
) -> None:
    (docs / "bad.jsonl").write_text("[]\n")
    result = cli("index", "docs", "--out", "my.index", "--strict")
    assert (result.exit_code, result.stdout) == (1, "")
    assert says(
        "docs/bad.jsonl line 1", 'expected an object such as {"text": "..."}', "got []"
    ).search(result.stderr)
    assert not Path("my.index").exists()


def test_deleted_files_are_reported_and_pruned_on_request(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    (docs / "phone.md").unlink()
    assert cli("index", "docs", "--out", "my.index").stdout == (
        "gone     docs/phone.md: still in the index; --prune removes them\nmy.index 2 passages · 1 file unchanged\n"
    )
    assert cli("index", "docs", "--out", "my.index", "--prune").stdout == (
        "my.index 1 passage · 1 document removed · 1 file unchanged\n"
    )


def test_an_interrupted_removal_is_ended_by_the_same_command(
    cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("index", "docs", "--out", "my.index")
    (docs / "phone.md").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(PassageIndex, "finish", full_disk)
        assert cli("index", "docs", "--out", "my.index", "--prune").exit_code == 1
    assert not PassageIndex.open("my.index").is_finished()
    assert cli("index", "docs", "--out", "my.index", "--prune").stdout == (
        "my.index 1 passage · 1 file unchanged\n"
    )
    assert PassageIndex.open("my.index").is_finished()


def test_compaction_may_be_left_to_a_later_command(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    cli("index", "--forget", "docs/phone.md", "--out", "my.index", "--compact", "later")
    cli("kg", "delete", "my.index", "docs/bell.txt", "--compact", "later")
    assert len(PassageIndex.open("my.index")) == 0
    assert not PassageIndex.open("my.index").is_finished()
    (docs / "phone.md").unlink()
    cli("index", "docs", "--out", "my.index")
    assert PassageIndex.open("my.index").is_finished()


def test_what_is_removed_is_erased_from_the_graph(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    cli("kg", "build", "my.index")
    (docs / "phone.md").unlink()
    cli("index", "docs", "--out", "my.index", "--prune")
    assert list(KGIndex.open("my.index").documents) == ["docs/bell.txt"]


def test_a_file_that_cannot_be_read_is_not_pruned(cli: Cli, docs: Path) -> None:
    cli("index", "docs", "--out", "my.index")
    (docs / "phone.md").unlink()
    (docs / "phone.md").symlink_to("nowhere.md")
    result = cli("index", "docs", "--out", "my.index", "--prune")
    assert (result.exit_code, result.stderr) == (
        3,
        "skipped  docs/phone.md: a broken link\n",
    )
    assert result.stdout.startswith(
        "gone     docs/phone.md: still in the index; not pruned, because their place"
    )


def test_fields_and_chunks_can_be_set(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,name,body\nx,Bell,He lived. He died.\n")
    cli(
        "index", "a.csv", "--out", "my.index", "--fields", "text=body,title=name,id=key",
        "--chunk-size", 10, "--overlap", 0,
    )  # fmt: skip
    passages = PassageIndex.open("my.index").passages
    assert [
        (passage.document_id, passage.title, passage.text) for passage in passages
    ] == [
        ("x", "Bell", "He lived."),
        ("x", "Bell", "He died."),
    ]


def test_fields_of_a_kind_of_file_are_remembered(cli: Cli, docs: Path) -> None:
    (docs / "a.jsonl").write_text('{"body": "One."}\n')
    (docs / "b.csv").write_text("text,team\nTwo.,x\n")
    assert "name the right one" in cli("index", "docs", "--out", "my.index").stderr
    assert (
        cli(
            "index", "docs", "--out", "my.index", "--fields", "*.jsonl:text=body"
        ).exit_code
        == 0
    )
    (docs / "c.jsonl").write_text('{"body": "Three."}\n')
    assert cli("index", "docs", "--out", "my.index").exit_code == 0
    found = {
        passage.text: passage.metadata
        for passage in PassageIndex.open("my.index").passages
    }
    assert found["Two."] == {"file": "docs/b.csv", "team": "x"}
    assert {"One.", "Three."} < found.keys()


def test_metadata_is_given_on_the_command_line_and_filters_compare_it(
    cli: Cli, docs: Path
) -> None:
    given = ("--metadata", "team=sales", "--metadata", "tag=a", "--metadata", "tag=b")
    assert cli("index", "docs", "--out", "my.index", *given).exit_code == 0
    found = {
        passage.title: passage.metadata
        for passage in PassageIndex.open("my.index").passages
    }
    assert found["bell"] == {
        "file": "docs/bell.txt",
        "team": "sales",
        "tag": ["a", "b"],
    }
    ask = (
        "ask",
        "Who patented the telephone?",
        "--index",
        "my.index",
        "--loop",
        "single-shot",
        "--filter",
    )
    assert "hits      bell " in cli(*ask, "team=sales").stdout
    assert "hits      none" in cli(*ask, "team=labs").stdout
    told = cli("index", "docs", "--out", "my.index", "--metadata", "file=x")
    assert (
        told.exit_code,
        "'file' is a field of the passage itself" in told.stderr,
    ) == (
        2,
        True,
    )


def test_records_with_an_id_stay_whole_and_the_long_ones_are_told(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": "x", "text": "%s"}\n' % ("It is long. " * 100)
    )
    assert cli("index", "a.jsonl", "--out", "my.index").stdout == (
        "long     1 record is longer than 1,000 characters and whole, as records with an\n"
        "         id are; --chunk-size N cuts them\n"
        "my.index 1 passage · 1 written\n"
    )
    assert cli(
        "index", "a.jsonl", "--out", "my.index", "--chunk-size", 1000
    ).stdout == ("my.index 2 passages · 2 written\n")


def test_a_folder_that_was_moved_is_told_and_so_is_one_that_is_gone(
    cli: Cli, docs: Path
) -> None:
    cli("index", "docs", "--out", "my.index")
    Path("moved").mkdir()
    new = docs.rename(docs.parent / "moved" / "docs")
    told = cli("index", "moved/docs", "--out", "my.index").stdout
    assert "".join(told.split()).startswith(f"moved{docs}isnow{new}my.index2passages")
    Path("other").mkdir()
    Path("other/c.txt").write_text("Text of c.")
    new.rename(docs.parent / "away")
    told = "".join(cli("index", "other", "--out", "my.index").stdout.split())
    assert told.startswith(
        f"gone{new}:whatcamefromthereisstillintheindex;--forgetPATHremovesit"
    )


def test_ids_can_be_numbered(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\nx,one\nx,two\n")
    cli("index", "a.csv", "--out", "my.index", "--fields", "id=")
    assert [passage.id for passage in PassageIndex.open("my.index").passages] == [
        "a.csv:2",
        "a.csv:3",
    ]


def test_the_settings_may_name_the_index(cli: Cli, docs: Path) -> None:
    Path("ras-agent.toml").write_text('index = "set.index"')
    cli("index", "docs")
    assert PassageIndex.exists("set.index")


def test_a_missing_target_is_wrong_usage(cli: Cli, docs: Path) -> None:
    result = cli("index", "docs")
    assert result.exit_code == 2
    assert "give --out PATH" in result.stderr


def test_file_names_cannot_steer_the_terminal(cli: Cli, docs: Path) -> None:
    (docs / "a\x1b[31m.jsonl").write_text("[]")
    result = cli("index", "docs", "--out", "my.index")
    assert result.stderr.startswith("skipped  docs/a[31m.jsonl line 1: ")


@pytest.mark.slow("processes")
def test_a_locale_that_knows_ascii_alone_changes_no_name(tmp_path: Path) -> None:
    folder = tmp_path / "dócs"
    folder.mkdir()
    (folder / "Müller_Straße.txt").write_text("Bell was born in Zürich.", "utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    def run(*arguments: str) -> tuple[int, str]:
        command = [
            sys.executable,
            "-c",
            "from ras_agent.app.cli import main; main()",
            *arguments,
        ]
        ended = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **locale}, capture_output=True
        )
        return ended.returncode, (ended.stdout + ended.stderr).decode()

    assert run("index", "dócs", "--out", "ïndex") == (
        0,
        "?ndex  1 passage ? 1 written\n",
    )
    (passage,) = PassageIndex.open(tmp_path / "ïndex").passages
    assert (passage.id, passage.title) == ("dócs/Müller_Straße.txt", "Müller Straße")
    assert run("kg", "build", "øther") == (
        1,
        "ras-agent: no index at øther: make one with `ras-agent index`\n",
    )
    assert run("index", "--out", "ïndex", "--forget", "dócs/Müller_Straße.txt")[0] == 0
    assert len(PassageIndex.open(tmp_path / "ïndex")) == 0


def test_a_folder_without_anything_to_index_says_so_and_what_was_left_out(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".hidden.md").write_text("# Notes")
    result = cli("index", "sub", "--out", "i")
    assert result.exit_code == 1
    assert says("no file to index", "left out: sub/.hidden.md: hidden").search(
        result.stderr
    )
