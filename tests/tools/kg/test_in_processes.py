"""Reading with several processes: the same results in the same order, and a worker that dies is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ras_agent.app.sample import sample_passages
from ras_agent.errors import ModelCallError, RunError
from ras_agent.records import Extraction, Failure, Passage
from ras_agent.tools.kg.bulk import one_by_one
from ras_agent.tools.kg.in_processes import in_processes
from ras_agent.tools.offline.extractor.extract import OfflineExtractor


class Fragile:
    """Fails over "bad", breaks over "broken", dies of "deadly"."""

    name = "fragile"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        (passage,) = passages
        if passage.text == "bad":
            raise ModelCallError("no reply")
        if passage.text == "broken":
            raise KeyError("a mistake")
        if passage.text == "deadly":
            os._exit(9)
        return Extraction()


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They import this module by its name."""
    # last: the checkout's own ras_agent folder is not the whole package
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[__name__.count(".")])])


def test_two_processes_read_what_one_reads_in_its_order() -> None:
    passages = sample_passages()[:50]
    alone = list(one_by_one(OfflineExtractor())(passages))
    assert sum(len(extraction.triples) for _, extraction in alone) > 200
    assert list(in_processes(OfflineExtractor(), 2)(passages)) == alone


def test_a_passage_that_cannot_be_read_is_a_failure_of_its_own() -> None:
    found = list(in_processes(Fragile(), 2)([Passage("a", "bad"), Passage("b", "good")]))
    assert [extraction for _, extraction in found] == [
        Extraction(failures=(Failure("extractor", "no reply (passage a)"),)),
        Extraction(),
    ]


@pytest.mark.parametrize(("text", "told"), [("broken", "KeyError: 'a mistake'"), ("deadly", r"exit code 9")])
def test_a_worker_that_breaks_ends_the_reading(text: str, told: str) -> None:
    with pytest.raises(RunError, match=told):
        list(in_processes(Fragile(), 2)([Passage("a", text)]))


def test_no_passages_start_no_process() -> None:
    assert list(in_processes(Fragile(), 2)([])) == []
    with pytest.raises(ValueError, match="positive"):
        in_processes(Fragile(), 0)
