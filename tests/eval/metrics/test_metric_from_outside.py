"""A metric that another package defines in one file is run by its name in an evaluation and a study, and reported."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.config import registry
from ras_agent.eval.metrics import metric, metric_names
from tests.messages import says

SOURCE = """
from ras_agent.eval.metrics import Outcome, metric
from ras_agent.eval.question import Question


@metric("brief", decides=5)
def brief(question: Question, outcome: Outcome) -> float | None:
    return float(len(outcome.answer.split()) <= 2) if question.answers else None
"""
PASSAGES = [
    {"id": "bell", "title": "Bell", "text": "Bell was born in Edinburgh."},
    {
        "id": "leith",
        "title": "Water of Leith",
        "text": "The Water of Leith flows through Edinburgh.",
    },
]
QUESTIONS = [
    {"id": "born", "question": "Where was Bell born?", "answers": ["Edinburgh"]},
    {
        "id": "river",
        "question": "Which river flows through Edinburgh?",
        "answers": ["Water of Leith"],
    },
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Install the metric's package as pip would, and write questions and passages."""
    site = tmp_path / "site"
    info = site / "brief_metric-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "brief_metric.py").write_text(SOURCE)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: brief-metric\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[ras_agent.metric]\nbrief = brief_metric:brief\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "brief_metric", raising=False)
    # the built-in ones are registered now, and stay when the table is put back
    assert "brief" in metric_names()
    monkeypatch.setitem(registry.PLUGINS, "metric", dict(registry.PLUGINS["metric"]))
    paths = tmp_path / "questions.jsonl", tmp_path / "passages.jsonl"
    for path, rows in zip(paths, (QUESTIONS, PASSAGES), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


def _run(*arguments: object) -> str:
    done = CliRunner().invoke(
        build_program(), [str(argument) for argument in arguments]
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def _scores(path: Path) -> dict[str, Any]:
    rows = map(json.loads, path.read_text().splitlines())
    return {row["id"]: (row["answer"], row["scores"]) for row in rows}


def test_a_metric_of_another_package_is_named_in_eval_and_reported(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    questions, passages = files
    run = tmp_path / "run"
    _run(
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        passages,
        "--out",
        run,
        "--metric",
        "brief",
        "--metric",
        "em",
    )
    assert _scores(run / "results.jsonl") == {
        "born": ("Edinburgh", {"brief": 1.0, "em": 1.0}),
        "river": ("Water of Leith", {"brief": 0.0, "em": 1.0}),
    }
    assert (
        json.loads((run / "summary.json").read_text())["scores"]["brief"]["mean"] == 0.5
    )
    page = tmp_path / "report.html"
    table = _run("report", run, "--out", page, "--markdown", "-")
    assert "| run | n | brief | em | errors |" in table
    # `decides` puts it before em
    assert "Right: brief of at least 50 %" in page.read_text()


def test_a_metric_of_another_package_is_named_in_a_study(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    questions, passages = files
    options = (
        "--data",
        questions,
        "--corpus",
        passages,
        "--metric",
        "brief",
        "--max-hops",
        1,
        "--k",
        1,
        "--k",
        2,
    )
    table = _run("study", "sweep", "jsonl", *options, "--out", tmp_path / "study")
    assert "## brief, %" in table
    assert "| 1 | 50.0 (9.5 to 90.5) | 50.0 (9.5 to 90.5) |" in table


def test_a_metric_of_another_package_cannot_take_the_name_of_a_built_in_one() -> None:
    with pytest.raises(
        ValueError, match=says("metric 'em'", "built in", "another name")
    ):
        metric("em")(lambda question, outcome: 1.0)
