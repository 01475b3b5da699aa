"""`ras-agent calibrate` reads a run with traces, prints the risks, and writes the file that answers are sure by."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.records import Citation, Passage
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from ras_agent.running.confidence import Calibration
from ras_agent.running.trace import Trace

Cli = Callable[..., Any]
TRUE = Passage("a", "The head office of Korl Works is in Varn.", "Korl Works")


def written_run(path: Path, count: int = 90, **settings: object) -> Path:
    """A run in which every third answer stands nowhere, and is wrong."""
    folder = RunFolder.begin(
        path,
        {
            "name": "mine",
            "graph": "ras",
            "roles": {"answerer": "offline", "retriever": "bm25"},
            "settings": settings,
        },
    )
    citation = Citation(1, "a", "Korl Works", 0, 41, TRUE.text, supported=True)
    question = "Where is the head office of Korl Works?"
    for number in range(count):
        is_right = number % 3 > 0
        answer = "Varn" if is_right else "Pellis"
        trace = Trace(
            question,
            answer,
            citations=(citation,) if is_right else (),
            stop_reason="sufficient" if is_right else "max_hops",
            passages={"a": TRUE},
        )
        result = Result(
            f"q{number}",
            question,
            ("Varn",),
            answer=answer,
            scores={"f1": float(is_right)},
            trace=trace.to_dict(),
        )
        folder.append(result)
    return path


def test_a_run_becomes_a_calibration(cli: Cli, tmp_path: Path) -> None:
    run = written_run(tmp_path / "mine", least_confidence=0.0)
    ended = cli("calibrate", str(run))
    assert ended.exit_code == 0, ended.output
    assert "for questions like those of mine, asked in the same way" in ended.stdout
    assert "with 90 % certainty at most 10 % of the answers said" in ended.stdout
    calibration = Calibration.load(run / "calibration.json")
    assert (calibration.n, calibration.count_right) == (90, 60)
    assert calibration.asked_by == {
        "loop": "ras",
        "answerer": "offline",
        "retriever": "bm25",
    }
    assert {"stated", "supported", "sufficient"} <= calibration.weights.keys()
    said = [row.said for row in calibration.table if row.threshold == 0.5]
    assert said == [60]


def test_json_goes_to_the_screen_and_the_file_where_it_is_wanted(
    cli: Cli, tmp_path: Path
) -> None:
    run = written_run(tmp_path / "mine", least_confidence=0.0)
    out = tmp_path / "sure.json"
    ended = cli("calibrate", str(run), "--out", str(out), "--json", "--risk", "0.2")
    assert json.loads(ended.stdout) == json.loads(out.read_text())
    assert json.loads(ended.stdout)["risk"] == 0.2


@pytest.mark.parametrize(
    ("count", "arguments", "message"),
    [
        (9, (), "has 9 answers, but a risk of 0.1 needs at least 46"),
        (90, ("--right", "em>=1"), "has no score in 'em'; its metrics: f1"),
        (90, ("--right", "good"), "--right: expected a metric and its lowest score"),
    ],
)
def test_what_cannot_be_fitted_is_told(
    cli: Cli, tmp_path: Path, count: int, arguments: tuple[str, ...], message: str
) -> None:
    run = written_run(tmp_path / "mine", count)
    ended = cli("calibrate", str(run), *arguments)
    assert (ended.exit_code, message in ended.stderr) == (1, True), ended.stderr
    assert not (run / "calibration.json").exists()


def test_a_run_that_left_answers_unsaid_has_to_be_asked_again(
    cli: Cli, tmp_path: Path
) -> None:
    run = written_run(tmp_path / "mine")
    unsaid = Result("u", "Who?", abstained=True, confidence=0.6, scores={"f1": 0.0})
    RunFolder(run).append(unsaid)
    ended = cli("calibrate", str(run))
    assert "run it again with --least-confidence 0" in ended.stderr


def test_a_run_without_traces_is_refused(cli: Cli, tmp_path: Path) -> None:
    run = written_run(tmp_path / "mine")
    RunFolder(run).append(Result("t", "Who?", answer="Orr", scores={"f1": 1.0}))
    ended = cli("calibrate", str(run))
    assert "has no traces" in ended.stderr


def test_a_run_that_had_a_calibration_is_refused(cli: Cli, tmp_path: Path) -> None:
    run = written_run(tmp_path / "mine", calibration="old.json")
    ended = cli("calibrate", str(run))
    assert "give a run without --calibration" in ended.stderr
