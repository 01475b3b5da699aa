"""The benchmark of limits, small: what it measures is in its tables."""

import pytest

from lab import limits as bench_limits

pytestmark = pytest.mark.slow("benchmarks")


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_runs_with_hanging_parts_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_limits, "_SECONDS", 0.4)
    table = bench_limits.seconds_table()
    assert table.count("| the answerer hangs") == 2
    assert table.count("No answer: max_seconds is used up.") >= 4


def test_tokens_and_users_are_measured() -> None:
    assert "| 100 | 0 | 0 | max_tokens | No answer: max_tokens is used up. |" in bench_limits.tokens_table()
    assert bench_limits.users_table(3, 0.0, [2, 4]).count("| in_flight = ") == 2
