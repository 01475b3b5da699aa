"""`ras-agent export` of a run of `ras-agent eval`, and question sets of other libraries in both."""

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ScriptedLLM

Cli = Callable[..., Any]


@pytest.fixture
def flashrag(tmp_path: Path) -> tuple[Path, Path]:
    """Two questions and their corpus in the form of FlashRAG."""
    questions = [
        {
            "id": "q1",
            "question": "Which river flows through Edinburgh?",
            "golden_answers": ["Water of Leith"],
        },
        {
            "id": "q2",
            "question": "What is the capital of France?",
            "golden_answers": ["Lyon"],
        },
    ]
    corpus = [
        {
            "id": "0",
            "contents": '"Water of Leith"\nThe Water of Leith is a river that flows through Edinburgh.',
        },
        {"id": "1", "contents": '"Paris"\nParis is the capital of France.'},
    ]
    for name, rows in (("dev.jsonl", questions), ("corpus.jsonl", corpus)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "dev.jsonl", tmp_path / "corpus.jsonl"


@pytest.fixture
def run(cli: Cli, flashrag: tuple[Path, Path], tmp_path: Path) -> Path:
    """The run of the offline agent over them."""
    data, corpus = flashrag
    done = cli(
        "eval", "jsonl", "--data", data, "--corpus", corpus, "--out", tmp_path / "run"
    )
    assert done.exit_code == 0, done.output
    return tmp_path / "run"


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_run_over_questions_of_flashrag_is_exported_as_flashrag(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    done = cli("export", run, "--to", "flashrag", "--out", tmp_path / "out.jsonl")
    assert (done.exit_code, "out.jsonl: 2 questions" in done.stdout) == (0, True), (
        done.output
    )
    row = {row["id"]: row for row in _rows(tmp_path / "out.jsonl")}["q1"]
    assert row["output"]["pred"] == "Water of Leith"
    assert row["output"]["metric_score"]["em"] == 1.0
    assert row["output"]["retrieval_result"][0] == {
        "id": "0",
        "contents": '"Water of Leith"\nThe Water of Leith is a river that flows through Edinburgh.',
    }


def test_only_answers_that_score_enough_and_are_cited_are_exported(
    cli: Cli, run: Path, tmp_path: Path
) -> None:
    done = cli(
        "export",
        run,
        "--to",
        "ragas",
        "--min",
        "f1=1",
        "--cited",
        "--out",
        tmp_path / "rows.jsonl",
    )
    assert "rows.jsonl: 1 question, 1 left out" in done.stdout
    assert [row["response"] for row in _rows(tmp_path / "rows.jsonl")] == [
        "Water of Leith"
    ]


def test_a_run_of_trec_has_its_judgements_beside_it(
    cli: Cli, flashrag: tuple[Path, Path], tmp_path: Path
) -> None:
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "Which river flows through Edinburgh?"}\n'
    )
    (beir / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Leith", "text": "The river of Edinburgh."}\n'
    )
    (beir / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td9\t1\n"
    )
    arguments = (
        "--corpus",
        beir / "corpus.jsonl",
        "--retrieval-only",
        "--metric",
        "ndcg@10",
    )
    done = cli("eval", "jsonl", "--data", beir, *arguments, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    scores = json.loads((tmp_path / "run/summary.json").read_text())["scores"]
    # the passage of grade 1 was not found
    assert scores["ndcg@10"]["mean"] == pytest.approx(2 / (2 + 1 / log2(3)))
    cli("export", tmp_path / "run", "--to", "trec", "--out", tmp_path / "run.trec")
    assert (tmp_path / "run.trec").read_text() == "q1 Q0 d1 1 1 run\n"
    assert (tmp_path / "run.trec.qrels").read_text() == "q1 0 d1 2\nq1 0 d9 1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--to", "nonsense"), 1, "known: csv, flashrag"),
        (
            ("--to", "trl"),
            2,
            "trl holds the calls of a role: add --role planner",
        ),
        (("--to", "ragas", "--min", "f1"), 2, "--min takes METRIC=SCORE"),
        (
            ("--to", "ragas", "--min", "rouge=1"),
            1,
            "has no scores of 'rouge', only of em",
        ),
    ],
)
def test_a_wrong_wish_is_told_what_there_is(
    cli: Cli,
    run: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    done = cli("export", run, *arguments, "--out", tmp_path / "x.jsonl")
    assert (done.exit_code, message in " ".join(done.output.split())) == (code, True), (
        done.output
    )
    assert not (tmp_path / "x.jsonl").exists()


def test_a_run_without_traces_has_no_texts_to_export(
    cli: Cli, flashrag: tuple[Path, Path], tmp_path: Path
) -> None:
    data, corpus = flashrag
    cli(
        "eval",
        "jsonl",
        "--data",
        data,
        "--corpus",
        corpus,
        "--no-traces",
        "--out",
        tmp_path / "bare",
    )
    done = cli(
        "export", tmp_path / "bare", "--to", "ragas", "--out", tmp_path / "x.jsonl"
    )
    assert (done.exit_code, "has no trace" in done.output) == (1, True)


# ---- the calls of a role


@pytest.fixture
def planned(
    cli: Cli, scripted_llm: Any, questions: Path, passages_file: Path, tmp_path: Path
) -> Callable[..., Path]:
    """`planned("good", "Bell")`: a run whose planner searches for the question, then for Bell, and is content then."""

    def planned(name: str, subquery: str) -> Path:
        replies = ("[SUBQ] the telephone", f"[SUBQ] {subquery}", "[SUFFICIENT]")
        scripted_llm.script(*({"reply": reply} for reply in replies))
        arguments = (
            "--corpus",
            passages_file,
            "--planner",
            scripted_llm.spec,
            "--extractor",
            "offline",
            "--k",
            "1",
        )
        done = cli(
            "eval", "jsonl", "--data", questions, *arguments, "--out", tmp_path / name
        )
        assert done.exit_code == 0, done.output
        return tmp_path / name

    return planned


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    row = {
        "id": "q1",
        "question": "Where was the inventor of the telephone born?",
        "answers": ["Edinburgh"],
    }
    path.write_text(json.dumps(row) + "\n")
    return path


def test_what_a_planner_was_sent_and_replied_is_exported_to_train_on(
    cli: Cli, planned: Callable[..., Path], tmp_path: Path
) -> None:
    run = planned("run", "Where was Alexander Graham Bell born?")
    wish = ("--role", "planner", "--min", "f1=1", "--cited")
    done = cli("export", run, *wish, "--to", "trl", "--out", tmp_path / "t.jsonl")
    assert "t.jsonl: 3 calls of 1 question" in " ".join(done.stdout.split()), (
        done.output
    )
    rows = _rows(tmp_path / "t.jsonl")
    assert [row["completion"][0]["content"] for row in rows] == [
        "[SUBQ] the telephone",
        "[SUBQ] Where was Alexander Graham Bell born?",
        "[SUFFICIENT]",
    ]
    assert (
        "Where was the inventor of the telephone born?"
        in rows[0]["prompt"][-1]["content"]
    )
    assert [row["hop"] for row in rows] == [1, 2, 3]
    # RAS's first search
    assert (
        rows[0]["plan"]["subquery"] == "Where was the inventor of the telephone born?"
    )
    assert rows[1]["plan"]["subquery"] == "Where was Alexander Graham Bell born?"
    assert (rows[0]["scores"]["f1"], rows[0]["provenance"]["run"]) == (1.0, str(run))


def test_two_runs_that_part_are_exported_as_pairs(
    cli: Cli, planned: Callable[..., Path], tmp_path: Path
) -> None:
    bad, good = (
        planned("bad", "What is the capital of France?"),
        planned("good", "Where was Bell born?"),
    )
    out = tmp_path / "pairs.jsonl"
    done = cli(
        "export",
        bad,
        "--role",
        "planner",
        "--against",
        good,
        "--to",
        "trl",
        "--out",
        out,
    )
    assert (
        done.exit_code,
        "1 pair of 1 question" in " ".join(done.stdout.split()),
    ) == (0, True), done.output
    (row,) = _rows(out)
    assert (row["hop"], row["chosen"][0]["content"], row["rejected"][0]["content"]) == (
        2,
        "[SUBQ] Where was Bell born?",
        "[SUBQ] What is the capital of France?",
    )
    assert row["provenance"]["run"] == str(good)


def test_pairs_of_runs_that_differ_in_more_than_the_role_are_told(
    cli: Cli, planned: Callable[..., Path], tmp_path: Path
) -> None:
    bad, good = (
        planned("bad", "What is the capital of France?"),
        planned("good", "Where was Bell born?"),
    )
    manifest = json.loads((good / "manifest.json").read_text())
    manifest["roles"] |= {"answerer": "openai:other"}
    manifest["limits"] |= {"k": 7}
    (good / "manifest.json").write_text(json.dumps(manifest))
    done = cli(
        "export",
        bad,
        "--role",
        "planner",
        "--against",
        good,
        "--to",
        "trl",
        "--out",
        tmp_path / "pairs.jsonl",
    )
    told = " ".join(done.stderr.split())
    assert "the runs differ in more than the planner" in told
    assert "limits.k: 1 there, 7 here" in told
    assert "roles.answerer:" in told
    assert "roles.planner" not in told


def test_a_run_and_its_fork_are_exported_as_pairs(
    cli: Cli,
    planned: Callable[..., Path],
    passages_file: Path,
    loopback_port: int,
    tmp_path: Path,
) -> None:
    run, other = (
        planned("run", "What is the capital of France?"),
        ScriptedLLM(loopback_port),
    )
    other.script({"reply": "[SUBQ] Where was Bell born?"}, {"reply": "[SUFFICIENT]"})
    agent = (
        "--planner",
        other.spec,
        "--extractor",
        "offline",
        "--k",
        "1",
        "--corpus",
        passages_file,
    )
    done = cli("replay", run, "--from-hop", "2", *agent, "--out", tmp_path / "fork")
    assert done.exit_code == 0, done.output
    cli(
        "export",
        run,
        "--role",
        "planner",
        "--against",
        tmp_path / "fork",
        "--to",
        "trl",
        "--out",
        tmp_path / "p.jsonl",
    )
    (row,) = _rows(tmp_path / "p.jsonl")
    assert (row["hop"], row["chosen"][0]["content"]) == (
        2,
        "[SUBQ] Where was Bell born?",
    )


def test_pairs_need_a_role_and_a_format_that_has_them(
    cli: Cli, planned: Callable[..., Path], tmp_path: Path
) -> None:
    run = planned("run", "river")
    arguments = ("--against", run, "--out", tmp_path / "x")
    assert "name it with --role" in cli("export", run, "--to", "trl", *arguments).output
    done = cli("export", run, "--to", "prime", "--role", "planner", *arguments)
    assert (done.exit_code, "known: trl" in done.output) == (1, True), done.output
