"""kill -9 in the middle of a run: the same command finishes it, with an unbroken run's scores and no call twice."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.tools.chat.cache import ReplyCache

pytestmark = pytest.mark.slow("kills")

COMMAND = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
TOWNS = (
    "Hull",
    "York",
    "Ripon",
    "Leeds",
    "Selby",
    "Whitby",
    "Malton",
    "Thirsk",
    "Otley",
    "Goole",
    "Skipton",
    "Filey",
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Twelve questions over twelve passages."""
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    texts = [
        f"{town} has a mill that Ann Rowe built in {1800 + n} beside the river."
        for n, town in enumerate(TOWNS)
    ]
    corpus.write_text(
        "".join(
            json.dumps({"id": f"p{n}", "title": town, "text": text}) + "\n"
            for n, (town, text) in enumerate(zip(TOWNS, texts, strict=True))
        )
    )
    questions.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"q{n}",
                    "question": f"Who built the mill of {town}?",
                    "answers": ["Ann Rowe", town],
                }
            )
            + "\n"
            for n, town in enumerate(TOWNS)
        )
    )
    return corpus, questions


def _command(
    files: tuple[Path, Path], model: Loopback, out: Path, concurrency: int, engine: str
) -> list[str]:
    spread = [] if engine == "here" else ["--engine", engine, "--workers", "2"]
    return [*COMMAND, *_arguments(files, model, out, concurrency, engine), *spread]


def _arguments(
    files: tuple[Path, Path], model: Loopback, out: Path, concurrency: int, engine: str
) -> list[str]:
    """Return the command's arguments but for the engine, whose roles they name."""
    corpus, questions = files
    # workers do not know the requests of others at this moment; a passage that two of them read would be asked for twice
    asked = (
        ("planner", "extractor", "answerer")
        if engine == "here"
        else ("planner", "answerer")
    )
    roles = [word for role in asked for word in (f"--{role}", model.spec(role))]
    reader = [] if engine == "here" else ["--extractor", "offline"]
    paths = ["--data", str(questions), "--corpus", str(corpus), "--out", str(out)]
    return ["eval", "jsonl", *paths, *roles, *reader, "--concurrency", str(concurrency)]


def _rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / "results.jsonl"
    if not path.exists():
        return []
    # the last line may be in the middle of being written
    whole, _, _ = path.read_text("utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    """The part of a result that does not depend on the clock, nor on which replies were at hand."""
    return {
        key: row[key]
        for key in (
            "id",
            "answer",
            "scores",
            "retrieved",
            "stop_reason",
            "hops",
            "error",
        )
    }


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs; none where there is no /proc."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            for child in map(int, children.read_text().split()):
                found += [child, *_descendants(child)]
    return found


def _runs(pid: int) -> bool:
    """Neither gone, nor only waiting to be buried, nor one of Ray's agents, which ask nothing and stay for a minute."""
    process = Path(f"/proc/{pid}")
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"Agent" not in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.timeout(400)
@pytest.mark.parametrize("engine", ["here", "processes", "ray"])
def test_a_killed_run_is_finished_without_asking_anything_twice(
    tmp_path: Path,
    files: tuple[Path, Path],
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    # away from this folder: Ray puts the driver's own on its workers' path, where it would hide the package
    started: Any = {"env": {**os.environ, "NO_PROXY": "127.0.0.1"}, "cwd": tmp_path}
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # the unbroken run takes only this process, whatever engine the broken one has
    with serving() as model:
        whole = CliRunner().invoke(
            build_program(), _arguments(files, model, tmp_path / "whole", 1, engine)
        )
        assert whole.exit_code == 0, whole.output
        needed = model.counts()["answered"]
    assert needed >= 40

    with serving() as model:
        command = _command(files, model, tmp_path / "broken", 4, engine)
        model.gate(needed // 2)  # the other half waits for ever
        killed = subprocess.Popen(command, **started)
        replies = tmp_path / "broken" / "replies.sqlite"
        while not replies.exists() or len(ReplyCache(replies)) < needed // 2:
            assert killed.poll() is None
            time.sleep(0.02)
        helpers = _descendants(killed.pid)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        # Ray takes a moment to notice; until then its workers would go on, and ask the next run's questions
        deadline = time.monotonic() + 60
        while any(map(_runs, helpers)):
            assert time.monotonic() < deadline, "the killed run's helpers go on"
            time.sleep(0.02)
        ended = [row["id"] for row in _rows(tmp_path / "broken")]
        assert 0 < len(ended) < 12

        model.gate(None)
        subprocess.run(command, check=True, **started)
        counts = model.counts()

    rows = _rows(tmp_path / "broken")
    assert [row["id"] for row in rows[: len(ended)]] == ended
    assert sorted(row["id"] for row in rows) == sorted(f"q{n}" for n in range(12))
    assert counts["repeated"] == 0
    assert counts["answered"] == needed
    unbroken = {row["id"]: _untimed(row) for row in _rows(tmp_path / "whole")}
    assert {row["id"]: _untimed(row) for row in rows} == unbroken
    summaries = [
        json.loads((tmp_path / name / "summary.json").read_text())
        for name in ("whole", "broken")
    ]
    assert summaries[0]["scores"] == summaries[1]["scores"]


def test_ctrl_c_leaves_a_run_that_can_be_finished(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    started: Any = {"env": {**os.environ, "NO_PROXY": "127.0.0.1"}, "cwd": tmp_path}
    with serving() as model:
        command = _command(files, model, tmp_path / "run", 2, "here")
        model.gate(30)
        # a shell's background jobs are deaf to Ctrl-C, and hand that on to their children
        heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        interrupted = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, preexec_fn=heed, **started
        )
        while not _rows(tmp_path / "run"):
            assert interrupted.poll() is None
            time.sleep(0.02)
        interrupted.send_signal(signal.SIGINT)
        _, told = interrupted.communicate(timeout=60)
        assert (interrupted.returncode, "ras-agent: interrupted" in told) == (130, True)
        ended = [row["id"] for row in _rows(tmp_path / "run")]
        model.gate(None)
        subprocess.run(command, check=True, **started)
    rows = [row["id"] for row in _rows(tmp_path / "run")]
    assert rows[: len(ended)] == ended
    assert sorted(rows) == sorted(f"q{n}" for n in range(12))
