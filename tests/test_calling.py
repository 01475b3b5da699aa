"""Calling a role; a cancellation that something in between took for its own."""

import asyncio
import contextlib

import pytest

from ras_agent.budget import Ledger, Limits, metered
from ras_agent.calling import acall, call, raise_if_cancelled


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


async def test_under_a_time_limit_a_synchronous_role_inside_another_has_a_thread_that_nobody_waits_for() -> None:
    import threading

    class Names:
        def name(self) -> str:
            return threading.current_thread().name

    assert (await acall(Names(), "name")).startswith("asyncio")
    with metered(Ledger(limits=Limits(max_seconds=60))):
        assert await acall(Names(), "name") == "ras-agent-call"
