"""kill -9 in the middle of a run: the same command finishes it, with an unbroken run's scores and no call twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.loopback_model import Loopback, serving
from ras_agent.tools.encode.chat_cache import ReplyCache

COMMAND = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
TOWNS = ("Hull", "York", "Ripon", "Leeds", "Selby", "Whitby", "Malton", "Thirsk", "Otley", "Goole", "Skipton", "Filey")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Twelve questions over twelve passages."""
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    texts = [f"{town} has a mill that Ann Rowe built in {1800 + n} beside the river." for n, town in enumerate(TOWNS)]
    corpus.write_text(
        "".join(
            json.dumps({"id": f"p{n}", "title": town, "text": text}) + "\n"
            for n, (town, text) in enumerate(zip(TOWNS, texts, strict=True))
        )
    )
    questions.write_text(
        "".join(
            json.dumps({"id": f"q{n}", "question": f"Who built the mill of {town}?", "answers": ["Ann Rowe", town]})
            + "\n"
            for n, town in enumerate(TOWNS)
        )
    )
    return corpus, questions


def _command(files: tuple[Path, Path], model: Loopback, out: Path, concurrency: int) -> list[str]:
    corpus, questions = files
    roles = [word for role in ("planner", "extractor", "answerer") for word in (f"--{role}", model.spec(role))]
    paths = ["--data", str(questions), "--corpus", str(corpus), "--out", str(out)]
    return [*COMMAND, "eval", "jsonl", *paths, *roles, "--concurrency", str(concurrency)]


def _rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / "results.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    """What of a result does not depend on the clock, nor on which replies were at hand."""
    return {key: row[key] for key in ("id", "answer", "scores", "retrieved", "stop_reason", "hops", "error")}


def test_a_killed_run_is_finished_without_asking_anything_twice(tmp_path: Path, files: tuple[Path, Path]) -> None:
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    with serving() as model:
        subprocess.run(_command(files, model, tmp_path / "whole", 1), check=True, env=environment)
        needed = model.counts()["answered"]
    assert needed > 40

    with serving() as model:
        command = _command(files, model, tmp_path / "broken", 4)
        model.gate(needed // 2)  # the other half waits for ever
        killed = subprocess.Popen(command, env=environment)
        replies = tmp_path / "broken" / "replies.sqlite"
        while not replies.exists() or len(ReplyCache(replies)) < needed // 2:
            assert killed.poll() is None
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        ended = [row["id"] for row in _rows(tmp_path / "broken")]
        assert 0 < len(ended) < 12

        model.gate(None)
        subprocess.run(command, check=True, env=environment)
        counts = model.counts()

    rows = _rows(tmp_path / "broken")
    assert [row["id"] for row in rows[: len(ended)]] == ended
    assert sorted(row["id"] for row in rows) == sorted(f"q{n}" for n in range(12))
    assert counts["repeated"] == 0
    assert counts["answered"] == needed
    whole = {row["id"]: _untimed(row) for row in _rows(tmp_path / "whole")}
    assert {row["id"]: _untimed(row) for row in rows} == whole
    summaries = [json.loads((tmp_path / name / "summary.json").read_text()) for name in ("whole", "broken")]
    assert summaries[0]["scores"] == summaries[1]["scores"]
