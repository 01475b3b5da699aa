"""The measurements behind docs/scale.md run."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab import scale

pytestmark = pytest.mark.slow("benchmarks")


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_part_is_made_and_searched(tmp_path: Path) -> None:
    scale.main(["--sizes", "60", "--queries", "3", "--parts", "flat,graph", "--json", str(tmp_path / "out.jsonl")])
    records = _records(tmp_path / "out.jsonl")
    assert [record["part"] for record in records] == ["flat", "graph"]
    assert all(record["disk_mb"] > 0 and record["search_ms"] > 0 for record in records)
