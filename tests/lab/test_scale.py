"""The measurements behind docs/scale.md and lab/store.md run."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab import scale, store
from ras_agent.address import Address
from ras_agent.tools.index.store import PassageIndex

pytestmark = pytest.mark.slow("benchmarks")


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_part_is_made_and_searched(tmp_path: Path) -> None:
    scale.main(["--sizes", "60", "--queries", "3", "--parts", "flat,graph", "--json", str(tmp_path / "out.jsonl")])
    records = _records(tmp_path / "out.jsonl")
    assert [record["part"] for record in records] == ["flat", "graph"]
    assert all(record["disk_mb"] > 0 and record["search_ms"] > 0 for record in records)


def test_costs_of_changes_are_measured_and_drawn(tmp_path: Path) -> None:
    out, plot = tmp_path / "out.jsonl", tmp_path / "out.svg"
    store.main(["--sizes", "300,400", "--queries", "3", "--json", str(out), "--plot", str(plot)])
    records = _records(out)
    assert {record["size"] for record in records} == {300, 400}
    assert {*store.SHOWN, "make, s", "search, bm25", "search, dense"} <= {record["what"] for record in records}
    assert all(record["value"] > 0 for record in records)
    assert "<svg" in plot.read_text()


def test_an_index_in_a_database_is_measured_and_dropped(postgres: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    store.main(["--sizes", "300", "--queries", "3", "--url", postgres, "--json", str(out)])
    assert all(record["value"] > 0 for record in _records(out))
    assert not PassageIndex.exists(Address(postgres, "store_300"))
