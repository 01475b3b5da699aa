"""`ras-agent replay`: runs asked again without their models, and forked at a hop."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.fork import Fork

Cli = Callable[..., Any]
QUESTION = {
    "id": "q1", "question": "Where was the inventor of the telephone born?", "answers": ["Edinburgh"],
    "supporting_ids": ["tel", "bell"],
}  # fmt: skip
SECOND = "[SUBQ] Where was Alexander Graham Bell born?"


@pytest.fixture
def asked(cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any) -> Path:
    """A run of one question in two hops, whose planner is behind HTTP, and stops where it is asked a third time."""
    data = tmp_path / "questions.jsonl"
    data.write_text(json.dumps(QUESTION) + "\n")
    scripted_llm.script(
        {"reply": "[SUBQ] Who invented the telephone?"},
        {"reply": SECOND},
        {"reply": "[SUFFICIENT]"},
    )
    done = cli(
        "eval", "jsonl", "--data", data, "--corpus", passages_file, "--out", tmp_path / "first", "--k", "1",
        "--planner", scripted_llm.spec, "--extractor", "offline", "--answerer", "offline",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return tmp_path / "first"


def _row(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.jsonl").read_text("utf-8")))


def _plans(folder: Path) -> list[str]:
    return [
        plan["subquery"] or plan["action"] for plan in _row(folder)["trace"]["plans"]
    ]


def test_a_run_is_asked_again_without_its_models(
    cli: Cli, asked: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    calls = len(scripted_llm.requests())
    done = cli("replay", asked, "--out", tmp_path / "again")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("0 of 1 questions changed from first to again")
    assert _plans(tmp_path / "again") == _plans(asked)
    assert len(scripted_llm.requests()) == calls
    manifest = json.loads((tmp_path / "again" / "manifest.json").read_text())
    assert manifest["variant"] == {"replay_of": "first", "from_hop": None}


def test_another_planner_goes_on_from_a_hop_and_the_earlier_ones_are_replayed(
    cli: Cli, asked: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    calls, other = (
        len(scripted_llm.requests()),
        scripted_llm.spec.replace("#scripted", "#other"),
    )
    scripted_llm.script(
        {"reply": "[SUBQ] In which city was Bell born?"}, {"reply": "[SUFFICIENT]"}
    )
    done = cli(
        "replay",
        asked,
        "--from-hop",
        "2",
        "--planner",
        other,
        "--out",
        tmp_path / "fork",
    )
    assert done.exit_code == 0, done.output
    first, *later = _plans(tmp_path / "fork")
    assert first == _plans(asked)[0]
    assert later[0] == "In which city was Bell born?"
    assert "q1: plan, hop 2" in done.stdout
    assert {request["model"] for request in scripted_llm.requests()[calls:]} == {
        "other"
    }


@pytest.fixture
def broken(cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any) -> Path:
    """A run whose planner's server fails at the second hop."""
    data = tmp_path / "questions.jsonl"
    data.write_text(json.dumps(QUESTION) + "\n")
    scripted_llm.script(
        {"reply": "[SUBQ] Who invented it?"}, {"status": 500, "reply": "out of memory"}
    )
    done = cli(
        "eval", "jsonl", "--data", data, "--corpus", passages_file, "--out", tmp_path / "broken", "--k", "1",
        "--planner", scripted_llm.spec, "--extractor", "offline", "--answerer", "offline", "--retries", "0",
    )  # fmt: skip
    assert done.exit_code == 3, done.output
    assert "1 question ended in an error; --retry-errors asks again" in " ".join(
        done.output.split()
    )
    return tmp_path / "broken"


