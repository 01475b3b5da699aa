"""Facts that passages come with are taken as they are; an extractor reads the other passages."""

import pytest

from ras_agent.budget import Ledger, Limits, metered
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.records import Extraction, Failure, Passage, Source, Triple
from ras_agent.tools.kg.formats.triples import PlacedTriple
from ras_agent.tools.kg.passage_facts import knowledge_passages
from ras_agent.tools.structure.stated import StatedFirst

(BELL,) = knowledge_passages([PlacedTriple("Bell", "born in", "Edinburgh", "a.nt line 1")], "a.nt")
LEITH = Passage("leith", "Leith flows through Edinburgh.")
STATED = Triple("Bell", "born in", "Edinburgh", (Source("a.nt#bell", 0, 23, extractor="stated: a.nt line 1"),))
READ = Triple("Leith", "flows through", "Edinburgh", (Source("leith"),))


class Extractor:
    """Reads one fact in LEITH, or raises; notes what it was given."""

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


async def both_ways(extractor, passages):
    """The extraction, which has to be the same for coroutines."""
    reader = StatedFirst(extractor)
    extraction = reader.extract(passages, "Who?")
    assert await reader.aextract(passages, "Who?") == extraction
    return extraction


@pytest.mark.parametrize("kind", [Extractor, AsyncExtractor])
async def test_only_passages_that_state_nothing_are_read(kind):
    extractor = kind()
    assert await both_ways(extractor, [LEITH, BELL]) == Extraction((STATED, READ))
    assert extractor.given == [["leith"], ["leith"]]


async def test_no_extractor_is_asked_where_all_facts_are_stated():
    extractor = Extractor()
    assert await both_ways(extractor, [BELL]) == Extraction((STATED,))
    assert extractor.given == []


async def test_stated_facts_outlive_a_model_that_fails():
    failure = Failure("extractor", "ModelCallError: no reply")
    assert await both_ways(Extractor(ModelCallError("no reply")), [BELL, LEITH]) == Extraction((STATED,), (failure,))


async def test_stated_facts_outlive_a_budget_and_the_run_learns_of_its_end():
    with metered(Ledger(limits=Limits(max_llm_calls=1))) as ledger:
        assert await both_ways(Extractor(BudgetExceeded("max_llm_calls", "")), [BELL, LEITH]) == Extraction((STATED,))
    assert ledger.refused == "max_llm_calls"


@pytest.mark.parametrize(("passages", "error"), [([LEITH], ModelCallError("lost")), ([BELL, LEITH], TypeError("?"))])
def test_other_failures_are_raised(passages, error):
    with pytest.raises(type(error)):
        StatedFirst(Extractor(error)).extract(passages)


def test_it_goes_by_the_name_of_its_extractor():
    assert StatedFirst(Extractor()).name == "mine"
