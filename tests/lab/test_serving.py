"""The benchmark of the server, small: nobody's answer is lost."""

import json
from pathlib import Path

import pytest

from lab import serving as bench_serving

pytestmark = pytest.mark.slow("benchmarks")


def test_callers_at_once_all_get_their_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fastapi", reason="needs the extra 'serve'")
    target = tmp_path / "out.jsonl"
    bench_serving.main(["--latencies", "0", "--callers", "3", "--json", str(target)])
    (found,) = map(json.loads, target.read_text().splitlines())
    assert (found["callers"], found["lost"]) == (3, 0)
    assert found["calls"] >= 3 * 3
    assert capsys.readouterr().out.splitlines()[2].startswith("| 0 | 3 |")