def test_a_run_whose_planner_failed_is_replayed_as_it_was(
    cli: Cli, broken: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    calls = len(scripted_llm.requests())
    done = cli("replay", broken, "--out", tmp_path / "again")
    assert done.exit_code == 3, done.output  # the question is an error there, too
    assert done.stdout.startswith("0 of 1 questions changed from broken to again")
    row = _row(tmp_path / "again")
    assert (row["stop_reason"], row["error"]["type"]) == (
        "planner_failed",
        "ServerFailed",
    )
    assert len(scripted_llm.requests()) == calls
    equal = cli("replay", broken, "--out", tmp_path / "equal", "--exit-code")
    assert equal.exit_code == 0, equal.output  # nothing differs from the run


def test_a_question_whose_planner_failed_is_asked_again(
    cli: Cli, broken: Path, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": SECOND}, {"reply": "[SUFFICIENT]"})
    done = cli(
        "eval", "jsonl", "--data", tmp_path / "questions.jsonl", "--corpus", passages_file, "--out", broken, "--k", "1",
        "--planner", scripted_llm.spec, "--extractor", "offline", "--answerer", "offline", "--retries", "0",
        "--retry-errors",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert (_row(broken)["error"], _row(broken)["stop_reason"]) == (None, "sufficient")
    replayed = cli("replay", broken, "--out", tmp_path / "again")
    assert replayed.exit_code == 0, replayed.output


def test_a_replay_that_differs_has_an_exit_code_for_scripts(
    cli: Cli, asked: Path, tmp_path: Path
) -> None:
    assert (
        cli("replay", asked, "--out", tmp_path / "same", "--exit-code").exit_code == 0
    )
    row = _row(asked)
    (asked / "results.jsonl").write_text(
        json.dumps({**row, "answer": "Leith", "trace": None}) + "\n"
    )
    assert cli("replay", asked, "--out", tmp_path / "other").exit_code == 0
    assert (
        cli("replay", asked, "--out", tmp_path / "third", "--exit-code").exit_code == 3
    )


def test_a_fork_with_the_same_planner_asks_nothing_anew(
    cli: Cli, asked: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    calls = len(scripted_llm.requests())
    done = cli("replay", asked, "--from-hop", "2", "--out", tmp_path / "fork")
    assert done.stdout.startswith("0 of 1 questions changed"), done.output
    assert len(scripted_llm.requests()) == calls


def test_a_run_whose_replies_are_gone_is_not_replayed(
    cli: Cli, asked: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    shutil.copytree(asked, tmp_path / "without")
    for file in (tmp_path / "without").glob("replies.sqlite*"):
        file.unlink()
    calls = len(scripted_llm.requests())
    done = cli("replay", tmp_path / "without", "--out", tmp_path / "again")
    assert (done.exit_code, "there are no replies at" in done.stderr) == (1, True), (
        done.output
    )
    assert len(scripted_llm.requests()) == calls


def test_what_cannot_be_replayed_is_refused(
    cli: Cli, asked: Path, passages_file: Path, tmp_path: Path
) -> None:
    done = cli("replay", asked, "--planner", "offline", "--out", tmp_path / "x")
    assert (done.exit_code, "--from-hop N" in done.stderr) == (2, True)
    done = cli(
        "replay", asked, "--from-hop", "2", "--llm", "openai:m", "--out", tmp_path / "x"
    )
    assert (
        done.exit_code,
        "does not say which role changes" in " ".join(done.stderr.split()),
    ) == (2, True)
    searched = (
        "eval",
        "jsonl",
        "--data",
        tmp_path / "questions.jsonl",
        "--corpus",
        passages_file,
        "--retrieval-only",
    )
    cli(*searched, "--out", tmp_path / "search")
    done = cli("replay", tmp_path / "search", "--out", tmp_path / "x")
    assert (done.exit_code, "was not made by an agent of" in done.stderr) == (1, True)


def test_a_fork_is_not_asked_again_and_names_the_run_that_can_be(
    cli: Cli, asked: Path, tmp_path: Path
) -> None:
    cli("replay", asked, "--from-hop", "2", "--out", tmp_path / "fork")
    for more in ((), ("--from-hop", "3")):
        done = cli("replay", tmp_path / "fork", *more, "--out", tmp_path / "x")
        told = " ".join(done.stderr.split())
        assert (
            done.exit_code,
            "is a fork of the run 'first'" in told,
            "ask 'first' again" in told,
        ) == (1, True, True)
    cli("replay", asked, "--out", tmp_path / "again")
    done = cli("replay", tmp_path / "again", "--out", tmp_path / "once-more")
    assert done.stdout.startswith("0 of 1 questions changed from again to once-more"), (
        done.output
    )


def test_a_run_knows_how_its_planner_wrote_and_goes_on_with_nothing_else(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Action: Finish[Edinburgh]"})
    (tmp_path / "questions.jsonl").write_text(json.dumps(QUESTION) + "\n")
    run = ("eval", "jsonl", "--data", tmp_path / "questions.jsonl", "--corpus", passages_file, "--out", tmp_path / "r",
           "--planner", scripted_llm.spec, "--extractor", "offline")  # fmt: skip
    how = ("--dialect", "react", "--no-thinking", "--filter", "team=sales")
    done = cli(*run, *how)
    assert done.exit_code == 0, done.output
    settings = Fork(RunFolder(tmp_path / "r")).settings
    assert (settings.dialect, settings.thinking, settings.filter) == (
        "react",
        False,
        {"team": ["sales"]},
    )
    done = cli(*run, "--dialect", "tool-json", "--filter", "team=sales")
    told = " ".join(done.stderr.split())
    assert (
        done.exit_code,
        'settings.dialect: "react" there, "tool-json" here' in told,
    ) == (1, True), done.output
    assert "settings.thinking: false there, absent here" in told
