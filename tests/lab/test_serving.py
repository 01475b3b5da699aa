"""The benchmark of the server, small: nobody's answer is lost."""

import json
from pathlib import Path

import pytest

from lab import serving as bench_serving

pytestmark = pytest.mark.slow("benchmarks")


def test_callers_at_once_all_get_their_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fastapi", reason="needs the extra 'serve'")
    pytest.importorskip("aiosqlite", reason="needs the extra 'sqlite'")
    target, threads = tmp_path / "out.jsonl", f"sqlite:{tmp_path}/threads.sqlite"
    options = ["--latencies", "0", "--callers", "3", "--servers", "1,2", "--checkpoint", threads]
    bench_serving.main([*options, "--json", str(target)])
    measurements = list(map(json.loads, target.read_text().splitlines()))
    assert [(one["callers"], one["servers"], one["lost"]) for one in measurements] == [(3, 1, 0), (3, 2, 0)]
    assert all(one["calls"] >= 3 * 3 for one in measurements)
    assert [line[:13] for line in capsys.readouterr().out.splitlines()[2:]] == ["| 0 | 3 | 1 |", "| 0 | 3 | 2 |"]
