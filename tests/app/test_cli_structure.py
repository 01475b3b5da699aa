"""`ras-agent structure`, the triple cache in `ask` and `eval`, and `ras-agent eval-cost`, with a model over HTTP."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.tools.store.cache import _known_locked

Cli = Callable[..., Any]
_STATED = {
    "] Telephone\n": "(S> The telephone | P> was patented by | O> Bell)",
    "] Alexander Graham Bell\n": "(S> Bell | P> was born in | O> Edinburgh)",
    "] Water of Leith\n": "(S> Water of Leith | P> flows through | O> Edinburgh)",
    "] Paris\n": "(S> Paris | P> is the capital of | O> France)",
}
FACTS = [
    {"when": title, "reply": fact, "repeat": True} for title, fact in _STATED.items()
]


def _questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    asked = {
        "id": "q1",
        "question": "Who patented the telephone?",
        "answers": ["Bell"],
        "supporting_ids": ["tel"],
    }
    path.write_text(json.dumps(asked) + "\n")
    return path


def test_a_corpus_is_read_once_and_the_same_command_reads_nothing_again(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(*FACTS)
    command = [
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
    ]
    first = cli(*command, tmp_path / "facts.sqlite", "--limit", 3)
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("3 passages · 3 facts · ")
    again = cli(*command, tmp_path / "facts.sqlite")
    assert again.stdout.startswith("4 passages, 3 of them known · 4 facts · ")
    assert len(scripted_llm.requests()) == 4


def test_one_unreadable_reply_has_all_further_passages_asked_with_examples(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "It is about a thing."}, *FACTS)
    command = (
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--concurrency",
        1,
    )
    first = cli(*command, "--triple-cache", tmp_path / "facts.sqlite")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("4 passages · 4 facts · ")
    assert "few_shot = true (--few-shot)" in first.stderr.replace("\n", " ")
    examples = [
        "Marie Tharp" in str(request["messages"]) for request in scripted_llm.requests()
    ]
    assert examples == [False, True, True, True, True]


def test_an_evaluation_finds_the_facts_there(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(*FACTS)
    facts = tmp_path / "facts.sqlite"
    cli(
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
        facts,
    )
    read = len(scripted_llm.requests())
    asked = cli(
        *(
            "eval",
            "jsonl",
            "--data",
            _questions(tmp_path),
            "--corpus",
            passages_file,
            "--out",
            tmp_path / "run",
        ),
        *("--extractor", scripted_llm.spec, "--triple-cache", facts),
    )
    assert asked.exit_code == 0, asked.output
    row = json.loads((tmp_path / "run" / "results.jsonl").read_text())
    subjects = {fact["subject"] for fact in row["trace"]["graph"]["facts"]}
    assert (subjects, row["usage"]["calls"], len(scripted_llm.requests())) == (
        {"The telephone"},
        0,
        read,
    )


def test_a_passage_that_fails_is_reported_and_read_again_the_next_time(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"when": "Paris", "status": 400, "reply": "no"}, *FACTS)
    command = [
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
    ]
    first = cli(*command, tmp_path / "facts.sqlite")
    assert (first.exit_code, "(passage paris)" in first.stderr) == (3, True)
    again = cli(*command, tmp_path / "facts.sqlite")
    assert (again.exit_code, "4 passages, 3 of them known" in again.stdout) == (0, True)


def test_a_locked_triple_cache_ends_the_work_with_one_line(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(*FACTS)
    facts = tmp_path / "facts.sqlite"
    command = [
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
        facts,
    ]
    cli(*command, "--limit", 1)
    other = sqlite3.connect(facts)
    other.execute("BEGIN IMMEDIATE")
    _known_locked.add(facts)  # as if it had been waited for already
    ended = cli(*command)
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"ras-agent: cannot store facts: {facts}: database is locked by another process; wait for it to end, or name "
        "another file\n",
    )
    other.close()
    assert "4 passages, 1 of them known" in cli(*command).stdout


def test_structure_needs_a_model_that_reads(
    cli: Cli, passages_file: Path, tmp_path: Path
) -> None:
    command = [
        "structure",
        "--corpus",
        passages_file,
        "--triple-cache",
        tmp_path / "facts.sqlite",
    ]
    assert "no extractor to read with" in cli(*command).stderr
    refused = cli(*command, "--extractor", "offline")
    assert (
        refused.exit_code,
        "cannot be cached" in refused.stderr,
    ) == (1, True)


def test_eval_cost_measures_by_the_triple_cache_or_estimates(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(*FACTS)
    facts = tmp_path / "facts.sqlite"
    cli(
        "structure",
        "--corpus",
        passages_file,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
        facts,
    )
    cli(
        "eval",
        "jsonl",
        "--data",
        _questions(tmp_path),
        "--corpus",
        passages_file,
        "--out",
        tmp_path / "run",
        "--k",
        2,
    )
    (tmp_path / "prices.json").write_text('{"m": {"input": 1000000, "output": 0}}')
    command = ["eval-cost", tmp_path / "run", "--corpus", passages_file, "--json"]
    measured = json.loads(
        cli(
            *command, "--triple-cache", facts, "--extractor", scripted_llm.spec, "--prices", tmp_path / "prices.json",
            "--model", "m",
        ).stdout
    )  # fmt: skip
    assert (measured["static"]["passages"], measured["static"]["measured"]) == (4, True)
    assert measured["cost"]["static"] == measured["static"]["input_tokens"]
    estimated = json.loads(cli(*command).stdout)
    assert (estimated["static"]["measured"], estimated["cost"]) == (False, None)
    table = cli("eval-cost", tmp_path / "run", "--corpus", passages_file).stdout
    assert "the whole corpus, once" in table
    missing = cli(*command, "--model", "unknown")
    assert "the price table has no model 'unknown'" in missing.stderr


BAD = {
    "a number": {"id": "a", "text": 5},
    "a list": {"id": "a", "text": ["x"]},
    "a title": {"id": "a", "text": "x", "title": {}},
    "no text": {"id": "a"},
    "an id twice": {"id": "tel", "text": "Another text."},
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_of_a_corpus_is_left_out_and_reported_with_its_line(
    cli: Cli, passages_file: Path, tmp_path: Path, scripted_llm: Any, case: str
) -> None:
    scripted_llm.script(*FACTS)
    corpus = tmp_path / "corpus.jsonl"
    lines = passages_file.read_text().splitlines()
    corpus.write_text("".join(f"{line}\n" for line in [*lines, json.dumps(BAD[case])]))
    command = [
        "structure",
        "--corpus",
        corpus,
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
        tmp_path / "f",
    ]
    done = cli(*command)
    assert (done.exit_code, done.stdout.partition(" · ")[0]) == (
        3,
        f"{len(lines)} passages",
    ), done.output
    assert f"skipped  {corpus} line {len(lines) + 1}: " in done.stderr
    assert cli(*command, "--strict").exit_code == 1
