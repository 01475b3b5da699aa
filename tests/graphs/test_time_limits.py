"""max_seconds end a run whatever a role does: it is no longer waited for, and a failure names it."""

import asyncio
import re
import threading

import pytest

from ras_agent import Limits, create_single_shot_agent
from ras_agent.contracts.events import Hits, emit
from tests.graphs.what_failed import what_failed


class Blocked:
    """Plays any role, and does not return before the test ends."""

    def __init__(self):
        self.end = threading.Event()

    def wait(self, *args):
        self.end.wait(60)

    plan = retrieve = extract = answer = wait


class Asleep(Blocked):
    """Blocks a coroutine."""

    async def wait(self, *args):
        await asyncio.sleep(60)

    aplan = aretrieve = aextract = aanswer = wait


class Stubborn(Blocked):
    """Blocks a coroutine that ignores its cancellation."""

    async def wait(self, *args):
        while not self.end.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    aretrieve = wait


@pytest.fixture
def blocked():
    role = Blocked()
    yield role
    role.end.set()


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request):
    """run(agent): its output for a question."""

    def ask(agent):
        asked = {"question": "Who?"}
        return (
            asyncio.run(agent.ainvoke(asked)) if request.param else agent.invoke(asked)
        )

    return ask


@pytest.mark.parametrize(
    ("role", "answer"),
    [
        ("planner", "2 facts, 2 passages"),
        ("retriever", "No answer: nothing"),
        ("extractor", "0 facts, 2 passages"),
    ],
)
def test_a_role_that_does_not_return_is_named_and_not_waited_for(
    ras, blocked, run, role, answer
):
    out = run(ras("q", "b", **{role: blocked}, limits=Limits(max_seconds=0.2)))
    assert (out["answer"][: len(answer)], out["stop_reason"]) == (answer, "max_seconds")
    assert [(failure["role"], failure["message"]) for failure in what_failed(out)] == [
        (
            role,
            f"the {role} was still running when max_seconds = 0.2 were over but for the answer's part; "
            "what it finds later is dropped",
        )
    ]


@pytest.mark.parametrize("role", ["planner", "retriever", "extractor"])
def test_a_coroutine_that_does_not_return_is_cancelled(ras, role):
    agent = ras("q", "b", **{role: Asleep()}, limits=Limits(max_seconds=0.2))
    out = asyncio.run(agent.ainvoke({"question": "Who?"}))
    assert (out["stop_reason"], [failure["role"] for failure in what_failed(out)]) == (
        "max_seconds",
        [role],
    )


async def test_a_coroutine_that_ignores_its_cancellation_is_not_waited_for(ras):
    role = Stubborn()
    agent = ras("q", "b", retriever=role, limits=Limits(max_seconds=0.2))
    assert (await agent.ainvoke({"question": "Who?"}))["stop_reason"] == "max_seconds"
    role.end.set()


def test_an_answerer_that_does_not_return_ends_with_the_run(ras, blocked, run, fakes):
    out = run(
        ras("q", fakes.SUFFICIENT, answerer=blocked, limits=Limits(max_seconds=0.2))
    )
    assert (out["answer"], out["stop_reason"]) == (
        "No answer: max_seconds is used up.",
        "max_seconds",
    )
    assert [failure["role"] for failure in out["failures"]] == ["answerer"]


def test_a_graph_without_a_plan_ends_too(blocked, run):
    out = run(
        create_single_shot_agent(retriever=blocked, limits=Limits(max_seconds=0.2))
    )
    assert (out["stop_reason"], out["failures"][0]["role"]) == (
        "max_seconds",
        "retriever",
    )


def test_what_holds_the_interpreter_until_the_time_is_over_is_late_and_named(
    ras, run, fakes, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("ras_agent.graphs.node.monotonic", lambda: now[0])
    monkeypatch.setattr("ras_agent.running.budget.monotonic", lambda: now[0])
    monkeypatch.setattr("ras_agent.running.calling.monotonic", lambda: now[0])

    class Regex(fakes.EchoRetriever):
        def retrieve(self, query, k=5):
            now[0] += 300
            return super().retrieve(query, k)

    out = run(ras("q", "b", retriever=Regex(), limits=Limits(max_seconds=10)))
    assert (out["abstained"], out["stop_reason"]) == (True, "max_seconds")
    assert re.match(
        "the retriever was still running when max_seconds = 10 were over",
        out["failures"][0]["message"],
    )


def test_time_that_is_over_ends_the_loop_before_a_hop_without_facts_does(
    ras, fakes, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("ras_agent.graphs.node.monotonic", lambda: now[0])
    monkeypatch.setattr("ras_agent.running.budget.monotonic", lambda: now[0])

    class JustLate(fakes.EchoRetriever):
        def retrieve(self, query, k=5):
            now[0] += 7.75
            return []

    out = ras("q", "b", retriever=JustLate(), limits=Limits(max_seconds=10)).invoke(
        {"question": "Who?"}
    )
    assert (out["stop_reason"], out["failures"]) == ("max_seconds", [])


def test_events_of_a_role_that_is_not_waited_for_any_more_are_dropped(ras):
    ended = threading.Event()

    class Late(Blocked):
        def retrieve(self, query, k=5):
            self.end.wait(60)
            emit(Hits(1, "late", ()))
            ended.set()
            return []

    late = Late()
    agent = ras("q", "b", retriever=late, limits=Limits(max_seconds=0.2))
    events = []
    for event in agent.stream({"question": "Who?"}, stream_mode="custom"):
        if isinstance(event, Hits):  # the node's own, when it went on
            late.end.set()
            assert ended.wait(60)
            events.append(event)
    assert [event.subquery for event in events] == ["Who?"]


def test_without_max_seconds_a_role_is_called_in_the_callers_own_thread(ras, fakes):
    threads = set()

    class Noting(fakes.EchoRetriever):
        def retrieve(self, query, k=5):
            threads.add(threading.current_thread().name)
            return super().retrieve(query, k)

    ras("q", fakes.SUFFICIENT, retriever=Noting()).invoke({"question": "Who?"})
    ras(
        "q", fakes.SUFFICIENT, retriever=Noting(), limits=Limits(max_seconds=60)
    ).invoke({"question": "Who?"})
    assert "ras-agent-call" in threads
    assert len(threads) == 2
