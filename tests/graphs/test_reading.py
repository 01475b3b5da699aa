"""What a user's extractor returns: good facts are kept, impossible ones are told and stay out of the graph."""

import json

import numpy as np
import pytest

from ras_agent.records import Extraction, Source, Triple


class Extractor:
    """Returns what it is told, whatever it is given; the passages are "Who? A" and "Who? B", 18 characters each."""

    name = "mine"

    def __init__(self, *triples):
        self.triples = triples

    def extract(self, passages, subquery=""):
        return Extraction(self.triples)


def fact(subject="Bell", *sources):
    return Triple(subject, "was born in", "Edinburgh", sources or (Source("Who? A", 0, 17),))


GOOD = fact("Watt")


@pytest.fixture
def facts_and_failures(ras, fakes):
    def run(*triples):
        out = ras("q", fakes.SUFFICIENT, extractor=Extractor(*triples)).invoke({"question": "Who?"})
        json.dumps(out, allow_nan=False)
        told = [(failure["role"], failure["hop"], failure["message"]) for failure in out["failures"]]
        return [(found["subject"], found["sources"]) for found in out["graph"]["facts"]], told

    return run


def source(passage_id, start, end, extractor="mine"):
    return {
        **{"passage_id": passage_id, "start": start, "end": end},
        **{"hop": 1, "subquery": "Who?", "extractor": extractor},
    }


WATT = ("Watt", [source("Who? A", 0, 17)])


def test_a_source_that_names_no_extractor_gets_the_extractors_name(facts_and_failures):
    named = fact("Bell", Source("Who? B", 0, 6, extractor="a part of mine"))
    facts, failures = facts_and_failures(GOOD, named)
    assert facts == [WATT, ("Bell", [source("Who? B", 0, 6, "a part of mine")])]
    assert failures == []


@pytest.mark.parametrize(
    "blank",
    [
        Triple("", "was born in", "Edinburgh", GOOD.sources),
        Triple("Bell", " \n", "Edinburgh", GOOD.sources),
        Triple("Bell", "was born in", "\u200b", GOOD.sources),
    ],
)
def test_a_blank_part_drops_the_fact(facts_and_failures, blank):
    message = "mine: 1 fact dropped: a blank subject, predicate or object"
    assert facts_and_failures(blank, GOOD) == ([WATT], [("extractor", 1, message)])


def test_facts_from_no_given_passage_are_dropped(facts_and_failures):
    message = "mine: 2 facts dropped: read in none of the passages that were given"
    unsourced, elsewhere = Triple("a", "b", "c"), fact("Bell", Source("elsewhere", 0, 3))
    assert facts_and_failures(unsourced, GOOD, elsewhere) == ([WATT], [("extractor", 1, message)])


def test_a_source_elsewhere_is_left_out_of_a_fact_that_has_another(facts_and_failures):
    message = "mine: 1 fact kept without one of its sources: a passage that was not given"
    twice = fact("Watt", Source("elsewhere", 0, 3), *GOOD.sources)
    assert facts_and_failures(twice) == ([WATT], [("extractor", 1, message)])


@pytest.mark.parametrize("span", [(0, 19), (-1, 4), (9, 3), (0.5, 3), ("0", "3"), (None, None)])
def test_a_place_that_the_passage_does_not_have_is_left_out(facts_and_failures, span):
    message = "mine: 1 fact kept without its place: characters that the passage does not have"
    facts, failures = facts_and_failures(GOOD, fact("Bell", Source("Who? B", *span)))
    assert facts == [WATT, ("Bell", [source("Who? B", 0, 0)])]
    assert failures == [("extractor", 1, message)]


def test_places_may_be_integers_of_numpy(facts_and_failures):
    place = Source("Who? A", np.int64(0), np.int64(17))
    assert facts_and_failures(fact("Watt", place)) == ([WATT], [])


@pytest.mark.parametrize(
    "thing",
    [
        ("Bell", "was born in", "Edinburgh"),
        None,
        Triple("Bell", "was born in", None, GOOD.sources),
        Triple(["Bell"], "was born in", "Edinburgh", GOOD.sources),
        Triple("Bell", "was born in", "Edinburgh", ("Who? A",)),
        Triple("Bell", "was born in", "Edinburgh", Source("Who? A")),
        Triple("Bell", "was born in", "Edinburgh", (Source(["Who? A"]),)),
    ],
)
def test_what_is_no_triple_is_dropped(facts_and_failures, thing):
    message = "mine: 1 fact dropped: no Triple of three texts with Sources"
    assert facts_and_failures(thing, GOOD) == ([WATT], [("extractor", 1, message)])


def test_each_kind_of_wrong_is_told_once_with_its_first_facts(ras, fakes):
    read = *(Triple("", "is", f"thing {n}", GOOD.sources) for n in range(5)), fact("Bell", Source("x"))
    out = ras("q", fakes.SUFFICIENT, extractor=Extractor(*read)).invoke({"question": "Who?"})
    assert [failure["message"] for failure in out["failures"]] == [
        "mine: 5 facts dropped: a blank subject, predicate or object",
        "mine: 1 fact dropped: read in none of the passages that were given",
    ]
    detail = out["failures"][0]["detail"]
    assert [name in detail for name in ("thing 0", "thing 2", "thing 3")] == [True, True, False]


async def test_an_asynchronous_extractor_is_held_to_the_same(ras, fakes):
    class Asynchronous(Extractor):
        async def aextract(self, passages, subquery=""):
            return Extraction((GOOD, Triple("", "is", "a thing", GOOD.sources)))

    out = await ras("q", fakes.SUFFICIENT, extractor=Asynchronous()).ainvoke({"question": "Who?"})
    assert [found["subject"] for found in out["graph"]["facts"]] == ["Watt"]
    assert len(out["failures"]) == 1
