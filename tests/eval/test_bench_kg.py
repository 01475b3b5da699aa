"""The benchmark of building graphs measures what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ras_agent.eval.bench_kg import main


def test_it_builds_kills_deletes_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus.jsonl"
    lines = [
        {"id": f"p{n}", "title": f"Person {n}", "text": f"Person {n} was born in City {n % 7}."} for n in range(20)
    ]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    main([str(corpus), "--sizes", "12", "20", "--embedder", "", "--kills", "1", "--work", str(tmp_path / "work")])
    small, large, killed, deleted = map(json.loads, capsys.readouterr().out.splitlines())
    assert (small["passages"], large["passages"], large["facts"]) == (12, 20, 20)
    assert large["peak"] > 10
    assert (killed["killed"]["passages"], killed["killed"]["same graph"]) == (12, True)
    assert (deleted["deleted"]["documents"], deleted["deleted"]["same graph"]) == (10, True)
