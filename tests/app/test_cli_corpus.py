"""`ras-agent corpus`: a benchmark's own file becomes a corpus that is indexed, and a graph that retrievers search."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Cli = Callable[..., Any]
OFFICIAL = [
    {
        "_id": "a",
        "question": "Where was the founder of Crux born?",
        "answer": "Tampa",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Crux", 0], ["Ada Lee", 0]],
        "context": [
            ["Crux", ["Crux was founded by Ada Lee."]],
            ["Ada Lee", ["Ada Lee was born in Tampa."]],
        ],
    },
    {
        "_id": "b",
        "question": "Who founded Crux?",
        "answer": "Ada Lee",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": [["Crux", 0]],
        "context": [["Crux", ["Crux was founded by Ada Lee."]]],
    },
]


def test_an_official_file_becomes_a_corpus_an_index_and_a_graph(
    cli: Cli, tmp_path: Path
) -> None:
    data = tmp_path / "hotpot_dev.json"
    data.write_text(json.dumps(OFFICIAL))
    made = cli("corpus", "hotpotqa", data, "--out", tmp_path / "corpus.jsonl")
    assert made.exit_code == 0, made.output
    assert "2 passages" in made.stdout
    lines = (tmp_path / "corpus.jsonl").read_text().splitlines()
    titles = [json.loads(line)["title"] for line in lines]
    assert titles == ["Crux", "Ada Lee"]
    index = tmp_path / "my.index"
    done = cli("index", tmp_path / "corpus.jsonl", "--out", index)
    assert done.exit_code == 0, done.output
    asked = ("eval", "hotpotqa", "--data", data, "--retrieval-only")
    without = cli(*asked, "--retriever", "ppr", "--out", tmp_path / "without")
    assert without.exit_code != 0
    message = " ".join(without.output.split())
    assert "`ras-agent kg build my.index`" in message
    built = cli("kg", "build", index)
    assert built.exit_code == 0, built.output
    run = tmp_path / "with"
    found = cli(*asked, "--retriever", "ppr", "--index", index, "--out", run)
    assert found.exit_code == 0, found.output
    summary = json.loads((run / "summary.json").read_text())
    assert summary["scores"]["recall@5"]["mean"] == 1.0


def test_questions_without_passages_make_no_corpus(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "plain.jsonl"
    data.write_text(json.dumps({"question": "Who?", "answers": ["Ada"]}) + "\n")
    made = cli("corpus", "jsonl", data, "--out", tmp_path / "corpus.jsonl")
    assert made.exit_code == 1
    assert "come without passages" in " ".join(made.output.split())
    assert not (tmp_path / "corpus.jsonl").exists()
