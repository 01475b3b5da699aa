"""`ras-agent report` over a real run of the bundled sample."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.messages import says

Cli = Callable[..., Any]


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Path:
    """The first four questions of the bundled sample, answered offline."""
    data = files("ras_agent.data")
    done = cli(
        "eval", "jsonl", "--data", data / "sample_questions.jsonl", "--corpus", data / "sample_passages.jsonl",
        "--limit", 4, "--max-hops", 2, "--name", "sample", "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return tmp_path / "run"


def _embedded(page: str, id: str) -> Any:
    found = re.search(
        rf'<script type="application/json" id="{id}">(.*?)</script>', page, re.DOTALL
    )
    assert found
    return json.loads(found[1])


def test_without_a_target_the_tables_are_printed(cli: Cli, run: Path) -> None:
    done = cli("report", run)
    assert done.exit_code == 0, done.output
    results = [
        json.loads(line)
        for line in (run / "results.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    recall = fmean(result["scores"]["recall@5"] for result in results)
    header, _, row = done.stdout.split("\n")[:3]
    place = header.split(" | ").index("recall@5")
    assert row.split(" | ")[place].startswith(f"{100 * recall:.1f} (")


def test_the_page_holds_the_figures_and_each_questions_result(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    done = cli("report", run, "--out", "report.html", "--markdown", "report.md")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text("utf-8")
    results = {
        result["id"]: result
        for result in map(
            json.loads,
            filter(None, (run / "results.jsonl").read_text("utf-8").split("\n")),
        )
    }
    data = _embedded(page, "data")
    assert {entry["id"]: entry["by"][0]["scores"] for entry in data["questions"]} == {
        id: result["scores"] for id, result in results.items()
    }
    assert {entry["id"]: entry["by"][0]["answer"] for entry in data["questions"]} == {
        id: result["answer"] for id, result in results.items()
    }
    assert page.count('<script type="text/plain" id="trace-0-') == 4
    assert (
        (tmp_path / "report.md")
        .read_text("utf-8")
        .startswith("| run | n | em_text | f1_text | em | f1 |")
    )


def test_traces_can_be_left_out(cli: Cli, run: Path, tmp_path: Path) -> None:
    cli("report", run, "--out", "whole.html")
    done = cli("report", run, "--out", "report.html", "--no-traces")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert 'id="trace-' not in page
    assert _embedded(page, "data")["questions"][0]["by"][0]["trace"] is None
    assert len(page) < (tmp_path / "whole.html").stat().st_size


def test_two_runs_are_compared(cli: Cli, run: Path) -> None:
    done = cli("report", run, run, "--markdown", "-")
    assert (
        "| sample (2) − sample | em | 4 | +0.0 (-39.2 to +39.2) | 1.0000 |"
        in done.stdout
    )


def test_prices_that_cannot_be_read_are_an_error_in_one_line(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "prices.json").write_text('{"m": 3}')
    done = cli("report", run, "--prices", "prices.json")
    assert done.exit_code == 1
    assert says("prices.json: m", "expected input, output", "cached").search(
        done.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing-here",), "is not the folder of a run"),
        (
            ("run", "--metric", "bleu"),
            "unknown metric 'bleu'; known: all_recall, all_recall@5, em, em_text, f1",
        ),
        (("run", "--out", "no/where.html"), "the folder no does not exist"),
    ],
)
def test_a_report_that_cannot_be_made_says_why(
    cli: Cli, run: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = cli("report", *arguments)
    assert done.exit_code == 1
    assert message in done.stderr


def test_a_diff_of_two_runs_says_which_questions_changed_and_where(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    lines = [
        json.loads(line)
        for line in (run / "results.jsonl").read_text("utf-8").splitlines()
    ]
    lines[0]["answer"] = "something else"
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.json").write_text((run / "manifest.json").read_text("utf-8"))
    (other / "results.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    same = cli("diff", run, run, "--exit-code")
    assert (same.exit_code, same.stdout.partition(" questions")[0]) == (
        0,
        f"0 of {len(lines)}",
    )
    done = cli("diff", run, other)
    assert done.exit_code == 0
    assert f"1 of {len(lines)} questions changed" in done.stdout
    assert "something else" in done.stdout
    assert cli("diff", run, other, "--exit-code").exit_code == 3
    (change,) = json.loads(cli("diff", run, other, "--json").stdout)["changed"]
    assert (change["id"], change["step"], change["here"]) == (
        lines[0]["id"],
        "answer",
        "something else",
    )
