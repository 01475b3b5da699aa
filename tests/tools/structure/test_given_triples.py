"""Facts that passages come with are taken as they are; an extractor reads the other passages."""

import asyncio

import pytest

from ras_agent import Limits, Passage, Plan, create_ras_agent
from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.records import Extraction, Hit, Source, Triple
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.passage_facts import knowledge_passages
from ras_agent.tools.structure.given_triples import given_triples

(BELL,) = knowledge_passages(
    [PlacedTriple("Bell", "born in", "Edinburgh", "a.nt line 1")], "a.nt"
)
LEITH = Passage("leith", "Leith flows through Edinburgh.")
GIVEN = Triple(
    "Bell",
    "born in",
    "Edinburgh",
    (Source("a.nt#bell", 0, 23, extractor="stated: a.nt line 1"),),
)
READ = Triple("Leith", "flows through", "Edinburgh", (Source("leith"),))


class Extractor:
    """Reads one fact in LEITH, or raises; notes its input."""

    name = "mine"

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.given = error, []

    def extract(self, passages, subquery=""):
        self.given.append([passage.id for passage in passages])
        if self.error:
            raise self.error
        return Extraction((READ,))


class AsyncExtractor(Extractor):
    async def aextract(self, passages, subquery=""):
        return self.extract(passages, subquery)


class OneHop:
    """Planner and retriever of one hop that finds `passages`."""

    def __init__(self, passages):
        self.passages = passages

    def plan(self, question, graph, steps):
        return Plan("sufficient") if steps else Plan("subq", question)

    def retrieve(self, query, k=5):
        return [Hit(passage, 1.0) for passage in self.passages]


def both_ways(extractor, passages):
    """The output of one hop, which has to be the same for coroutines."""
    loop = OneHop(passages)
    agent = create_ras_agent(
        planner=loop, retriever=loop, extractor=extractor, limits=Limits(max_hops=1)
    )
    out, again = (
        agent.invoke({"question": "Who?"}),
        asyncio.run(agent.ainvoke({"question": "Who?"})),
    )
    for timed in (out, again):
        timed["seconds"], timed["steps"] = (
            0,
            [{**step, "seconds": 0} for step in timed["steps"]],
        )
    assert again == out
    return out


def facts(out):
    return [
        (fact["subject"], fact["sources"][0]["extractor"])
        for fact in out["graph"]["facts"]
    ]


def failures(out):
    return [(failure["role"], failure["message"]) for failure in out["failures"]]


def test_passages_are_parted_by_whether_they_come_with_triples():
    assert given_triples([LEITH, BELL]) == ((GIVEN,), [LEITH])


@pytest.mark.parametrize("kind", [Extractor, AsyncExtractor])
def test_only_passages_that_come_with_no_triples_are_read(kind):
    extractor = kind()
    assert facts(both_ways(extractor, [LEITH, BELL])) == [
        ("Bell", "stated: a.nt line 1"),
        ("Leith", "mine"),
    ]
    assert extractor.given == [["leith"], ["leith"]]


def test_no_extractor_is_asked_where_all_triples_are_given():
    extractor = Extractor()
    assert facts(both_ways(extractor, [BELL])) == [("Bell", "stated: a.nt line 1")]
    assert extractor.given == []


@pytest.mark.parametrize(
    "error", [ModelCallError("no reply"), OSError("lost"), ValueError("what?")]
)
def test_given_triples_outlive_an_extractor_that_fails(error):
    out = both_ways(Extractor(error), [BELL, LEITH])
    assert facts(out) == [("Bell", "stated: a.nt line 1")]
    assert failures(out) == [("extractor", f"{type(error).__name__}: {error}")]


def test_given_triples_outlive_a_budget_and_the_run_learns_of_its_end():
    out = both_ways(Extractor(BudgetExceeded("max_llm_calls", "")), [BELL, LEITH])
    assert (facts(out), out["stop_reason"]) == (
        [("Bell", "stated: a.nt line 1")],
        "max_llm_calls",
    )


def test_without_given_triples_a_failure_leaves_no_fact():
    out = both_ways(Extractor(ModelCallError("lost")), [LEITH])
    assert (facts(out), failures(out)) == ([], [("extractor", "ModelCallError: lost")])


def test_a_mistake_in_code_is_raised():
    with pytest.raises(TypeError, match="mine is broken"):
        both_ways(Extractor(TypeError("mine is broken")), [BELL, LEITH])
