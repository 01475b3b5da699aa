"""The retrieval benchmark's passages, and that it runs."""

import json
from pathlib import Path

import pytest

from ras_agent.eval.bench.retrieval import main, synthetic_passages, synthetic_queries

pytestmark = pytest.mark.slow("benchmarks")


def test_passages_are_the_same_for_the_same_seed_and_distinct() -> None:
    first = list(synthetic_passages(1500))
    assert first == list(synthetic_passages(1500))
    assert len({passage.id for passage in first}) == 1500
    assert first[0] != next(synthetic_passages(1, seed=7))


def test_queries_have_six_words() -> None:
    assert [len(query.split()) for query in synthetic_queries(3)] == [6, 6, 6]


def test_it_prints_a_table_and_writes_a_record_a_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--sizes", "300", "--queries", "5", "--json", str(tmp_path / "out.jsonl")])
    records = [
        json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert [(record["size"], record["system"]) for record in records] == [
        (300, "ras-agent"),
        (300, "bm25s"),
        (300, "rank-bm25"),
    ]
    assert records[0]["ratio"] > 0
    assert len(capsys.readouterr().out.splitlines()) == 5
