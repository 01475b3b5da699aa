"""Reading passages here, in threads or in processes: the same results in the same order, and errors in their place."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ras_agent.app.sample import sample_passages
from ras_agent.contracts.errors import ModelCallError, RunError
from ras_agent.contracts.records import Extraction, Failure, Passage, Source, Triple
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.offline.extractor.extract import OfflineExtractor

WAYS = [{}, {"at_once": 3}, {"workers": 2}]


class Fragile:
    """Fails over "bad", breaks over "broken", dies of "deadly"; invents a fact of another passage."""

    name = "fragile"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        (passage,) = passages
        if passage.text == "bad":
            raise ModelCallError("no reply")
        if passage.text == "broken":
            raise KeyError("a mistake")
        if passage.text == "deadly":
            os._exit(9)
        return Extraction((Triple("a", "b", "c", (Source("another"),)),))


@pytest.fixture(autouse=True)
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this module where processes that are started import it by its name."""
    # last: the checkout's own ras_agent folder is not the whole package
    monkeypatch.setattr(
        sys, "path", [*sys.path, str(Path(__file__).parents[__name__.count(".")])]
    )


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_many_at_once_read_what_one_reads_in_its_order(way: dict[str, int]) -> None:
    passages = sample_passages()[:50]
    alone = list(read_each(OfflineExtractor())(passages))
    assert sum(len(extraction.triples) for _, extraction in alone) > 200
    assert list(read_each(OfflineExtractor(), **way)(passages)) == alone


class Inventive:
    """Returns a fact of the passage, and one that it has made up."""

    name = "inventive"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        source = (Source(passages[0].id, 0, 9),)
        return Extraction(
            (
                Triple("Bell", "lived in", "Bath", source),
                Triple("Bell", "met", "Bruce Heezen", source),
            )
        )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_only_facts_that_stand_in_their_passage_are_kept(way: dict[str, int]) -> None:
    ((_, extraction),) = read_each(Inventive(), **way)(
        [Passage("a", "Bell lived in Bath.")]
    )
    assert [fact.object for fact in extraction.triples] == ["Bath"]
    assert [failure.message for failure in extraction.failures] == [
        "a fact is left out, because its words are not in passage a: “Bell met Bruce Heezen” (missing: 'Bruce "
        "Heezen')"
    ]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_passage_that_cannot_be_read_is_a_failure_of_its_own(
    way: dict[str, int],
) -> None:
    found = list(
        read_each(Fragile(), **way)([Passage("a", "bad"), Passage("b", "good")])
    )
    assert [extraction for _, extraction in found] == [
        Extraction(failures=(Failure("extractor", "no reply (passage a)"),)),
        Extraction(),  # a fact of another passage is none of this one
    ]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_passage_that_comes_with_its_facts_states_those(way: dict[str, int]) -> None:
    passage = Passage(
        "a",
        "Tay flows to sea.",
        metadata={"facts": [["Tay", "flows to", "sea", "f.tsv line 1"]]},
    )
    ((_, found),) = read_each(Fragile(), **way)([passage])
    assert found.triples == (
        Triple(
            "Tay",
            "flows to",
            "sea",
            (Source("a", 0, 17, extractor="stated: f.tsv line 1"),),
        ),
    )


def test_an_extractor_that_breaks_ends_the_reading() -> None:
    for way in WAYS[:2]:
        with pytest.raises(KeyError, match="a mistake"):
            list(read_each(Fragile(), **way)([Passage("a", "broken")]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("broken", "KeyError: 'a mistake'"), ("deadly", r"exit code 9")],
)
def test_a_worker_that_breaks_ends_the_reading(text: str, reason: str) -> None:
    with pytest.raises(RunError, match=reason):
        list(read_each(Fragile(), workers=2)([Passage("a", text)]))


def test_no_more_calls_are_under_way_than_asked_for_and_no_more_passages_taken() -> (
    None
):
    taken: list[str] = []
    # broken unless two calls are under way at once
    both = threading.Barrier(2, timeout=30)

    class Pair:
        name = "pair"

        def extract(
            self, passages: Sequence[Passage], subquery: str = ""
        ) -> Extraction:
            both.wait()
            return Extraction()

    def passages() -> Iterator[Passage]:
        for number in range(6):
            taken.append(str(number))
            yield Passage(str(number), "text")

    reading = read_each(Pair(), at_once=2)(passages())
    assert next(reading)[0].id == "0"
    assert taken == ["0", "1", "2"]
    assert [passage.id for passage, _ in reading] == ["1", "2", "3", "4", "5"]


def test_no_passages_start_no_process() -> None:
    assert list(read_each(Fragile(), workers=2)([])) == []
    for way in ({"workers": 0}, {"at_once": 0}):
        with pytest.raises(ValueError, match="must be positive, got 0"):
            read_each(Fragile(), **way)
