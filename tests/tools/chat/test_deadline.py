"""A run's time ends its model calls too, however patient the model's client is."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from ras_agent import create_single_shot_agent
from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.records import Passage
from ras_agent.graphs import node
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.prompts import Turn
from ras_agent.running import budget
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.tools.chat.cache import SingleFlight
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.deadline import Clock, Deadline, TryTimedOut
from ras_agent.tools.chat.limits import Limiter, Rates

REQUEST = Request((Turn("user", "Who?"),))
BELL = [
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    )
]

Complete = Callable[[Chat, Request], Awaitable[Reply]]


async def _sync(chat: Chat, request: Request) -> Reply:
    return chat.complete(request)


async def _async(chat: Chat, request: Request) -> Reply:
    return await chat.acomplete(request)


@pytest.fixture(params=[_sync, _async], ids=["sync", "async"])
def complete(request: pytest.FixtureRequest) -> Complete:
    chosen: Complete = request.param
    return chosen


def ledger_of(seconds: float, role: str = "planner") -> Ledger:
    return Ledger(role, limits=Limits(max_seconds=seconds))


@pytest.mark.parametrize(
    "on_text", [None, lambda text: None], ids=["whole", "streamed"]
)
async def test_a_call_ends_when_the_runs_time_is_over(
    scripted_llm: Any, complete: Complete, on_text: Callable[[str], None] | None
) -> None:
    scripted_llm.script({"hang": True})
    with (
        metered(ledger_of(0.3)) as ledger,
        pytest.raises(BudgetExceeded, match=r"^max_seconds = 0\.3 is used up$"),
    ):
        await complete(
            as_chat(scripted_llm.spec, ChatSettings(timeout=90.0)),
            Request(REQUEST.turns, on_text),
        )
    assert (ledger.refused, ledger.calls) == ("max_seconds", [])
    assert ledger._reserved.calls == 0


async def test_an_answer_ends_when_the_runs_time_is_over_and_a_call_of_the_loop_earlier(
    scripted_model: Any, settings: ChatSettings, complete: Complete
) -> None:
    limits, started = Limits(max_seconds=100), time.monotonic() - 80
    with metered(Ledger("answerer", limits=limits, started=started)):
        assert (
            await complete(as_chat(scripted_model("Bell."), settings), REQUEST)
        ).text == "Bell."
    with (
        metered(Ledger("planner", limits=limits, started=started)),
        pytest.raises(BudgetExceeded),
    ):
        await complete(as_chat(scripted_model("Bell."), settings), REQUEST)


async def test_errors_of_the_model_are_what_they_are_without_a_limit(
    scripted_model: Any, settings: ChatSettings, complete: Complete
) -> None:
    with metered(ledger_of(3600)):
        model = scripted_model(TimeoutError("slow"), "at last")
        assert (await complete(as_chat(model, settings), REQUEST)).text == "at last"
        with pytest.raises(
            ModelCallError, match="failed after 1 try: KeyError: 'choices'"
        ):
            await complete(
                as_chat(scripted_model(KeyError("choices")), settings), REQUEST
            )


async def test_a_wait_between_tries_ends_with_the_run(
    scripted_model: Any, settings: ChatSettings, passing_time: Any, complete: Complete
) -> None:
    model = scripted_model(TimeoutError(), TimeoutError(), "too late")
    patient = replace(settings, retry=replace(settings.retry, first_wait=8.0))
    chat = Chat(model, settings=patient, limiter=Limiter(clock=settings.clock))
    with metered(ledger_of(10, "answerer")), pytest.raises(BudgetExceeded):
        await complete(chat, REQUEST)
    assert [round(wait) for wait in passing_time.waits] == [8, 2]
    assert len(model.prompts) == 2


async def test_a_turn_that_the_rates_put_beyond_the_run_is_not_waited_for(
    scripted_model: Any, settings: ChatSettings, passing_time: Any, complete: Complete
) -> None:
    limiter = Limiter(Rates(requests_per_minute=1), settings.clock)
    chat = Chat(scripted_model("a", "b"), settings=settings, limiter=limiter)
    with metered(ledger_of(30)) as ledger:
        await complete(chat, REQUEST)
        with pytest.raises(BudgetExceeded):
            await complete(chat, REQUEST)
    assert (ledger.refused, len(ledger.calls), passing_time.waits) == (
        "max_seconds",
        1,
        [],
    )
    await complete(chat, REQUEST)  # the turn that was not taken is another's
    assert passing_time.waits == [60.0]


async def test_a_slot_is_not_waited_for_beyond_the_run(
    scripted_model: Any, complete: Complete
) -> None:
    limiter = Limiter(Rates(in_flight=1))
    chat = Chat(scripted_model("a"), limiter=limiter)
    async with limiter.hold(1):
        with metered(ledger_of(0.05)), pytest.raises(BudgetExceeded):
            await complete(chat, REQUEST)
    assert (await complete(chat, REQUEST)).text == "a"


async def test_another_runs_equal_request_is_not_waited_for_beyond_the_run() -> None:
    in_flight: SingleFlight[str] = SingleFlight()
    in_flight.join("key")
    ahead = in_flight.join("key")
    assert ahead is not None
    with pytest.raises(BudgetExceeded):
        await Deadline.of(ledger_of(0.05), Clock()).wait(
            asyncio.shield(asyncio.wrap_future(ahead))
        )
    in_flight.finish("key", "a reply")  # the future is whole


async def test_a_result_that_is_there_is_taken_however_late() -> None:
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done.set_result("in time")
    assert await Deadline(ledger_of(5), Clock(), float("-inf")).wait(done) == "in time"


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(max_seconds=1e300), Limits(max_seconds=float("inf"))]
)
async def test_without_a_limit_or_with_an_endless_one_nothing_is_timed(
    limits: Limits,
) -> None:
    async with Deadline.of(Ledger("planner", limits=limits), Clock()).one_try():
        await asyncio.sleep(0)


async def test_a_try_that_takes_longer_than_a_try_may_can_be_repeated() -> None:
    with pytest.raises(
        TryTimedOut, match=r"^the reply was not complete within 0\.01 seconds$"
    ):
        async with Deadline.of(ledger_of(5), Clock(), a_try=0.01).one_try():
            await asyncio.Event().wait()


async def test_the_time_of_a_try_begins_again_with_its_turn_at_the_server() -> None:
    deadline = Deadline.of(ledger_of(60), Clock(), a_try=0.01)
    async with deadline.one_try():
        deadline.turn.began += 60.0
        await asyncio.sleep(0.05)


async def test_no_try_begins_when_the_run_is_over() -> None:
    ledger = ledger_of(5)
    with pytest.raises(BudgetExceeded):
        async with Deadline(ledger, Clock(), float("-inf")).one_try():
            raise AssertionError
    assert ledger.refused == "max_seconds"


async def test_a_timeout_of_the_models_own_passes_through_a_try() -> None:
    with pytest.raises(TimeoutError, match="the client's"):
        async with Deadline.of(ledger_of(5), Clock(), a_try=5).one_try():
            raise TimeoutError("the client's")


class ShortLoop(Limits):
    """Limits under which the loop is soon over, and an answer has its time however busy the machine is."""

    @property
    def loop_seconds(self) -> float:
        return 0.5


@pytest.fixture
def time_from_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run's time begin with its first model call, and its clean-up take a minute for that."""
    began: list[float] = []

    def now() -> float:
        return time.monotonic() - began[0] if began else 0.0

    def begin(*arguments: Any) -> Deadline:
        began.append(time.monotonic())
        return deadline_of(*arguments)

    deadline_of = Deadline.of
    monkeypatch.setattr(Deadline, "of", begin)
    for module in (budget, node):
        monkeypatch.setattr(module, "monotonic", now)
    monkeypatch.setattr(node, "_TO_HAND_OVER", 60.0)
    monkeypatch.setattr(node, "_AT_LEAST", 60.0)


