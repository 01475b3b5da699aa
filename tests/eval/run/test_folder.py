"""A run's folder: which files it has after a crash, and who may write to it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from tests.messages import says

MANIFEST = {
    "name": "one",
    "graph": "ras",
    "limits": {"k": 5},
    "started": "2025-01-01T00:00:00+00:00",
}


def _ids(folder: RunFolder) -> list[str]:
    return [result.id for result in folder.results()]


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    written = Result(
        "q1", "Wer? 谁?", ("Bell",), ("p1",), "bridge", 2, "Bell", scores={"f1": 1.0}, retrieved=("p1", "p2"),
        usage={"calls": 2}, models=("m",), trace={"steps": []},
    )  # fmt: skip
    folder.append(written)
    assert list(folder.results()) == [written]
    assert "Wer? 谁?" in folder.results_path.read_text("utf-8")


def test_a_result_is_on_the_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    synced: list[bytes] = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(folder.results_path.read_bytes())
    )
    folder.append(Result("q1", "?"))
    assert synced == [folder.results_path.read_bytes()]


def test_manifest_and_summary_can_be_read_by_people(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "runs" / "one", MANIFEST)
    assert folder.manifest_path.read_text("utf-8").startswith('{\n  "name": "one",\n')
    folder.write_summary({"em": 0.5})
    assert (tmp_path / "runs" / "one" / "summary.json").read_text(
        "utf-8"
    ) == '{\n  "em": 0.5\n}'
    RunFolder.begin(folder.path, {**MANIFEST, "python": "4"})
    assert folder.manifest_path.read_text("utf-8").startswith('{\n  "name": "one",\n')


def test_what_is_no_run_names_what_would_be_one(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"is not the folder of a run: .*ras-agent eval --out FOLDER"
    ):
        RunFolder(tmp_path).manifest()
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(
        RunError, match=r"manifest\.json: not JSON .*restore it from a copy"
    ):
        RunFolder(tmp_path).manifest()


def test_values_that_json_has_no_form_for_do_not_spoil_the_line(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.append(Result("q1", "lone \ud800", seconds=float("nan")))
    row = json.loads(
        folder.results_path.read_text("utf-8"),
        parse_constant=lambda name: pytest.fail(name),
    )
    assert (row["question"], row["seconds"]) == ("lone ?", None)


def test_a_half_last_line_is_left_out_and_cut_off_before_the_next(
    tmp_path: Path,
) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.append(Result("q1", "?"))
    with folder.results_path.open("ab") as file:
        file.write(b'{"id": "q2", "question": "\xe8\xb0')
    assert _ids(folder) == ["q1"]
    with folder.writing():
        folder.append(Result("q3", "?"))
    assert _ids(folder) == ["q1", "q3"]


def test_what_is_cut_off_is_off_the_disk_before_a_line_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.append(Result("q1", "?"))
    whole = folder.results_path.read_bytes()
    synced: list[bytes] = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(folder.results_path.read_bytes())
    )
    with folder.writing():
        assert synced == []  # there was nothing to cut off
    folder.results_path.write_bytes(whole + b'{"id": "q2"')
    with folder.writing():
        assert synced == [whole]


def test_a_bad_line_in_the_middle_is_told_with_its_number(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.results_path.write_text('{"id": "q1", "question": "?"}\nnot json\n')
    with pytest.raises(
        RunError, match=says("results.jsonl line 2", "not a result", "remove the line")
    ):
        list(folder.results())


def test_another_configuration_is_refused_by_what_differs(tmp_path: Path) -> None:
    RunFolder.begin(tmp_path / "run", MANIFEST)
    other = {
        **MANIFEST,
        "limits": {"k": 3},
        "variant": {"ablation": "no_triples"},
        "started": "later",
    }
    told = (
        r"run was begun with another configuration: limits\.k: 5 there, 3 here; "
        r"variant\.ablation: absent there, \"no_triples\" here\. Resume it .* --out"
    )
    with pytest.raises(RunError, match=told):
        RunFolder.begin(tmp_path / "run", other)


def test_a_run_that_was_begun_before_graphs_were_told_goes_on(tmp_path: Path) -> None:
    RunFolder.begin(tmp_path / "run", MANIFEST)
    RunFolder.begin(tmp_path / "run", {**MANIFEST, "knowledge_graph": "92ed"})
    RunFolder.begin(tmp_path / "later", {**MANIFEST, "knowledge_graph": "92ed"})
    with pytest.raises(RunError, match='knowledge_graph: "92ed" there, "5c1b" here'):
        RunFolder.begin(tmp_path / "later", {**MANIFEST, "knowledge_graph": "5c1b"})


def test_time_place_and_versions_may_differ_between_sittings(tmp_path: Path) -> None:
    RunFolder.begin(tmp_path / "run", MANIFEST)
    again = RunFolder.begin(
        tmp_path / "run",
        {**MANIFEST, "started": "later", "packages": {"numpy": "3"}, "name": "b"},
    )
    assert again.manifest()["name"] == "one"
    RunFolder.begin(
        tmp_path / "run",
        {**MANIFEST, "started": "later still", "packages": {"numpy": "3"}},
    )
    noted = [{"started": "later", "packages": {"numpy": "3"}}]
    assert again.manifest()["resumed"] == noted
    for _ in range(2):
        RunFolder.begin(
            tmp_path / "run",
            {**MANIFEST, "started": "last", "packages": {"numpy": "4"}},
        )
    assert again.manifest()["resumed"] == [
        *noted,
        {"started": "last", "packages": {"numpy": "4"}},
    ]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(RunError, match=r"holds files but no manifest\.json"):
        RunFolder.begin(tmp_path, MANIFEST)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.md"]


def test_a_folder_that_became_something_else_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def after_somebody_else(path: Path) -> Iterator[None]:
        (path.parent / "notes.md").write_text("mine")
        yield

    monkeypatch.setattr("ras_agent.eval.run.folder.sole_writer", after_somebody_else)
    with pytest.raises(RunError, match=r"holds files but no manifest\.json"):
        RunFolder.begin(tmp_path / "run", MANIFEST)


def test_a_crash_while_the_manifest_was_written_does_not_block_the_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "manifest.json.new").write_text('{"na')
    assert RunFolder.begin(tmp_path, MANIFEST).manifest() == MANIFEST


def test_forgotten_questions_are_gone_and_the_others_stay(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    for name in ("q1", "q2", "q3"):
        folder.append(Result(name, "?"))
    folder.forget({"q2"})
    assert _ids(folder) == ["q1", "q3"]


def test_two_processes_cannot_write_at_once(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    code = f"from ras_agent.eval.run.folder import RunFolder\nwith RunFolder({str(folder.path)!r}).writing(): pass"
    command = [sys.executable, "-P", "-c", code]
    with folder.writing():
        refused = subprocess.run(command, capture_output=True, text=True)
    assert says(
        "another process", f"writing to {folder.path}", "wait for it", "another folder"
    ).search(refused.stderr)
    assert subprocess.run(command).returncode == 0


def test_a_new_run_that_could_not_be_set_up_leaves_nothing(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.replies_path.write_bytes(b"")
    folder.undo_begin()
    assert not folder.path.exists()


def test_a_run_that_another_process_took_up_or_began_is_not_taken_back(
    tmp_path: Path,
) -> None:
    began = RunFolder.begin(tmp_path / "run", MANIFEST)
    second = RunFolder.begin(tmp_path / "run", MANIFEST)
    with second.writing():
        began.undo_begin()
    second.undo_begin()
    assert second.manifest() == MANIFEST


def test_a_run_cannot_be_taken_up_while_another_process_writes(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    with (
        folder.writing(),
        pytest.raises(
            RunError, match=says("another process", "writing to", "wait for it")
        ),
    ):
        RunFolder.begin(tmp_path / "run", {**MANIFEST, "packages": {"numpy": "3"}})
    assert folder.manifest() == MANIFEST


def test_a_run_with_results_is_not_taken_back(tmp_path: Path) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    folder.append(Result("q1", "?"))
    folder.undo_begin()
    assert folder.manifest() == MANIFEST
    assert _ids(folder) == ["q1"]


def test_a_result_is_on_the_disk_when_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    synced: list[bytes] = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: synced.append(folder.results_path.read_bytes())
    )
    folder.append(Result("q1", "?"))
    assert synced == [folder.results_path.read_bytes()]
    assert synced[0].endswith(b"\n")
