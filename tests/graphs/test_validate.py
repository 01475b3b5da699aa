"""The objects that come from outside: given passages, and an extractor's facts; impossible ones are recorded and dropped."""

import json

import numpy as np
import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Extraction,
    Hit,
    Passage,
    Source,
    Triple,
)
from ras_agent.graphs.validate import read_given_passages
from tests.messages import says


class Extractor:
    """Returns its triples, whatever it is given; the passages are "Who? A" and "Who? B"."""

    name = "mine"

    def __init__(self, *triples):
        self.triples = triples

    def extract(self, passages, subquery=""):
        return Extraction(self.triples)


class Retriever:
    """Finds two passages of 18 characters, whose title has the words of all facts."""

    def retrieve(self, query, k=5):
        title = "Bell and Watt of Edinburgh"
        return [
            Hit(Passage(name, f"{name} is a thing.", title), 1.0)
            for name in ("Who? A", "Who? B")
        ]


def fact(subject="Bell", *sources):
    return Triple(
        subject, "was born in", "Edinburgh", sources or (Source("Who? A", 0, 17),)
    )


GOOD = fact("Watt")


@pytest.fixture
def facts_and_failures(ras, fakes):
    def run(*triples):
        out = ras(
            "q", fakes.SUFFICIENT, extractor=Extractor(*triples), retriever=Retriever()
        ).invoke({"question": "Who?"})
        json.dumps(out, allow_nan=False)
        failures = [
            (one["role"], one["hop"], one["message"])
            for one in fakes.of_role(out, "extractor")
        ]
        return [
            (found["subject"], found["sources"]) for found in out["graph"]["facts"]
        ], failures

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
    message = "mine: 2 facts dropped: no source is one of the passages to read"
    unsourced, elsewhere = (
        Triple("a", "b", "c"),
        fact("Bell", Source("elsewhere", 0, 3)),
    )
    assert facts_and_failures(unsourced, GOOD, elsewhere) == (
        [WATT],
        [("extractor", 1, message)],
    )


def test_a_source_elsewhere_is_left_out_of_a_fact_that_has_another(facts_and_failures):
    message = "mine: 1 fact accepted without one of its sources, which is none of the passages to read"
    twice = fact("Watt", Source("elsewhere", 0, 3), *GOOD.sources)
    assert facts_and_failures(twice) == ([WATT], [("extractor", 1, message)])


@pytest.mark.parametrize(
    "span", [(0, 19), (-1, 4), (9, 3), (0.5, 3), ("0", "3"), (None, None)]
)
def test_a_span_that_the_passage_does_not_have_is_left_out(facts_and_failures, span):
    message = (
        "mine: 1 fact accepted without its span: its passage has no such characters"
    )
    facts, failures = facts_and_failures(GOOD, fact("Bell", Source("Who? B", *span)))
    assert facts == [WATT, ("Bell", [source("Who? B", 0, 0)])]
    assert failures == [("extractor", 1, message)]


def test_spans_may_be_integers_of_numpy(facts_and_failures):
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


def test_each_kind_of_mistake_is_recorded_once_with_its_first_facts(ras, fakes):
    read = (
        *(Triple("", "is", f"thing {n}", GOOD.sources) for n in range(5)),
        fact("Bell", Source("x")),
    )
    out = ras("q", fakes.SUFFICIENT, extractor=Extractor(*read)).invoke(
        {"question": "Who?"}
    )
    assert [failure["message"] for failure in fakes.of_role(out, "extractor")] == [
        "mine: 5 facts dropped: a blank subject, predicate or object",
        "mine: 1 fact dropped: no source is one of the passages to read",
    ]
    detail = out["failures"][0]["detail"]
    assert [name in detail for name in ("thing 0", "thing 2", "thing 3")] == [
        True,
        True,
        False,
    ]


async def test_an_asynchronous_extractor_is_held_to_the_same(ras, fakes):
    class Asynchronous(Extractor):
        async def aextract(self, passages, subquery=""):
            return Extraction((GOOD, Triple("", "is", "a thing", GOOD.sources)))

    out = await ras(
        "q", fakes.SUFFICIENT, extractor=Asynchronous(), retriever=Retriever()
    ).ainvoke({"question": "Who?"})
    assert [found["subject"] for found in out["graph"]["facts"]] == ["Watt"]
    assert len(fakes.of_role(out, "extractor")) == 1


def test_a_fact_whose_words_are_not_in_its_passage_is_left_out_and_the_passage_is_not_read_again(
    ras, fakes
):
    class Noting(Extractor):
        def extract(self, passages, subquery=""):
            read.append([passage.id for passage in passages])
            return super().extract(passages, subquery)

    read = []
    foreign = Triple("Bell", "worked with", "Bruce Heezen", (Source("Who? A", 0, 17),))
    agent = ras(
        "q", "r", fakes.SUFFICIENT, extractor=Noting(foreign), retriever=Retriever()
    )
    out = agent.invoke({"question": "Who?"})
    assert (out["graph"]["facts"], read) == ([], [["Who? A", "Who? B"]])
    refused = [failure for failure in out["failures"] if failure["role"] == "extractor"]
    assert [(failure["hop"], failure["message"]) for failure in refused] == [
        (
            1,
            "a fact is left out, because its words are not in passage Who? A: “Bell worked with Bruce Heezen” "
            "(missing: 'Bruce Heezen')",
        )
    ]


def ids(inputs):
    return [[passage["id"] for passage in hop] for hop in read_given_passages(inputs)]


def test_seeds_belong_to_the_first_hop():
    assert ids(
        {
            "question": "Q?",
            "seed_passages": ["a", Passage("p", "b"), {"id": "d", "text": "c"}],
        }
    ) == [["given-1", "p", "d"]]


def test_five_static_passages_are_five_iterations():
    assert ids({"question": "Q?", "static_passages": list("abcde")}) == [
        [f"given-{n}"] for n in range(1, 6)
    ]


def test_static_passages_are_spread_evenly_in_order():
    assert ids(
        {"question": "Q?", "static_passages": list("abcdefg"), "static_iterations": 3}
    ) == [
        ["given-1", "given-2"],
        ["given-3", "given-4"],
        ["given-5", "given-6", "given-7"],
    ]


def test_there_are_no_more_iterations_than_passages():
    assert ids(
        {"question": "Q?", "static_passages": ["a"], "static_iterations": 5}
    ) == [["given-1"]]


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({"title": "no text"}, "'title'"),
        ({"text": 7}, "'text'"),
        (7, "got 7"),
        (None, "got None"),
    ],
)
def test_what_is_no_passage_is_named_with_its_number(wrong, cause):
    with pytest.raises(IngestError, match=says("given passage 2", cause)):
        read_given_passages({"question": "Q?", "seed_passages": ["fine", wrong]})


def test_nothing_given_is_nothing():
    assert read_given_passages({"question": "Q?"}) == []


def test_a_citation_names_the_file_and_the_page_of_its_passage(ras, fakes):
    class Answerer:
        def answer(self, question, graph, passages, steps):
            return Answer("Bell", (Citation(1, "p", file="invented.pdf"),))

    passage = Passage("p", "Bell.", metadata={"file": "docs/a.pdf", "page": 3})
    agent = ras("q", fakes.SUFFICIENT, answerer=Answerer())
    (cited,) = agent.invoke({"question": "Who?", "seed_passages": [passage]})[
        "citations"
    ]
    assert (cited["file"], cited["page"]) == ("docs/a.pdf", 3)
