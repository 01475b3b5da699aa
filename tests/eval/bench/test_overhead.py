"""The benchmark of the loop's own cost: a record a loop, ours and the bare graph's."""

import json
from pathlib import Path

import pytest

from ras_agent.eval.bench.overhead import Cost, main, records

pytestmark = pytest.mark.slow("benchmarks")


def test_ours_is_divided_by_the_bare_graph_before_it() -> None:
    costs = {"bare": Cost([1.0, 2.0], [0.5, 0.5]), "ours": Cost([2.0, 4.0], [1.0, 1.0])}
    bare, ours = records(costs)
    assert "ratio" not in bare
    assert (ours["peer"], ours["ratio"]) == ("bare LangGraph", 2.0)


def test_it_prints_a_table_and_writes_a_record_a_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--runs", "2", "--json", str(tmp_path / "out.jsonl")])
    found = [
        json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert [("ratio" in one, one["benchmark"]) for one in found] == [
        (False, "overhead"),
        (True, "overhead"),
    ] * 3
    assert len(capsys.readouterr().out.splitlines()) == 8
