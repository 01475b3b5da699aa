"""The circle of training: evaluate, export the good runs, train, evaluate again, and compare question by question.

The student is a loopback server that has learnt the exported rows by heart; tests/contracts trains a model on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.significance import compare
from tests.conftest import ScriptedLLM

Cli = Callable[..., Any]
QUESTIONS = {
    "q1": (
        "Where was the inventor of the telephone born?",
        "Edinburgh",
        "Where was Alexander Graham Bell born?",
    ),
    "q2": (
        "Which river flows through the city where Bell was born?",
        "Water of Leith",
        "river through Edinburgh",
    ),
}


@pytest.fixture
def evaluate(
    cli: Cli, loopback_port: int, passages_file: Path, tmp_path: Path
) -> Callable[..., Path]:
    """`evaluate("before", entry, ...)`: a run over the questions, whose planner replies as the script says."""
    rows = [
        {"id": id, "question": question, "answers": [gold]}
        for id, (question, gold, _) in QUESTIONS.items()
    ]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )

    def evaluate(name: str, *entries: dict[str, Any]) -> Path:
        planner = ScriptedLLM(loopback_port)
        planner.script(*entries)
        agent = (
            "--planner",
            planner.spec,
            "--extractor",
            "offline",
            "--k",
            "1",
            "--concurrency",
            "1",
        )
        data = ("--data", tmp_path / "questions.jsonl", "--corpus", passages_file)
        done = cli("eval", "jsonl", *data, *agent, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        return tmp_path / name

    return evaluate


def _scores(run: Path) -> dict[str, float]:
    return {result.id: result.scores["f1"] for result in RunFolder(run).results()}


def test_a_planner_that_learnt_the_good_replies_is_better_question_by_question(
    cli: Cli, evaluate: Callable[..., Path], tmp_path: Path
) -> None:
    before = evaluate("before", *[{"reply": "[SUBQ] x"}, {"reply": "[SUFFICIENT]"}] * 2)
    assert _scores(before)["q1"] == 0.0
    moves = [
        ("[SUBQ] x", f"[SUBQ] {better}", "[SUFFICIENT]")
        for _, _, better in QUESTIONS.values()
    ]
    teacher = evaluate(
        "teacher", *({"reply": reply} for replies in moves for reply in replies)
    )
    assert _scores(teacher)["q1"] == 1.0

    wish = ("--role", "planner", "--min", "f1=1", "--cited", "--to", "trl")
    done = cli("export", teacher, *wish, "--out", tmp_path / "sft.jsonl")
    assert done.exit_code == 0, done.output
    rows = [
        json.loads(line) for line in (tmp_path / "sft.jsonl").read_text().splitlines()
    ]
    assert {row["scores"]["f1"] for row in rows} == {1.0}

    learnt = [
        {"when": row["prompt"][-1]["content"], "reply": row["completion"][0]["content"]}
        for row in rows
    ]
    after = evaluate("after", *learnt, {"reply": "[SUFFICIENT]", "repeat": True})
    assert _scores(after) == _scores(teacher)

    difference = compare(_scores(after), _scores(before)).difference
    assert difference.mean == 0.5
    done = cli(
        "report",
        before,
        after,
        "--markdown",
        tmp_path / "report.md",
        "--out",
        tmp_path / "report.html",
    )
    assert done.exit_code == 0, done.output
    assert "| after" in (tmp_path / "report.md").read_text("utf-8")
