"""How long a silent database is waited for, and when it counts as silent."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ras_agent.running import silence
from ras_agent.running.checkpoints import aopen_checkpointer, prober
from ras_agent.running.silence import impatient
from tests.stalling_proxy import stalling


class Clock:
    """Clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Connection:
    """Connection whose statement is looked at by the test itself."""

    def __init__(self) -> None:
        self.pgconn = SimpleNamespace(backend_pid=1, finish=lambda: None)

    def wait(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        return gen


def _statement() -> Generator[int, int, str]:
    while not (yield 1):
        pass
    return "done"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(silence, "monotonic", clock)
    return clock


def test_a_pause_of_the_process_is_no_silence_of_the_server(clock: Clock) -> None:
    pytest.importorskip("psycopg")
    looks: Any = impatient(Connection)().wait(_statement())
    next(looks)
    clock.now += 60
    looks.send(0)
    with pytest.raises(StopIteration, match="done"):
        looks.send(1)


def test_looks_without_a_byte_add_up_to_silence(clock: Clock) -> None:
    from psycopg import OperationalError

    looks: Any = impatient(Connection)().wait(_statement())
    next(looks)
    for _ in range(50):
        clock.now += 0.1
        looks.send(0)
    clock.now += 0.2
    with pytest.raises(OperationalError, match="did not answer for 5 seconds"):
        looks.send(0)


def test_a_cancelled_statement_at_a_silent_server_ends_soon(postgres: str) -> None:
    from psycopg import AsyncConnection

    async def cancelled() -> None:
        with stalling(postgres) as (proxy, through):
            connection: Any = await impatient(AsyncConnection).connect(through)
            proxy.stall()
            statement = asyncio.create_task(connection.execute("SELECT 1"))
            await asyncio.sleep(0)
            while connection.pgconn.transaction_status == 0:
                await asyncio.sleep(0)
            statement.cancel()
            async with asyncio.timeout(4):  # psycopg itself gives it ten seconds
                await asyncio.wait({statement})
            assert connection.closed

    asyncio.run(cancelled())


def test_the_threads_answer_who_asks_for_them_while_a_run_writes(postgres: str) -> None:
    async def probe() -> None:
        async with (
            aopen_checkpointer(f"postgres:{postgres}") as saver,
            cast("Any", saver).lock,
        ):
            asked = prober(saver).aget_tuple({"configurable": {"thread_id": "ready"}})
            assert await asyncio.wait_for(asked, 60) is None

    asyncio.run(probe())
