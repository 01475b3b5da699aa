"""A store keeps the facts that a thread has found for its next question, each user's apart."""

import asyncio
import json
import threading

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from ras_agent import (
    Trace,
    create_ircot_agent,
    create_ras_agent,
    create_single_shot_agent,
)
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.page import trace_html

ADA = {"configurable": {"user_id": "ada@example.com", "thread_id": "1"}}
BELL = Passage(
    "bell",
    "Alexander Graham Bell was born in Edinburgh, a thing.",
    "Bell",
    metadata={"team": "x"},
)
LEITH = Passage(
    "leith",
    "The Water of Leith is a thing, the main river of Edinburgh.",
    "Water of Leith",
    metadata={"team": "y"},
)


class Shelf:
    """A retriever whose passages a test changes."""

    def __init__(self, *passages):
        self.passages = passages

    def retrieve(self, query, k=5, filter=None):
        admitted = [
            one for one in self.passages if filter is None or filter.matches(one)
        ]
        return [Hit(passage, 1.0) for passage in admitted[:k]]


class Reading:
    """A planner that writes down the graph that it is shown, and follows its script."""

    def __init__(self, planner):
        self.planner, self.shown = planner, []

    def plan(self, question, graph, steps):
        self.shown.append([str(fact) for fact in graph.facts])
        return self.planner.plan(question, graph, steps)


@pytest.fixture
def agent(ras, fakes):
    """agent(*passages): one over a store of its own."""

    def build(*passages, store=None, **roles):
        planner = Reading(fakes.ScriptedPlanner("q", fakes.SUFFICIENT))
        roles = {"planner": planner, "retriever": Shelf(*passages), **roles}
        made = ras(store=InMemoryStore() if store is None else store, **roles)
        return made, planner, roles["retriever"]

    return build


def sources(out):
    return {
        (source["passage_id"], source["hop"])
        for fact in out["graph"]["facts"]
        for source in fact["sources"]
    }


def test_facts_of_earlier_turns_are_in_the_next_questions_graph(agent):
    made, planner, shelf = agent(BELL)
    made.invoke({"question": "Where was Bell born?"}, ADA)
    shelf.passages = (LEITH,)
    out = made.invoke({"question": "Which river is there?"}, ADA)
    assert planner.shown[2] == ["(S> bell | P> is | O> a thing)"]
    assert sources(out) == {("bell", 0), ("leith", 1)}
    assert list(out["passages"]) == ["bell", "leith"]
    assert {fact["sources"][0]["subquery"] for fact in out["graph"]["facts"]} == {
        "Where was Bell born?",
        "Which river is there?",
    }
    assert json.loads(json.dumps(out)) == out
    assert "Which river is there?" in trace_html(Trace.from_state(out, "ras"))


@pytest.mark.parametrize(
    "other",
    [
        {"user_id": "eve@example.com", "thread_id": "1"},
        {"user_id": "ada@example%2Ecom", "thread_id": "1"},
        {"thread_id": "1"},
        {"user_id": "ada@example.com", "thread_id": "2"},
    ],
)
def test_nobody_else_sees_them(agent, other):
    made, planner, _ = agent(BELL)
    made.invoke({"question": "Where was Bell born?"}, ADA)
    made.invoke({"question": "Where was Bell born?"}, {"configurable": other})
    assert planner.shown[2] == []


def test_the_filter_of_a_run_holds_for_what_is_remembered(agent):
    made, planner, _ = agent(BELL, LEITH)
    made.invoke({"question": "Where was Bell born?"}, ADA)
    out = made.invoke(
        {"question": "Which river is there?", "filter": {"team": "y"}}, ADA
    )
    assert planner.shown[2] == ["(S> leith | P> is | O> a thing)"]
    assert list(out["passages"]) == ["leith"]


def test_a_fact_that_is_found_again_counts_as_new_to_the_question(agent):
    made, _, _ = agent(BELL)
    made.invoke({"question": "Where was Bell born?"}, ADA)
    out = made.invoke({"question": "And when?"}, ADA)
    assert [len(step["new_triple_ids"]) for step in out["steps"]] == [1]
    assert "recalled" not in out["passages"]["bell"]


