"""`ras-agent threads`: stored conversations in the terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.messages import says

pytest.importorskip("aiosqlite", reason="needs the extra 'sqlite'")


def test_a_stored_thread_is_listed_and_forgotten(cli: Any, bell_index: Path) -> None:
    place = "sqlite:threads.sqlite"
    cli(
        "ask",
        "Who patented the telephone?",
        "--index",
        bell_index,
        "--thread",
        "bell",
        "--checkpoint",
        place,
    )
    (thread,) = json.loads(cli("threads", "list", place, "--json").stdout)
    assert (thread["id"], thread["question"]) == ("bell", "Who patented the telephone?")
    assert cli("threads", "list", place).stdout.split()[0] == "bell"
    assert cli("threads", "forget", place, "bell").stdout == "forgotten: bell\n"
    assert cli("threads", "list", place).stdout == ""


def test_a_thread_or_a_file_that_there_is_not_is_said_to_be_missing(
    cli: Any, bell_index: Path, tmp_path: Path
) -> None:
    place = "sqlite:threads.sqlite"
    cli(
        "ask",
        "Who patented the telephone?",
        "--index",
        bell_index,
        "--thread",
        "bell",
        "--checkpoint",
        place,
    )
    unknown = cli("threads", "forget", place, "ball")
    assert (
        unknown.exit_code,
        bool(says("ball", "threads list").search(unknown.stderr)),
    ) == (2, True)
    missing = cli("threads", "list", "sqlite:other.sqlite")
    assert (
        missing.exit_code,
        bool(says("other.sqlite", "--checkpoint").search(missing.stderr)),
    ) == (2, True)
    assert not (tmp_path / "other.sqlite").exists()


def test_what_nobody_judged_is_no_question(
    cli: Any, bell_index: Path, tmp_path: Path
) -> None:
    place = "sqlite:threads.sqlite"
    cli(
        "ask",
        "Who patented the telephone?",
        "--index",
        bell_index,
        "--thread",
        "bell",
        "--checkpoint",
        place,
    )
    assert (
        cli("threads", "export", place, "said.jsonl").stdout
        == "said.jsonl 0 questions\n"
    )
    assert (tmp_path / "said.jsonl").read_text() == ""
