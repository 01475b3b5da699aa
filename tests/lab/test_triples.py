"""The measuring program of local text-to-triples models reads the same texts in every way."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("transformers", reason="needs the extra 'llm'")

from lab.triples import main, random_passages

pytestmark = pytest.mark.slow("benchmarks")


def test_every_way_is_measured_in_every_round(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--width", "16", "--layers", "1", "--passages", "20", "--target-tokens", "60", "--rounds", "2"])
    lines = capsys.readouterr().out.splitlines()
    found = [json.loads(line) for line in lines[:10]]
    assert [one["round"] for one in found] == [0] * 5 + [1] * 5
    assert {one["passages"] for one in found} == {20}
    assert [one["padding"] for one in found[:5]] == [0.0, *(one["padding"] for one in found[6:])]
    assert found[1]["padding"] > found[2]["padding"] > 0
    assert found[0]["ratio"] == 1.0
    assert lines[10].startswith("one by one: ")
    assert lines[10].endswith("1.0 times as many as one by one")


def test_passages_are_the_same_each_time() -> None:
    assert random_passages(5) == random_passages(5)
    assert len({len(passage.text) for passage in random_passages(20)}) > 10