@pytest.mark.usefixtures("time_from_the_call")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_planner_that_hangs_ends_the_loop_and_not_the_run(
    scripted_llm: Any, asynchronous: bool
) -> None:
    scripted_llm.script({"hang": True, "repeat": True})
    limits = ShortLoop(max_seconds=600)
    agent = create_ras_agent(
        planner=scripted_llm.spec, extractor="offline", index=BELL, limits=limits
    )
    asked = {"question": "Where was Alexander Graham Bell born?"}
    out = asyncio.run(agent.ainvoke(asked)) if asynchronous else agent.invoke(asked)
    assert (out["answer"], out["stop_reason"], out["failures"]) == (
        "Edinburgh",
        "max_seconds",
        [],
    )


@pytest.mark.usefixtures("time_from_the_call")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_extractor_that_hangs_says_which_passage_it_did_not_read(
    scripted_llm: Any, asynchronous: bool
) -> None:
    scripted_llm.script({"hang": True, "repeat": True})
    agent = create_single_shot_agent(
        extractor=scripted_llm.spec, index=BELL, limits=ShortLoop(max_seconds=600)
    )
    asked = {"question": "Where was Alexander Graham Bell born?"}
    out = asyncio.run(agent.ainvoke(asked)) if asynchronous else agent.invoke(asked)
    assert out["stop_reason"] == "max_seconds"
    assert [failure["message"] for failure in out["failures"]] == [
        "max_seconds = 600 is used up (passage bell)"
    ]
