"""The phases of an offline question: every phase is timed apart, and what it calls counts for the other phase."""

import json
from pathlib import Path

import pytest

from lab import phases
from ras_agent.errors import SettingsError
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex

pytestmark = pytest.mark.slow("benchmarks")


def test_every_phase_of_a_question_is_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = PassageIndex.create(tmp_path / "an.index")
    index.add([Passage("a", "Bell was born in Edinburgh.", "Bell"), Passage("b", "Edinburgh is a city.", "Edinburgh")])
    questions = tmp_path / "questions.jsonl"
    texts = [f"Where was Bell born, {number}?" for number in range(5)]
    questions.write_text("".join(json.dumps({"question": text}) + "\n" for text in texts))
    phases.main(["--index", str(tmp_path / "an.index"), "--questions", str(questions), "--count", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:-1]] == [*phases.PHASES, phases.REST]
    assert lines[-1].startswith("| all, 2 questions of ")
    network = next(line for line in lines if "reading: network" in line)
    assert float(network.split("|")[2]) > 0


def test_a_phase_does_not_count_what_another_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter((0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 31.0))
    monkeypatch.setattr("time.process_time", lambda: next(ticks))
    clock = phases._Clock()
    clock.timed("planning: rules", clock.timed("searching", lambda: None))()
    seconds = clock.lap()
    assert (seconds["planning: rules"], seconds["searching"], seconds[phases.REST]) == (2 + 8, 4, 1 + 16)
    assert clock.lap()["searching"] == 0


def test_too_few_questions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "a?"}\n')
    with pytest.raises(SettingsError, match="more than 3 questions, found 1"):
        phases.main(["--index", str(tmp_path), "--questions", str(tmp_path / "questions.jsonl")])
