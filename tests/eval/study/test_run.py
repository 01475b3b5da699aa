"""A study's folder: which runs it lists and refuses."""

import json
from pathlib import Path

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.eval.run.folder import sole_writer
from ras_agent.eval.study.design import Design, Shown
from ras_agent.eval.study.run import LeftOut, StudyFolder, folder_names, run_study


def test_study_json_lists_the_runs_with_what_they_change(tmp_path: Path) -> None:
    folder = StudyFolder.begin(
        tmp_path / "s", "ablations", {"full loop": {"ablation": "none"}, "no planning": {"ablation": "no_planning"}},
        [LeftOut("no graph encoding", "there is none")], headline="f1",
    )  # fmt: skip
    told = json.loads((tmp_path / "s" / "study.json").read_text())
    assert (told["schema"], told["version"], told["study"], told["headline"]) == (
        "ras-agent/study",
        1,
        "ablations",
        "f1",
    )
    assert told["runs"] == [
        {
            "name": "full loop",
            "folder": "runs/full-loop",
            "variant": {"ablation": "none"},
        },
        {
            "name": "no planning",
            "folder": "runs/no-planning",
            "variant": {"ablation": "no_planning"},
        },
    ]
    assert told["left_out"] == [{"name": "no graph encoding", "why": "there is none"}]
    assert folder.runs()["no planning"].path == tmp_path / "s" / "runs" / "no-planning"


def test_a_study_begun_is_gone_on_with_and_may_get_more_runs(tmp_path: Path) -> None:
    began = StudyFolder.begin(tmp_path / "s", "roles", {"a": {}}).study()["started"]
    again = StudyFolder.begin(tmp_path / "s", "roles", {"a": {}, "b": {}}).study()
    assert ([run["name"] for run in again["runs"]], again["started"]) == (
        ["a", "b"],
        began,
    )


def test_a_folder_of_another_study_or_of_something_else_is_refused(
    tmp_path: Path,
) -> None:
    StudyFolder.begin(tmp_path / "s", "roles", {})
    with pytest.raises(RunError, match="holds the study 'roles', not 'sweep'"):
        StudyFolder.begin(tmp_path / "s", "sweep", {})
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(RunError, match=r"no study\.json"):
        StudyFolder.begin(tmp_path / "notes", "sweep", {})


def test_a_study_is_refused_while_another_process_runs_it(tmp_path: Path) -> None:
    folder = StudyFolder.begin(tmp_path / "s", "roles", {"a": {}})
    before = folder.study_path.read_bytes()
    with (
        sole_writer(folder.lock_path),
        pytest.raises(RunError, match="another process is writing to"),
    ):
        run_study(
            Design("roles", (), headline="f1", show=lambda _: Shown("", {})),
            tmp_path / "s",
        )
    assert folder.study_path.read_bytes() == before


def test_a_damaged_study_json_is_told(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(RunError, match="not JSON"):
        StudyFolder(tmp_path).study()


def test_folder_names_are_plain_and_never_meet() -> None:
    names = ["openai:gpt-4o", "openai/gpt-4o", "OpenAI gpt-4o", "../..", "10 % kept"]
    assert list(folder_names(names).values()) == [
        "openai-gpt-4o",
        "openai-gpt-4o-2",
        "OpenAI-gpt-4o-3",
        "run",
        "10-kept",
    ]
