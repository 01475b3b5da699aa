"""Fetching from a data set hub: lazily, through the `datasets` library, into the same records."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, MissingExtra
from ras_agent.eval.benchmarks import benchmark
from tests.messages import says

ROW = {
    "id": "h1",
    "question": "Who ran Fell Mill?",
    "answer": "Tam Orr",
    "type": "bridge",
    "level": "easy",
    "supporting_facts": {"title": ["Fell Mill"], "sent_id": [0]},
    "context": {"title": ["Fell Mill"], "sentences": [["Tam Orr ran it."]]},
}


def _library(
    monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    """Stands in for the library, which no offline test can have download; returns the calls it gets."""
    calls: list[tuple[Any, ...]] = []

    def load_dataset(
        path: str, name: str | None, *, split: str, streaming: bool
    ) -> Iterator[dict[str, Any]]:
        calls.append((path, name, split, streaming))
        return iter(rows)

    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset)
    )
    return calls


def test_rows_become_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _library(monkeypatch, [ROW, {**ROW, "id": "h2"}])
    questions = benchmark("hotpotqa").fetch()
    assert [question.id for question in questions] == ["h1", "h2"]
    assert questions[0].supporting == ("Fell Mill",)
    assert calls == [("hotpotqa/hotpot_qa", "distractor", "validation", False)]


def test_a_limit_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _library(monkeypatch, [ROW, {"id": "broken"}])
    assert len(benchmark("hotpotqa").fetch("train", limit=1)) == 1
    assert calls == [("hotpotqa/hotpot_qa", "distractor", "train", True)]


def test_a_bad_row_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _library(monkeypatch, [ROW, {"id": "broken"}])
    with pytest.raises(
        IngestError, match="hotpotqa/hotpot_qa validation row 2: no key"
    ):
        benchmark("hotpotqa").fetch()


def test_without_the_library_the_install_line_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        MissingExtra,
        match=says("hotpotqa", "needs an extra", "pip install 'ras-agent[datasets]'"),
    ):
        benchmark("hotpotqa").fetch()


def test_what_no_hub_holds_names_its_source() -> None:
    with pytest.raises(
        IngestError,
        match=says("musique", "cannot be fetched", "hub", "get musique_v1.0.zip"),
    ):
        benchmark("musique").fetch()
