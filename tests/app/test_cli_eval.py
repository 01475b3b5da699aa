"""`ras-agent eval` with a real index, offline roles, and models behind real HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
QUESTIONS = [
    {
        "id": "q1",
        "question": "Where was the inventor of the telephone born?",
        "answers": ["Edinburgh"],
        "supporting_ids": ["tel", "bell"],
        "type": "bridge",
    },
    {
        "id": "q2",
        "question": "Which river flows through Edinburgh?",
        "answers": ["Water of Leith"],
        "supporting_ids": ["leith"],
    },
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return path


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (folder / "results.jsonl").read_text("utf-8").splitlines()
    ]


def test_a_run_without_a_terminal_says_how_far_it_is(
    cli: Cli,
    questions: Path,
    passages_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ras_agent.app.cli.evaluate._SECONDS_BETWEEN_LINES", 0.0)
    data = ("--data", questions, "--corpus", passages_file)
    done = cli("eval", "jsonl", *data, "--out", tmp_path / "run")
    assert "1 of 2 done · em_text " in done.stderr
    assert "2 of 2 done · em_text 100.0 · 0 tokens" in done.stderr


def test_a_run_is_a_folder_with_manifest_results_and_summary(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path
) -> None:
    done = cli(
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        passages_file,
        "--out",
        tmp_path / "run",
    )
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["schema"], manifest["version"], manifest["questions"]) == (
        "ras-agent/run",
        1,
        2,
    )
    assert manifest["roles"] == {
        "planner": "offline",
        "answerer": "offline",
        "extractor": "offline",
        "retriever": "bm25",
    }
    rows = {row["id"]: row for row in _rows(tmp_path / "run")}
    assert rows["q2"]["scores"]["em"] == 1.0
    assert rows["q2"]["trace"]["schema"] == "ras-agent/trace"
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["scores"]["em"]["n"] == 2
    assert "2 questions" in done.stdout


def test_questions_whose_gold_passages_are_not_all_in_the_index_are_counted(
    cli: Cli, questions: Path, bell_index: Path, tmp_path: Path
) -> None:
    lacking = {**QUESTIONS[1], "id": "q3", "supporting_ids": ["leith", "forth"]}
    by_title = {
        "id": "q4",
        "question": "Who?",
        "answers": ["Bell"],
        "supporting_titles": ["No such title"],
    }
    questions.write_text(
        questions.read_text()
        + "".join(json.dumps(one) + "\n" for one in (lacking, by_title))
    )
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--index",
        bell_index,
        "--retrieval-only",
    ]
    done = cli(*run, "--out", tmp_path / "run")
    assert (
        "of 4 questions, 2 have a gold passage that is not in the index" in done.stdout
    )
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["without_evidence"]
        == 2
    )
    assert (
        "not in the index"
        not in cli(*run, "--limit", "2", "--out", tmp_path / "two").stdout
    )


def test_the_same_command_finishes_a_run_and_another_one_is_refused(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path
) -> None:
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        passages_file,
        "--out",
        tmp_path / "run",
    ]
    cli(*run)
    lines = (
        (tmp_path / "run" / "results.jsonl")
        .read_text("utf-8")
        .splitlines(keepends=True)
    )
    (tmp_path / "run" / "results.jsonl").write_text(lines[0] + lines[1][:40], "utf-8")
    again = cli(*run)
    assert "1 of 2 are done" in again.stdout
    assert sorted(row["id"] for row in _rows(tmp_path / "run")) == ["q1", "q2"]
    other = cli(*run, "--k", "3")
    assert (other.exit_code, "limits.k: 5 there, 3 here" in other.stderr) == (1, True)
    other = cli(*run, "--least-confidence", "0")
    assert (other.exit_code, "least_confidence" in other.stderr) == (1, True)


def test_a_run_that_could_not_be_set_up_leaves_its_folder_free(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path
) -> None:
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        passages_file,
        "--out",
        tmp_path / "run",
    ]
    refused = cli(*run, "--retriever", "nonsense")
    assert (refused.exit_code, "unknown retriever 'nonsense'" in refused.stderr) == (
        1,
        True,
    )
    assert not (tmp_path / "run").exists()
    assert cli(*run).exit_code == 0
    assert cli(*run, "--retriever", "nonsense").exit_code == 1
    assert len(_rows(tmp_path / "run")) == 2


def test_a_run_over_another_knowledge_graph_is_refused(
    cli: Cli, questions: Path, passages_file: Path, bell_index: Path, tmp_path: Path
) -> None:
    cli("kg", "build", bell_index)
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--index",
        bell_index,
        "--retrieval-only",
        "--out",
    ]
    of_texts, of_graph = (
        [*run, tmp_path / name, "--retriever", name] for name in ("bm25", "ppr")
    )
    assert [cli(*command).exit_code for command in (of_texts, of_graph, of_graph)] == [
        0,
        0,
        0,
    ]
    ready = {
        **json.loads(passages_file.read_text().splitlines()[0]),
        "triples": [["Bell", "lived in", "Baddeck"]],
    }
    (tmp_path / "ready.jsonl").write_text(json.dumps(ready) + "\n")
    assert (
        cli("kg", "build", bell_index, "--openie", tmp_path / "ready.jsonl").exit_code
        == 0
    )
    other = cli(*of_graph)
    assert (other.exit_code, "knowledge_graph: " in other.stderr) == (1, True)
    assert cli(*of_texts).exit_code == 0


def test_retrieval_alone_needs_no_answerer(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path
) -> None:
    done = cli(
        "eval", "jsonl", "--data", questions, "--corpus", passages_file, "--out", tmp_path / "run", "--retrieval-only",
        "--answerer", "unknown:model",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["graph"], manifest["roles"]) == ("none", {"retriever": "bm25"})
    assert {row["stop_reason"] for row in _rows(tmp_path / "run")} == {"retrieval_only"}
    assert "em" not in _rows(tmp_path / "run")[0]["scores"]


def test_a_set_is_begun_with_its_own_passages_where_that_is_asked_for(
    cli: Cli, tmp_path: Path
) -> None:
    row = {**QUESTIONS[1], "contexts": ["Edinburgh lies on the Water of Leith."]}
    data = tmp_path / "questions.jsonl"
    data.write_text(json.dumps(row) + "\n")
    run = ("eval", "jsonl", "--data", data, "--context-use", "seed")
    done = cli(*run, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["settings"]["context_use"] == "seed"


def test_a_question_that_fails_is_recorded_and_asked_again_on_request(
    cli: Cli,
    questions: Path,
    passages_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Moody:
        broken = True

        def retrieve(self, query: str, k: int = 5) -> list[Any]:
            if self.broken and "Edinburgh" in query:
                raise TypeError("a mistake in the wiring")
            return []

    monkeypatch.setattr("ras_agent.tools.retrieve.bm25.bm25", lambda index: Moody())
    run = [
        *(
            "eval",
            "jsonl",
            "--data",
            questions,
            "--corpus",
            passages_file,
            "--out",
            tmp_path / "run",
        ),
        *("--loop", "single-shot"),
    ]
    failed = cli(*run)
    assert (failed.exit_code, "1 question ended in an error" in failed.stdout) == (
        3,
        True,
    )
    errors = {row["id"]: row["error"] for row in _rows(tmp_path / "run")}
    assert errors == {
        "q1": None,
        "q2": {"type": "TypeError", "message": "a mistake in the wiring"},
    }
    assert cli(*run).exit_code == 3
    monkeypatch.setattr(Moody, "broken", False)
    assert cli(*run, "--retry-errors").exit_code == 0
    assert {row["id"]: row["error"] for row in _rows(tmp_path / "run")} == {
        "q1": None,
        "q2": None,
    }


@pytest.mark.parametrize(("name", "right"), [("yes", 0.0), ("top-title", 0.5)])
def test_a_baseline_answers_without_reading(
    cli: Cli,
    questions: Path,
    passages_file: Path,
    tmp_path: Path,
    name: str,
    right: float,
) -> None:
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--corpus",
        passages_file,
        "--out",
        tmp_path / "run",
    ]
    done = cli(*run, "--baseline", name)
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["graph"], manifest["roles"]["answerer"]) == (
        "none",
        f"always {name}",
    )
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["scores"]["em"][
            "mean"
        ]
        == right
    )
    assert cli(*run, "--baseline", "maybe").exit_code == 1


def test_a_price_table_gives_the_calls_a_cost(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"scripted": {"input": 1000000, "output": 0}}')
    scripted_llm.script({"reply": "Answer: Edinburgh [1]", "repeat": True})
    done = cli(
        "eval", "jsonl", "--data", questions, "--corpus", passages_file, "--out", tmp_path / "run", "--prices", prices,
        "--loop", "single-shot", "--extractor", "offline", "--answerer", scripted_llm.spec,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["tokens"]["calls"] == 2
    assert summary["cost"] == {
        "total": float(summary["tokens"]["input_tokens"]),
        "unknown": [],
    }


def test_a_model_that_refuses_ends_the_run_at_its_first_call_with_a_remedy(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": 401, "reply": "no such key", "repeat": True})
    done = cli(
        "eval", "jsonl", "--data", questions, "--corpus", passages_file, "--out", tmp_path / "run",
        "--extractor", scripted_llm.spec, "--no-traces",
    )  # fmt: skip
    assert done.exit_code == 1
    assert done.stderr.count("check the API key") == 1
    # those of one hop's passages, which were under way
    assert len(scripted_llm.requests()) <= 5


def test_a_run_is_replayed_from_the_replies_of_another_and_a_miss_ends_it(
    cli: Cli, questions: Path, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Edinburgh [1]", "repeat": True})
    run = [
        "eval", "jsonl", "--data", questions, "--corpus", passages_file,
        "--loop", "single-shot", "--extractor", "offline", "--answerer", scripted_llm.spec,
    ]  # fmt: skip
    cli(*run, "--out", tmp_path / "first")
    replies = tmp_path / "first" / "replies.sqlite"
    again = cli(*run, "--out", tmp_path / "again", "--cache", replies, "--replay")
    assert again.exit_code == 0, again.output
    first, second = (
        {row["id"]: row["answer"] for row in _rows(tmp_path / name)}
        for name in ("first", "again")
    )
    assert second == first
    other = cli(
        *run, "--out", tmp_path / "other", "--cache", replies, "--replay", "--k", "1"
    )
    assert other.exit_code == 1
    assert "no reply in replies.sqlite to the request of answerer" in other.stderr
    assert "differs first in message" in other.stderr
    none = cli(*run, "--out", tmp_path / "none", "--replay")
    assert (none.exit_code, "there are no replies at" in none.stderr) == (1, True)
    assert not (tmp_path / "none").exists()
    assert len(scripted_llm.requests()) == 2


BAD = {
    "no JSON": '{"id": "x"',
    "a list": "[1]",
    "hops": {"hops": "many"},
    "hops in metadata": {"metadata": {"hops": [2]}},
    "decomposition": {"decomposition": 5},
    "steps of a decomposition": {"decomposition": [{"question": "Who?"}]},
    "choices": {"choices": ["A"]},
    "contexts": {"contexts": [5]},
    "id twice": {"id": "q1"},
    "half a surrogate": {"id": "\ud800"},
    "question": {"question": ["Who?"]},
    "answers": {"answers": {"a": 1}},
    "supporting": {"supporting_ids": {"a": 1}},
    "type": {"type": {}},
    "metadata": {"metadata": "easy"},
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_is_left_out_reported_with_its_line_and_counted(
    cli: Cli, questions: Path, bell_index: Path, tmp_path: Path, case: str
) -> None:
    bad = BAD[case]
    line = (
        bad
        if isinstance(bad, str)
        else json.dumps({**QUESTIONS[1], "id": "bad", **bad})
    )
    questions.write_text(
        questions.read_text()
        + line
        + "\n"
        + json.dumps({**QUESTIONS[1], "id": "q4"})
        + "\n"
    )
    command = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--index",
        bell_index,
        "--retrieval-only",
        "--out",
    ]
    for _ in range(2):
        done = cli(*command, tmp_path / "run")
        assert done.exit_code == 3, done.output
        assert f"skipped  {questions} line 3" in done.stderr
    assert sorted(row["id"] for row in _rows(tmp_path / "run")) == ["q1", "q2", "q4"]
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["skipped_records"]
        == 1
    )
    refused = cli(*command, tmp_path / "strict", "--strict")
    assert refused.exit_code == 1
    assert f"{questions} line 3" in refused.stderr


def test_a_file_of_bad_records_alone_is_refused_with_the_first(
    cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    done = cli(
        "eval",
        "jsonl",
        "--data",
        tmp_path / "bad.jsonl",
        "--index",
        bell_index,
        "--out",
        tmp_path / "run",
    )
    assert done.exit_code == 1
    assert "bad.jsonl line 1: no key 'question'" in done.stderr


def test_a_report_shows_types_and_names_of_any_characters(
    cli: Cli, questions: Path, bell_index: Path, tmp_path: Path
) -> None:
    rows = [{**question, "id": f"{n}{number}", "type": kind} for n, question in enumerate(QUESTIONS)
            for number, kind in enumerate(("a\x01b", "c\x1b[31m", "d\ufffe"))]  # fmt: skip
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = (
        "eval",
        "jsonl",
        "--data",
        questions,
        "--index",
        bell_index,
        "--retrieval-only",
        "--name",
        "run \x02\x0b 1",
    )
    assert cli(*run, "--out", tmp_path / "run").exit_code == 0
    done = cli("report", tmp_path / "run", "--out", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
