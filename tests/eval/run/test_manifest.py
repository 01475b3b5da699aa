"""The changes that a manifest notices: other questions, and a checkout with changes."""

import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ras_agent
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import UnknownName
from ras_agent.eval.benchmarks import benchmark as find_benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.begin import begin_run, with_benchmark_defaults
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.manifest import (
    apart_from_role,
    differences,
    git_commit,
    manifest_of,
)
from ras_agent.eval.run.task import load_task
from ras_agent.running.budget import Limits


def _manifest(*questions: Question, **more: Any) -> dict[str, Any]:
    described: Any = {
        **{
            "name": "one",
            "benchmark": "jsonl",
            "data": "q.jsonl",
            "data_sha256": None,
            "corpus_sha256": None,
        },
        **{"graph": "ras", "roles": {}, "limits": asdict(Limits()), "metrics": ["em"]},
    }
    return manifest_of(questions, {**described, **more})


def test_a_manifest_says_what_it_is_and_what_was_not_chosen() -> None:
    manifest = _manifest()
    assert (manifest["schema"], manifest["version"]) == ("ras-agent/run", 1)
    assert (manifest["seed"], manifest["retrieval_only"]) == (0, False)
    assert "knowledge_graph" not in manifest
    assert _manifest(knowledge_graph="5c1b")["knowledge_graph"] == "5c1b"


def test_versions_are_those_of_the_packages_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "ras_agent.eval.run.manifest._PACKAGES", ("no-such-package", "numpy")
    )
    assert _manifest()["packages"] == {
        "ras-agent": ras_agent.__version__,
        "numpy": np.__version__,
    }


def test_a_long_value_is_shown_in_80_characters() -> None:
    assert differences({"data_sha256": "é" * 78}, {"data_sha256": "é" * 79}) == [
        f'data_sha256: "{"é" * 78}" there, "{"é" * 78}… here'
    ]


def test_what_two_runs_differ_in_besides_a_role_is_listed() -> None:
    here = _manifest(roles={"planner": "a", "answerer": "b"}, settings={"style": None})
    other = _manifest(
        roles={"planner": "c", "answerer": "d"},
        settings={"style": "long", "dialect": "ras"},
    )
    other["prompts"] = {**here["prompts"], "plan": "x", "answer": "y"}
    listed = [
        line.partition(":")[0] for line in apart_from_role(here, other, "planner")
    ]
    assert listed == ["prompts.answer", "roles.answerer", "settings.style"]


@pytest.mark.parametrize(
    "changed",
    [
        Question("q1", "Who?", ("Ann",)),
        Question("q1", "Whom?", ("Bell",)),
        Question("q2", "Who?", ("Bell",)),
    ],
)
def test_a_changed_question_answer_or_id_is_another_run(changed: Question) -> None:
    (difference,) = differences(
        _manifest(Question("q1", "Who?", ("Bell",))), _manifest(changed)
    )
    assert difference.startswith("questions_sha256: ")


def test_the_same_questions_are_the_same_run() -> None:
    question = Question("q1", "Who?", ("Bell",))
    assert differences(_manifest(question), _manifest(question)) == []


def test_a_checkout_is_named_by_its_commit_and_by_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        identity = (
            "-c",
            "user.name=Ann",
            "-c",
            "user.email=ann@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout.strip()

    package = tmp_path / "__init__.py"
    package.write_text("")
    monkeypatch.setattr(ras_agent, "__file__", str(package))
    git("init")
    assert git_commit() is None  # the package is not part of this checkout
    git("add", "__init__.py")
    git("commit", "-m", "one")
    assert git_commit() == git("rev-parse", "HEAD")
    package.write_text("changed = True\n")
    assert git_commit() == git("rev-parse", "HEAD") + "+changes"


@pytest.mark.parametrize(
    ("benchmark", "settings", "style", "tokens"),
    [
        ("hotpotqa", Settings(), "short", 100),
        ("arc-challenge", Settings(), "choice", 50),
        ("asqa", Settings(), "long", 300),
        ("asqa", Settings(answer_tokens=1000, style="short"), "short", 1000),
        ("hotpotqa", Settings(loop="ircot"), "reader", 100),
    ],
)
def test_the_benchmark_says_how_long_an_answer_may_get_where_no_setting_does(
    benchmark: str, settings: Settings, style: str, tokens: int
) -> None:
    chosen = with_benchmark_defaults(settings, find_benchmark(benchmark))
    assert (chosen.style, chosen.answer_tokens) == (style, tokens)


def test_a_run_may_use_the_contexts_otherwise_than_the_benchmark(
    tmp_path: Path,
) -> None:
    text = "Bell was born in Edinburgh."
    rows = [{"id": "q", "question": "Where?", "answers": ["x"], "contexts": [text]}]
    searched = load_task("jsonl", rows, Settings())
    assert searched.benchmark.inputs(searched.questions[0]) == {"question": "Where?"}
    task = load_task("jsonl", rows, Settings(), context_use="seed")
    [passage] = task.benchmark.inputs(task.questions[0])["seed_passages"]
    assert passage["text"] == text
    begin_run(task, EvalAgent("seeded", Settings()), tmp_path / "run").finish()
    manifest = RunFolder(tmp_path / "run").manifest()
    assert manifest["settings"]["context_use"] == "seed"
    with pytest.raises(UnknownName, match="'sead'; known: corpus, seed, static"):
        load_task("jsonl", rows, Settings(), context_use="sead")
