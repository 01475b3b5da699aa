"""The agent as a compiled LangGraph graph: streams, batches, threads, asynchronous runs."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ras_agent.contracts.events import (
    Answered,
    AnswerToken,
    Failed,
    GraphDelta,
    Hits,
    Planned,
    Triples,
    emit,
    streaming,
)
from ras_agent.contracts.records import Answer, Plan
from ras_agent.graphs.node import _does_nothing
from ras_agent.running.budget import Limits, current_ledger
from tests.graphs.what_failed import what_failed

QUESTIONS = [{"question": f"Who is number {n}?"} for n in range(12)]


@pytest.fixture
def agent(ras, fakes):
    return ras("q", "b", "c", fakes.SUFFICIENT)


def test_it_is_a_compiled_state_graph(agent):
    assert isinstance(agent, CompiledStateGraph)


def test_its_picture_reads_as_the_loop(agent):
    lines = [line.strip() for line in agent.get_graph().draw_mermaid().splitlines()]
    assert [line for line in lines if "-->" in line or "-.->" in line] == [
        "__start__ --> begin;",
        "begin -.-> plan;",
        "begin -.-> rewrite;",
        "merge --> plan;",
        "plan -.-> answer;",
        "plan -.-> retrieve;",
        "retrieve --> structure;",
        "rewrite --> plan;",
        "structure --> merge;",
        "answer --> __end__;",
    ]


async def test_an_asynchronous_run_gives_the_same(agent, fakes):
    assert fakes.untimed(await agent.ainvoke(QUESTIONS[0])) == fakes.untimed(
        agent.invoke(QUESTIONS[0])
    )


def test_a_batch_gives_the_same_as_single_runs(agent, fakes):
    single = [fakes.untimed(agent.invoke(question)) for question in QUESTIONS]
    assert [fakes.untimed(out) for out in agent.batch(QUESTIONS)] == single


async def test_an_asynchronous_batch_gives_the_same_as_single_runs(agent, fakes):
    single = [fakes.untimed(agent.invoke(question)) for question in QUESTIONS]
    assert [fakes.untimed(out) for out in await agent.abatch(QUESTIONS)] == single


def test_one_agent_serves_many_threads_at_once(agent, fakes):
    single = [fakes.untimed(agent.invoke(question)) for question in QUESTIONS]
    with ThreadPoolExecutor(8) as threads:
        assert [
            fakes.untimed(out) for out in threads.map(agent.invoke, QUESTIONS * 4)
        ] == single * 4


def test_usage_does_not_leak_between_runs_at_once(ras, fakes):
    roles = fakes.Metered(fakes.ScriptedPlanner("q", "b", fakes.SUFFICIENT))
    outs = ras(planner=roles).batch(QUESTIONS)
    assert [out["usage"]["llm_calls"] for out in outs] == [3] * len(QUESTIONS)


class Talking:
    """An answerer that says its answer piece by piece."""

    def answer(self, question, graph, passages, steps):
        for piece in ("four", " facts"):
            emit(AnswerToken(piece))
        return Answer("four facts")


EXPECTED = [
    *(Planned, Hits, Triples, GraphDelta),
    *(Planned, Hits, Failed, GraphDelta),
    *(Planned, AnswerToken, AnswerToken, Failed, Answered),
]


@pytest.fixture
def talking(ras, fakes):
    return ras(
        "q",
        "b",
        fakes.SUFFICIENT,
        answerer=Talking(),
        extractor=fakes.SentenceExtractor({"b": OSError("x")}),
    )


def test_a_stream_of_typed_events_tells_the_run_in_order(talking):
    events = list(talking.stream({"question": "Who?"}, stream_mode="custom"))
    assert [type(event) for event in events] == EXPECTED
    assert events[0] == Planned(1, Plan("subq", "Who?"))
    assert (
        events[3].hop,
        events[3].facts,
        events[3].entities,
        len(events[3].added),
    ) == (1, 2, 3, 2)
    assert (events[-1].answer.text, events[-1].stop_reason) == (
        "four facts",
        "sufficient",
    )


async def test_the_asynchronous_stream_tells_the_same(talking):
    events = [
        event
        async for event in talking.astream({"question": "Who?"}, stream_mode="custom")
    ]
    assert events == list(talking.stream({"question": "Who?"}, stream_mode="custom"))


class Streamed:
    """An answerer that says whether events are streamed."""

    def answer(self, question, graph, passages, steps):
        return Answer(str(streaming()))


async def test_roles_know_whether_events_are_streamed(ras, fakes):
    agent, question = ras(fakes.SUFFICIENT, answerer=Streamed()), {"question": "Who?"}
    assert (
        agent.invoke(question)["answer"]
        == (await agent.ainvoke(question))["answer"]
        == "False"
    )
    assert list(agent.stream(question, stream_mode="custom"))[-1].answer.text == "True"
    assert [event async for event in agent.astream(question, stream_mode="custom")][
        -1
    ].answer.text == "True"
    assert (
        list(agent.stream(question, stream_mode=["values", "custom"]))[-1][1]["answer"]
        == "True"
    )


SEEN: list[object] = []


def _global_writer(event):
    SEEN.append(event)


@pytest.mark.parametrize(
    "writer",
    [
        *(SEEN.append, _global_writer, partial(print, file=None)),
        *(lambda event, to=SEEN.append: to(event), lambda event: event.send()),
    ],
)
def test_a_writer_that_could_reach_a_stream_is_never_taken_for_an_empty_one(writer):
    assert not _does_nothing(writer)


def test_events_and_values_stream_together(agent):
    modes = [
        mode
        for mode, _ in agent.stream(
            {"question": "Who?"}, stream_mode=["custom", "values"]
        )
    ]
    assert {"custom", "values"} == set(modes)


def test_updates_hold_only_what_a_node_added(agent):
    updates = list(agent.stream({"question": "Who?"}, stream_mode="updates"))
    assert [next(iter(update)) for update in updates[:5]] == [
        "begin",
        "plan",
        "retrieve",
        "structure",
        "merge",
    ]
    steps = [update["merge"]["steps"] for update in updates if "merge" in update]
    assert [len(step) for step in steps] == [1, 1, 1]


async def test_an_asynchronous_role_is_awaited_and_metered(ras, fakes):
    class Awaited(fakes.ScriptedPlanner):
        async def aplan(self, question, graph, steps):
            await asyncio.sleep(0)
            assert current_ledger().role == "planner"
            return fakes.SUFFICIENT

    out = await ras(planner=Awaited(RuntimeError("not the synchronous one"))).ainvoke(
        {"question": "Who?"}
    )
    assert (out["stop_reason"], what_failed(out)) == ("sufficient", [])


async def test_cancelling_an_asynchronous_run_is_no_failure_of_a_tool(ras):
    class Endless:
        def plan(self, question, graph, steps):
            raise NotImplementedError

        async def aplan(self, question, graph, steps):
            await asyncio.Event().wait()

    run = asyncio.create_task(ras(planner=Endless()).ainvoke({"question": "Who?"}))
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


class Notes(TypedDict, total=False):
    question: str
    answer: str


@dataclass(frozen=True)
class Reader:
    name: str


@pytest.mark.parametrize("context", [Reader("Ann"), {"name": "Ann"}])
def test_inside_a_graph_with_a_context_of_its_own_the_agents_limits_hold(ras, context):
    outer = StateGraph(Notes, context_schema=type(context))
    outer.add_node("research", ras("q", "b", "c", "d", limits=Limits(max_hops=2)))
    outer.add_edge(START, "research")
    out = outer.compile().invoke({"question": "Who?"}, context=context)
    assert out["answer"] == "4 facts, 4 passages"


def test_limits_as_the_outer_graphs_context_reach_the_agent_inside(ras):
    outer = StateGraph(Notes, context_schema=Limits)
    outer.add_node("research", ras("q", "b", "c", "d"))
    outer.add_edge(START, "research")
    assert (
        outer.compile().invoke({"question": "Who?"}, context={"max_hops": 1})["answer"]
        == "2 facts, 2 passages"
    )
