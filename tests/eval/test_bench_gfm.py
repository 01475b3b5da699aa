"""The GFM benchmark's graphs, and that it runs."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from ras_agent.eval import bench_gfm
from ras_agent.tools.encode.gfm.config import GFMConfig


def test_degrees_of_the_synthetic_graph_follow_zipfs_law() -> None:
    case = bench_gfm.zipf_case(2000, 500, 20_000, 3, 2)
    degrees = np.sort(np.bincount(case["edges"][:, [0, 2]].ravel(), minlength=2000))[::-1]
    slope = np.polyfit(np.log(np.arange(1, 501)), np.log(degrees[:500]), 1)[0]
    assert slope == pytest.approx(-0.8, abs=0.05)
    assert np.diff(case["indptr"])[-2:].tolist() == [1, 1]
    assert all(degrees_of >= np.quantile(degrees, 0.99) for degrees_of in _degrees(case)[-2:])


def _degrees(case: bench_gfm.Case) -> np.ndarray:
    return np.bincount(case["edges"][:, [0, 2]].ravel(), minlength=2000)[case["starts"]]


def test_it_prints_a_table_and_writes_a_record_a_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_gfm, "CONFIG", GFMConfig(text_width=24, width=16, layers=3))
    monkeypatch.setattr(bench_gfm, "_in_process", lambda system, folder: bench_gfm._measure(system, Path(folder)))
    for name, value in (("ENTITIES", 400), ("RELATIONS", 30), ("FACTS", 900)):
        monkeypatch.setattr(bench_gfm, name, value)
    bench_gfm.main(
        ["--zipf", "--count", "40", "--connected", "2", "--slow", "1", "--json", str(tmp_path / "out.jsonl")]
    )
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["system"] for record in records] == [one for one in bench_gfm.SYSTEMS if one != "autograd"]
    assert all(record["difference"] < 1e-4 for record in records[:3])
    assert records[2]["kept_mb"] > records[3]["kept_mb"] > 0
    assert [record["answered"] for record in records] == [2, 2, 6, 6, 6]
    assert len(capsys.readouterr().out.splitlines()) == 8
