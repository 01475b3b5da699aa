"""A question for a date: later passages and facts of other times are left out, in every retriever and for any role."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent.config.filters import Filter, as_of_filter
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.graphs.single_shot import create_single_shot_agent
from ras_agent.question_graph.times import (
    as_of,
    facts_at,
    time_asked,
    without_as_of,
    year_of,
)
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.linked_graph import graph_of
from ras_agent.tools.retrieve.registered import retriever_over
from tests.tools.retrieve.test_ppr import built

OFFICE = "The head office of Korl Works is in "
TEXTS = [
    {"text": f"{OFFICE}Varn.", "file": "a.md", "date": "2016-05-01"},
    {"text": f"{OFFICE}Pellis.", "file": "b.md", "date": "2024-03-02"},
]
DIRECTORS = [
    Passage("brenn", "Ada Brenn was director of the Aune Museum from 2012 to 2018."),
    Passage("vell", "Tom Vell has been director of the Aune Museum since 2018."),
]
WHERE = "Where is the head office of Korl Works?"
WHO = "Who is the director of the Aune Museum?"


@pytest.fixture(scope="module")
def museum(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """An index with a graph, in which two directors follow each other."""
    return built(tmp_path_factory.mktemp("museum") / "index", DIRECTORS)


@pytest.mark.parametrize("retriever", ["bm25", "ppr", "paths"])
def test_what_was_said_later_is_not_found(retriever: str, tmp_path: Any) -> None:
    passages = [Passage(one["file"], one["text"], metadata=one) for one in TEXTS]
    index = built(tmp_path / "index", passages)
    agent = create_ras_agent(index=index, retriever=retriever)
    out = agent.invoke({"question": WHERE, "as_of": "2020-01-01"})
    assert (out["answer"], out["disputes"]) == ("Varn", [])
    assert [one["metadata"]["file"] for one in out["passages"].values()] == ["a.md"]
    later = agent.invoke({"question": WHERE, "as_of": "2024-03"})
    assert len(later["disputes"]) == 1


@pytest.mark.parametrize(
    ("date", "answer"), [("2014", "Ada Brenn"), ("2020-06-01", "Tom Vell")]
)
def test_facts_of_other_times_are_left_out(date: str, answer: str) -> None:
    agent = create_ras_agent(index=DIRECTORS)
    out = agent.invoke({"question": WHO, "as_of": date})
    assert out["answer"] == answer
    assert {fact["subject"] for fact in out["graph"]["facts"]} == {answer}


@pytest.mark.parametrize("retriever", ["ppr", "paths", "pcst", "neighbours"])
@pytest.mark.parametrize(("date", "known"), [("2014", "brenn"), ("2020", "vell")])
def test_a_walk_over_the_graph_leaves_out_facts_of_other_times(
    retriever: str, date: str, known: str, museum: PassageIndex
) -> None:
    search = retriever_over(museum, retriever)
    hits = search.retrieve("Aune Museum", 1, filter=as_of_filter(date))
    assert [hit.passage_id for hit in hits] == [known]


def test_a_graph_of_a_date_has_the_facts_that_may_hold_then(
    museum: PassageIndex,
) -> None:
    graph = graph_of(museum.within(as_of_filter("2014")))
    assert {graph.triple(edge).subject for edge in graph.facts} == {"Ada Brenn"}
    undated = graph_of(museum.within({"date": {"exists": False}}))
    assert len(undated.facts) > len(graph.facts)


def test_planner_and_answerer_are_told_the_date_and_the_search_is_not(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"when": "You answer questions", "reply": "Answer: Ada Brenn [1]"}
    )
    agent = create_single_shot_agent(
        index=DIRECTORS,
        settings=Settings(answerer=scripted_llm.spec, extractor="offline"),
    )
    out = agent.invoke({"question": WHO, "as_of": "2014"})
    assert out["question"] == f"{WHO} (as of 2014)"
    assert out["asked"] == WHO
    assert out["steps"][0]["subquery"] == WHO
    (request,) = scripted_llm.requests()
    assert f"{WHO} (as of 2014)" in request["messages"][-1]["content"]


def test_the_next_question_of_a_thread_has_no_date() -> None:
    agent = create_ras_agent(index=DIRECTORS, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"question": WHO, "as_of": "2014"}, thread)
    out = agent.invoke({"question": WHO}, thread)
    assert (out["question"], out["answer"]) == (WHO, "Tom Vell")


@pytest.mark.parametrize("date", ["yesterday", "2016-13", "", 2016, "2016-05-01T10:00"])
def test_another_date_is_told(date: object) -> None:
    agent = create_ras_agent(index=DIRECTORS)
    with pytest.raises(FilterError, match="as_of must be a date such as '2016'"):
        agent.invoke({"question": WHO, "as_of": date})


@pytest.mark.parametrize(
    ("until", "date", "is_in"),
    [
        ("2016", "2016-12-31", True),
        ("2016", "2017-01-01", False),
        ("2016-02", "2016-02-29", True),
        ("2016-02", "2016-03-01", False),
        ("2016-12", "2016-12-31", True),
        ("2016-05-01", "2016-05-01T23:00:00", True),
        ("2016-05-01", "2016-05-02", False),
        ("2016", "2016", True),
        ("2016", "some day", True),
    ],
)
def test_a_passage_of_the_day_month_or_year_itself_stays(
    until: str, date: str, is_in: bool
) -> None:
    passage = Passage("p", "?", metadata={"date": date})
    assert Filter.of(as_of_filter(until)).matches(passage) == is_in


def test_a_passage_without_a_date_stays() -> None:
    assert Filter.of({"date": {"until": "2016"}}).matches(Passage("p", "?"))


def test_the_last_year_of_a_period_is_outside_of_it() -> None:
    ada = Triple("Ada", "was", "director", (Source("brenn", 0, 60),))
    passages = {one.id: one for one in DIRECTORS}
    assert facts_at([ada], passages, "2017-12-31") == [ada]
    assert facts_at([ada], passages, "2018") == []


def test_a_fact_that_holds_somewhere_or_says_no_time_stays() -> None:
    both = Triple("A", "was", "b", (Source("brenn", 0, 60), Source("vell", 0, 56)))
    passages = {one.id: one for one in DIRECTORS}
    assert facts_at([both], passages, "2020") == [both]
    assert facts_at([Triple("A", "is", "b")], {}, "2020") == [Triple("A", "is", "b")]


def test_dates_of_attributes_are_periods_too() -> None:
    dates = {"valid_from": "2012-06", "valid_until": "2018"}
    fact = Triple("A", "is", "b", attributes=dates)
    held = [date for date in ("2012", "2013", "2018") if facts_at([fact], {}, date)]
    assert held == ["2013"]
    odd = Triple("A", "is", "b", attributes={"valid_from": "long ago"})
    assert facts_at([odd], {}, "1900") == [odd]


def test_a_question_with_a_date_is_read_back() -> None:
    dated = as_of(WHO, "2016-07")
    assert (without_as_of(dated), time_asked(dated)) == (WHO, pytest.approx(2016.5))
    assert as_of(dated, "2017") == f"{WHO} (as of 2017)"
    assert time_asked(WHO) is None
    assert year_of("2016-01-01") == 2016
