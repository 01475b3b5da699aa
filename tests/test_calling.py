"""Calling a role; a cancellation that something in between took for its own."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent.running import calling
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.running.calling import (
    Queueing,
    StillRunning,
    acall,
    call,
    measured_queueing,
    noted,
    raise_if_cancelled,
    run_whole,
)


class Plain:
    def add(self, a: int, b: int) -> int:
        return a + b


class Both(Plain):
    async def aadd(self, a: int, b: int) -> int:
        return a + b + 100


async def test_a_role_without_a_coroutine_is_called_in_a_thread() -> None:
    assert await acall(Plain(), "add", 1, 2) == call(Plain(), "add", 1, 2) == 3


async def test_a_roles_own_coroutine_is_preferred() -> None:
    assert await acall(Both(), "add", 1, 2) == 103


async def test_a_swallowed_cancellation_is_raised_again() -> None:
    began = asyncio.Event()

    async def swallows() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            began.set()
            await asyncio.Event().wait()
        raise_if_cancelled()
        return "a result after all"

    task = asyncio.create_task(swallows())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_nobody_cancelled_goes_on() -> None:
    raise_if_cancelled()


async def test_under_a_time_limit_a_synchronous_role_inside_another_has_a_thread_that_nobody_waits_for() -> (
    None
):
    class Names:
        def name(self) -> str:
            return threading.current_thread().name

    assert (await acall(Names(), "name")).startswith("asyncio")
    with metered(Ledger(limits=Limits(max_seconds=60))):
        assert await acall(Names(), "name") == "ras-agent-call"


class Patient:
    """Role that says on which thread it runs, or waits for ever, and whose client may give up by itself."""

    def name(self) -> str:
        return threading.current_thread().name

    def wait(self) -> None:
        threading.Event().wait()

    def give_up(self) -> None:
        raise TimeoutError("the client's own")


class AsyncPatient:
    def __init__(self) -> None:
        self.cancelled = False

    async def await_for_ever(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def agive_up(self) -> None:
        raise TimeoutError("the client's own")


def test_without_a_limit_a_role_runs_on_its_callers_thread_and_with_one_on_a_thread_of_its_own() -> (
    None
):
    assert call(Patient(), "name") == threading.current_thread().name
    assert call(Patient(), "name", within=60.0) == "ras-agent-call"


def test_a_role_that_takes_too_long_is_waited_for_no_longer() -> None:
    with pytest.raises(StillRunning):
        call(Patient(), "wait", within=0.01)


def test_a_roles_own_timeout_is_no_limit_of_ours() -> None:
    with pytest.raises(TimeoutError, match="the client's own"):
        call(Patient(), "give_up", within=60.0)


async def test_a_synchronous_role_in_a_coroutine_is_waited_for_no_longer_either() -> (
    None
):
    assert await acall(Patient(), "name", within=60.0) == "ras-agent-call"
    with pytest.raises(StillRunning):
        await acall(Patient(), "wait", within=0.01)


async def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    role = AsyncPatient()
    with pytest.raises(StillRunning):
        await acall(role, "wait_for_ever", within=0.01)
    assert role.cancelled


async def test_a_coroutines_own_timeout_is_no_limit_of_ours() -> None:
    with pytest.raises(TimeoutError, match="the client's own"):
        await acall(AsyncPatient(), "give_up", within=60.0)


class Exhausted:
    """Takes the next of nothing."""

    def act(self) -> object:
        return next(iter(()))


@pytest.mark.parametrize("limits", [Limits(), Limits(max_seconds=30)])
async def test_a_role_in_a_thread_that_raises_stop_iteration_is_not_waited_for_for_ever(
    limits: Limits,
) -> None:
    with (
        metered(Ledger(limits=limits)),
        pytest.raises(RuntimeError, match="StopIteration"),
    ):
        await acall(Exhausted(), "act")


async def test_runs_begin_in_the_order_of_arrival_whether_or_not_those_before_them_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses, may_go_on = asyncio.Queue[float](), asyncio.Queue[None]()

    async def sleep(seconds: float) -> None:
        pauses.put_nowait(seconds)
        await may_go_on.get()

    monkeypatch.setattr(calling, "_AT_ONCE", 2)
    monkeypatch.setattr(
        calling, "asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=sleep)
    )
    turns, begun, over = calling.Turns(), asyncio.Queue[str](), asyncio.Event()

    async def work(name: str) -> None:
        async with turns.turn():
            begun.put_nowait(name)
            await over.wait()

    tasks = {
        name: asyncio.create_task(work(name)) for name in ("1", "2", "3", "gone", "4")
    }
    assert [await begun.get() for _ in range(2)] == ["1", "2"]
    assert await pauses.get() == 0.03
    tasks["gone"].cancel()
    for name in ("3", "4"):
        assert begun.empty()
        may_go_on.put_nowait(None)
        assert await begun.get() == name
    over.set()
    await asyncio.wait(tasks.values())


async def test_eight_runs_are_at_work_at_once_and_those_that_have_ended_keep_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses = list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(
        calling, "asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=sleep)
    )
    turns = calling.Turns()
    for _ in range(3):
        async with turns.turn():
            pass
    async with contextlib.AsyncExitStack() as runs:
        for _ in range(8):
            await runs.enter_async_context(turns.turn())
        assert pauses == []
        await runs.enter_async_context(turns.turn())
        assert len(pauses) == 1


@pytest.mark.parametrize(
    ("loop", "cores", "done"), [(1.0, 4, 2.0), (3.0, 4, 3.0), (3.0, None, 8.0)]
)
def test_the_work_done_is_the_event_loops_or_each_cores_share(
    monkeypatch: pytest.MonkeyPatch, loop: float, cores: int | None, done: float
) -> None:
    monkeypatch.setattr(calling, "thread_time", lambda: loop)
    monkeypatch.setattr(calling, "process_time", lambda: 8.0)
    monkeypatch.setattr(calling.os, "cpu_count", lambda: cores)
    assert calling._work_done() == done


def test_what_comes_at_the_last_moment_is_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "monotonic", lambda: 15.0)
    assert calling._in_time("bell", 10.0, within=5.0) == "bell"
    with pytest.raises(StillRunning):
        calling._in_time("bell", 9.0, within=5.0)


async def test_a_run_is_taken_to_cost_what_the_last_ones_did_and_other_work_counts_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = iter((0.0, 0.01, 100.0))
    monkeypatch.setattr(calling, "_work_done", lambda: next(done))
    turns, costs = calling.Turns(), []
    for _ in range(2):
        async with turns.turn():
            pass
        costs.append(turns._cost)
    # sums of a few floats
    assert costs == pytest.approx([0.9 * 0.03 + 0.1 * 0.01, 1.3 * 0.028], rel=1e-9)


async def test_threads_are_given_back_when_the_work_ends_and_not_before() -> None:
    threads, go_on = calling.Threads(1, 0.05), threading.Event()
    with pytest.raises(calling.StillRunning):
        await threads.run(go_on.wait)
    with pytest.raises(calling.StillRunning):
        await threads.run(int)
    go_on.set()
    while True:
        try:
            assert await threads.run(int) == 0
            return
        except calling.StillRunning:
            pass


def test_a_run_queues_while_a_call_waits_and_none_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 1.0, 3.0, 10.0, 12.0, 20.0])
    monkeypatch.setattr(calling, "perf_counter", lambda: next(now))
    queueing = Queueing()
    queueing.change(waiting=2)  # from 1
    queueing.change(waiting=-1, working=1)  # from 3 on one is at work
    queueing.change(working=-1)  # until 10
    queueing.change(waiting=-1)  # from 12 on none waits
    queueing.change()
    assert queueing.seconds == (3 - 1) + (12 - 10)


@pytest.mark.parametrize("threads", [1, 2])
async def test_a_synchronous_role_waits_for_a_thread_and_then_works(
    threads: int,
) -> None:
    states = []

    class Role:
        def read(self) -> None:
            states.append((queueing._waiting, queueing._working))

    with measured_queueing() as queueing:
        await asyncio.gather(*(acall(Role(), "read") for _ in range(threads)))
        with noted(waiting=1):
            states.append((queueing._waiting, queueing._working))
    assert all(working >= 1 for _, working in states[:-1])
    assert states[-1] == (1, 0)
    assert (queueing._waiting, queueing._working) == (0, 0)


async def _from_a_cell(coroutine: Coroutine[Any, Any, None]) -> None:
    run_whole(coroutine)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Handle SIGINT as a notebook's kernel does: a suite that a shell runs in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_a_notebooks_cell_cancels_what_it_runs() -> None:
    ended = []

    async def interrupted() -> None:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    with (
        contextlib.closing(asyncio.new_event_loop()) as loop,
        pytest.raises(KeyboardInterrupt),
    ):
        loop.run_until_complete(_from_a_cell(interrupted()))
    assert ended == ["cancelled"]
