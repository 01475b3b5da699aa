"""The benchmark of parsing, merging and drawing: both sides do the same work, and it runs."""

import json
from pathlib import Path

import pytest

from ras_agent.eval.bench import graph as bench_graph

pytestmark = pytest.mark.slow("benchmarks")


def test_every_part_is_measured_beside_its_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("networkx", reason="the peer, extra eval")
    bench_graph.main(
        ["--runs", "2", "--sizes", "20", "--json", str(tmp_path / "out.jsonl")]
    )
    found = [
        json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert [(one["benchmark"], one["size"]) for one in found] == [
        ("parse", 20),
        ("merge", 20),
        ("page", 20),
    ]
    assert all(one["ours"] > 0 and one["theirs"] > 0 for one in found)
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_both_parsers_find_all_facts() -> None:
    reply = "\n".join(map(str, bench_graph._facts(50)))
    assert (
        len(bench_graph.parse_triples(reply).triples)
        == len(bench_graph._PLAIN.findall(reply))
        == 50
    )