def test_a_passage_that_has_changed_is_read_anew(agent, fakes):
    made, _, shelf = agent(BELL)
    made.invoke({"question": "Where was Bell born?"}, ADA)
    shelf.passages = (Passage("bell", "Bell was born in London, a thing.", "Bell"),)
    out = made.invoke({"question": "Where was Bell born, really?"}, ADA)
    assert out["passages"]["bell"]["text"] == "Bell was born in London, a thing."
    assert (sources(out), fakes.of_role(out, "store")) == ({("bell", 1)}, [])


def test_without_a_thread_the_error_says_what_to_name(agent):
    made, _, _ = agent(BELL)
    with pytest.raises(SettingsError, match=r'"thread_id": "\.\.\."'):
        made.invoke({"question": "Where was Bell born?"})


def test_a_store_that_fails_costs_its_facts_only(agent, fakes):
    class Down(InMemoryStore):
        def get(self, *args, **kwargs):
            raise ConnectionError("no store")

        def put(self, *args, **kwargs):
            raise ConnectionError("no store")

    made, _, _ = agent(BELL, store=Down())
    out = made.invoke({"question": "Where was Bell born?"}, ADA)
    assert out["answer"] == "1 facts, 1 passages"
    assert len(fakes.of_role(out, "store")) == 2


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_store_that_hangs_costs_its_facts_and_a_moment(
    agent, fakes, asynchronous, monkeypatch
):
    back = threading.Event()

    class Hangs(InMemoryStore):
        def get(self, *args, **kwargs):
            back.wait()

        async def aget(self, *args, **kwargs):
            await asyncio.Event().wait()

        def put(self, *args, **kwargs):
            pass

        async def aput(self, *args, **kwargs):
            pass

    monkeypatch.setattr("ras_agent.graphs.node._OF_STORE", 0.5)
    made, _, _ = agent(BELL, store=Hangs())
    asked = {"question": "Where was Bell born?"}
    try:
        out = (
            asyncio.run(made.ainvoke(asked, ADA))
            if asynchronous
            else made.invoke(asked, ADA)
        )
    finally:
        back.set()
    assert out["answer"] == "1 facts, 1 passages"
    (failure,) = fakes.of_role(out, "store")
    assert failure["message"] == (
        "the store did not answer within 0.5 s: this thread's earlier facts are left out"
    )


@pytest.mark.parametrize(
    "value",
    [{"graph": 1}, {"passages": []}, {"passages": {"a": 1}, "graph": {"facts": []}}],
)
def test_what_is_no_graph_is_reported(agent, fakes, value):
    store = InMemoryStore()
    store.put(("ras_agent", "user ada@example%2Ecom", "thread 1"), "graph", value)
    made, _, _ = agent(BELL, store=store)
    out = made.invoke({"question": "Where was Bell born?"}, ADA)
    assert out["answer"] == "1 facts, 1 passages"
    (failure,) = fakes.of_role(out, "store")
    assert "item in the store is not a graph" in failure["message"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_on_disk_is_read_by_the_next_process(agent, kind, request, tmp_path):
    def opened():
        if kind == "sqlite":
            return SqliteStore.from_conn_string(str(tmp_path / "store.sqlite"))
        return PostgresStore.from_conn_string(request.getfixturevalue("postgres"))

    shown = []
    for _ in range(2):
        with opened() as store:
            store.setup()
            made, planner, _ = agent(BELL, store=store)
            made.invoke({"question": "Where was Bell born?"}, ADA)
            shown.append(planner.shown[0])
    assert shown == [[], ["(S> bell | P> is | O> a thing)"]]


async def test_asynchronous_runs_remember_too(agent):
    made, planner, _ = agent(BELL)
    await made.ainvoke({"question": "Where was Bell born?"}, ADA)
    await made.ainvoke({"question": "And when?"}, ADA)
    assert planner.shown[2] == ["(S> bell | P> is | O> a thing)"]


@pytest.mark.parametrize(
    "create", [create_ras_agent, create_ircot_agent, create_single_shot_agent]
)
def test_every_graph_remembers(create):
    made = create(index=[BELL, LEITH], store=InMemoryStore())
    made.invoke({"question": "Where was Alexander Graham Bell born?"}, ADA)
    out = made.invoke({"question": "Which river is the main river of Edinburgh?"}, ADA)
    assert (out["answer"], out["failures"]) == ("Water of Leith", [])
    assert ("bell", 0) in sources(out)
