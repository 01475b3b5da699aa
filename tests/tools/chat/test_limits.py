"""One limiter an endpoint: requests and tokens a minute, calls in flight, for threads and coroutines alike."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.events import WaitingForModel, emitting
from ras_agent.running.budget import Ledger
from ras_agent.tools.chat.deadline import Clock, Deadline, TryTimedOut
from ras_agent.tools.chat.http import run
from ras_agent.tools.chat.limits import (
    LastMinute,
    Limiter,
    Rates,
    ServerSilent,
    shared_limiter,
)


def limiter(time: Any, **rates: int) -> Limiter:
    return Limiter(Rates(**rates), Clock(time.now, time.sleep, time.asleep))


async def starts(limited: Limiter, time: Any, *tokens: int) -> list[float]:
    """When calls with these token counts are let through, asked for one after the other."""
    moments = []
    for count in tokens:
        async with limited.hold(count):
            moments.append(time.now())
    return moments


async def test_without_rates_nothing_waits(passing_time: Any) -> None:
    assert await starts(limiter(passing_time), passing_time, *[1000] * 50) == [0.0] * 50


async def test_requests_a_minute(passing_time: Any) -> None:
    assert await starts(
        limiter(passing_time, requests_per_minute=2), passing_time, 1, 1, 1, 1, 1
    ) == [
        0,
        0,
        60,
        60,
        120,
    ]


async def test_tokens_a_minute(passing_time: Any) -> None:
    assert await starts(
        limiter(passing_time, tokens_per_minute=100), passing_time, 60, 40, 10, 90, 1
    ) == [
        0,
        0,
        60,
        60,
        120,
    ]


async def test_a_call_above_the_tokens_of_a_minute_waits_for_an_empty_one_and_goes(
    passing_time: Any,
) -> None:
    assert await starts(
        limiter(passing_time, tokens_per_minute=100), passing_time, 10, 500, 10
    ) == [0, 60, 120]


async def test_what_a_call_really_used_replaces_its_estimate(passing_time: Any) -> None:
    limited = limiter(passing_time, tokens_per_minute=100)
    async with limited.hold(90) as booking:
        booking.tokens = 10
    assert await starts(limited, passing_time, 90) == [0]


async def test_a_pause_is_for_everybody(passing_time: Any) -> None:
    limited = limiter(passing_time)
    limited.pause(7)
    assert await starts(limited, passing_time, 1) == [7]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 80)), max_size=25))
def test_no_minute_holds_more_than_the_rates(calls: list[tuple[int, int]]) -> None:
    rates = Rates(requests_per_minute=3, tokens_per_minute=100)
    minute_before = LastMinute()
    moments: list[tuple[float, int]] = []
    now = 0.0
    deadline = Deadline.of(Ledger(), Clock(now=lambda: now))
    for gap, tokens in calls:
        now += gap
        moments.append((minute_before.book(tokens, rates, deadline, now).at, tokens))
    assert moments == sorted(moments, key=lambda moment: moment[0])
    for start, _ in moments:
        minute = [tokens for at, tokens in moments if start <= at < start + 60]
        assert len(minute) <= 3
        assert sum(minute) <= 100 or len(minute) == 1


def test_calls_in_flight_across_threads_with_an_event_loop_each(
    passing_time: Any,
) -> None:
    limited = limiter(passing_time, in_flight=2)
    meeting, inside, most, lock = (
        threading.Barrier(2, timeout=10),
        0,
        0,
        threading.Lock(),
    )

    async def call() -> None:
        nonlocal inside, most
        async with limited.hold(1):
            with lock:
                inside += 1
                most = max(most, inside)
            meeting.wait()  # two are inside together
            with lock:
                inside -= 1
            meeting.wait()

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(asyncio.run, call()) for _ in range(6)]:
            future.result()
    assert most == 2


async def test_calls_in_flight_across_coroutines_in_order(passing_time: Any) -> None:
    limited = limiter(passing_time, in_flight=1)
    order: list[str] = []

    async def call(number: int) -> None:
        async with limited.hold(1):
            order.append(f"in {number}")
            await asyncio.sleep(0)
            order.append(f"out {number}")

    await asyncio.gather(*map(call, range(3)))
    assert order == ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2"]


async def test_a_cancelled_call_gives_its_place_back(passing_time: Any) -> None:
    limited = limiter(passing_time, in_flight=1)

    async def call() -> str:
        async with limited.hold(1):
            return "done"

    async with limited.hold(1):
        waiting = asyncio.create_task(call())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        patient = asyncio.create_task(call())
        await asyncio.sleep(0)
    assert await patient == "done"


async def test_synchronous_callers_and_coroutines_share_the_slots(
    passing_time: Any,
) -> None:
    limited = limiter(passing_time, in_flight=1)

    async def tokens() -> int:
        async with limited.hold(1) as booking:
            return booking.tokens

    async with limited.hold(1):
        waiting = asyncio.create_task(asyncio.to_thread(run, tokens()))
        while not limited._waiting:
            await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting == 1


async def test_a_call_that_raises_gives_its_slot_back(passing_time: Any) -> None:
    limited = limiter(passing_time, in_flight=1)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with limited.hold(1):
                raise KeyError
    assert await starts(limited, passing_time, 1) == [0.0]


@pytest.mark.parametrize(
    "name", ["requests_per_minute", "tokens_per_minute", "in_flight"]
)
def test_rates_that_would_let_nothing_through_are_an_error(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"Rates.{name} must be positive or None, got 0"
    ):
        Rates(**{name: 0})


def test_an_endpoint_has_one_limiter_and_the_last_rates_given() -> None:
    first = shared_limiter("test-endpoint#m", Rates(requests_per_minute=5))
    assert shared_limiter("test-endpoint#m") is first
    assert first.rates.requests_per_minute == 5
    assert (
        shared_limiter(
            "test-endpoint#m", Rates(requests_per_minute=9)
        ).rates.requests_per_minute
        == 9
    )
    assert shared_limiter("other-endpoint#m") is not first


def given_up(tries: int | None = None) -> Deadline:
    return Deadline.of(Ledger("extractor"), Clock(), tries=tries)


async def time_out(limited: Limiter, *deadlines: Deadline) -> None:
    """Send a call for each deadline, and let all of them time out."""
    async with AsyncExitStack() as stack:
        for deadline in deadlines:
            await stack.enter_async_context(limited.hold(1, deadline))
        raise TryTimedOut


async def test_calls_that_time_out_together_halve_what_is_in_flight() -> None:
    limited = Limiter()
    with pytest.raises(TryTimedOut):
        await time_out(limited, *(given_up() for _ in range(5)))
    assert limited.most_in_flight == 2
    with pytest.raises(TryTimedOut):
        await time_out(limited, given_up(), given_up())
    assert limited.most_in_flight == 1


async def test_a_call_that_times_out_with_no_other_in_flight_changes_nothing() -> None:
    limited = Limiter()
    with pytest.raises(TryTimedOut):
        await time_out(limited, given_up())
    assert limited.most_in_flight == 128


async def test_a_slow_call_that_later_ones_overtook_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = Limiter()

    async def overtaken() -> None:
        async with limited.hold(1):
            # as if it came a second later
            monkeypatch.setattr("ras_agent.tools.chat.limits._TOGETHER", -1.0)
            async with limited.hold(1):
                pass
            raise TryTimedOut

    with pytest.raises(TryTimedOut):
        await overtaken()
    assert limited.most_in_flight == 128


async def test_replies_in_a_row_widen_what_was_narrowed() -> None:
    limited = Limiter()
    with pytest.raises(TryTimedOut):
        await time_out(limited, *(given_up() for _ in range(4)))
    for _ in range(20):
        async with limited.hold(1):
            assert limited.most_in_flight == 2
    assert limited.most_in_flight == 3


async def test_the_time_of_a_try_begins_when_an_earlier_call_is_replied_to() -> None:
    limited = Limiter()
    deadline = given_up()
    async with AsyncExitStack() as later:
        async with limited.hold(1):
            await later.enter_async_context(limited.hold(1, deadline))
            deadline.turn.began = 0.0
        assert deadline.turn.began > 0.0


async def test_the_time_of_a_try_goes_on_when_a_later_call_is_replied_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = Limiter()
    deadline = given_up()
    async with limited.hold(1, deadline):
        deadline.turn.began = 0.0
        monkeypatch.setattr("ras_agent.tools.chat.limits._TOGETHER", -1.0)
        async with limited.hold(1):
            pass
        assert deadline.turn.began == 0.0


async def test_a_server_that_lets_every_try_time_out_is_not_tried_again() -> None:
    limited = Limiter(Rates(in_flight=1))
    first = given_up(tries=2)
    second = given_up(tries=2)
    for deadline in (first, second):
        with pytest.raises(TryTimedOut):
            await time_out(limited, deadline)
    with pytest.raises(
        ServerSilent,
        match="let 2 tries in a row time out without any reply: raise timeout",
    ):
        await time_out(limited, first)
    with pytest.raises(TryTimedOut):  # it was first made after one of the two
        await time_out(limited, second)


async def test_a_call_that_waits_for_its_next_try_is_told_that_the_server_is_silent() -> (
    None
):
    limited = Limiter(Rates(in_flight=1))
    waiting = given_up(tries=2)
    with pytest.raises(TryTimedOut):
        await time_out(limited, waiting)

    async def again() -> None:
        async with limited.hold(1, waiting):
            raise AssertionError("it is not tried again")

    async def time_out_before(task: asyncio.Task[None]) -> None:
        async with limited.hold(1, given_up(tries=2)):
            await asyncio.sleep(0)  # until the task waits
            raise TryTimedOut

    task = asyncio.create_task(again())
    with pytest.raises(TryTimedOut):
        await time_out_before(task)
    with pytest.raises(ServerSilent):
        await task
    # it has given back no slot that it never had
    assert await starts(limited, Clock(lambda: 7.0), 1) == [7.0]


async def test_a_reply_of_any_kind_is_a_sign_of_life() -> None:
    limited = Limiter(Rates(in_flight=1))
    deadline = given_up(tries=1)
    with pytest.raises(TryTimedOut):
        await time_out(limited, deadline)
    with pytest.raises(KeyError):
        async with limited.hold(1):
            raise KeyError
    with pytest.raises(TryTimedOut):
        await time_out(limited, deadline)


async def test_a_stream_is_told_how_many_calls_of_the_run_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ras_agent.tools.chat.limits._SAY_EVERY", 0.0)
    limited = Limiter(Rates(in_flight=1))
    ledger = Ledger("extractor")
    said: asyncio.Queue[Any] = asyncio.Queue()

    async def call() -> None:
        async with limited.hold(1, Deadline.of(ledger, Clock())):
            pass

    with emitting(said.put_nowait):
        async with limited.hold(1, Deadline.of(ledger, Clock())):
            waiting = asyncio.create_task(call())
            assert await said.get() == WaitingForModel(asked=1, of=2)
    await waiting
