"""Work on many items by one pool, asked for from asynchronous and from synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from ras_agent.tools.workers.pool import Here, Work, results_in_order, run_all


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


class Watched:
    """Doubles numbers; counts how many are under way, and notes whether it was closed."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.closed = False

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        try:
            yield self._do
        finally:
            self.closed = True

    async def _do(self, number: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        if number < 0:
            raise KeyError(number)
        return 2 * number


async def test_all_items_are_done_and_each_result_is_handed_on() -> None:
    found: list[int] = []

    async def end(result: int) -> None:
        found.append(result)

    pool = Watched()
    await run_all(pool, iter(range(7)), concurrency=3, on_end=end)
    assert (sorted(found), pool.most, pool.closed) == ([0, 2, 4, 6, 8, 10, 12], 3, True)


async def test_the_first_error_ends_the_rest_as_itself() -> None:
    pool, taken = Watched(), []

    def items() -> Iterator[int]:
        for number in (1, -1, *range(100)):
            taken.append(number)
            yield number

    with pytest.raises(KeyError, match="-1"):
        await run_all(pool, items(), concurrency=2)
    assert len(taken) < 10
    assert pool.closed


def test_results_come_in_the_order_of_the_items() -> None:
    async def slow_first(number: int) -> int:
        for _ in range(50 - number):
            await asyncio.sleep(0)
        return number

    assert list(results_in_order(Here(slow_first), range(50), concurrency=8)) == [
        (n, n) for n in range(50)
    ]


def test_work_goes_on_in_another_thread_while_the_caller_handles_a_result() -> None:
    at_work = threading.Event()

    async def note(number: int) -> int:
        if number == 1:
            at_work.set()
        return number

    results = results_in_order(Here(note), range(3), concurrency=1)
    next(results)
    assert at_work.wait(timeout=30)
    results.close()  # type: ignore[attr-defined]


def test_an_error_in_an_item_ends_the_iteration_and_closes_the_pool() -> None:
    pool = Watched()
    results = results_in_order(pool, [1, -1, 2], concurrency=2)
    assert next(results) == (1, 2)
    with pytest.raises(KeyError, match="-1"):
        next(results)
    assert pool.closed


def test_an_error_in_the_items_closes_the_pool() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("a bad line")

    pool = Watched()
    with pytest.raises(ValueError, match="a bad line"):
        list(results_in_order(pool, items(), concurrency=1))
    assert pool.closed


def test_a_pool_that_cannot_open_says_so_and_one_without_items_is_not_opened() -> None:
    class Broken:
        @asynccontextmanager
        async def opened(self, concurrency: int) -> AsyncIterator[Work]:
            raise OSError("no room")
            yield _double

    with pytest.raises(OSError, match="no room"):
        list(results_in_order(Broken(), [1], concurrency=1))
    assert list(results_in_order(Broken(), [], concurrency=1)) == []


async def test_less_than_one_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency must be positive, got 0"):
        await run_all(Here(_double), [1], concurrency=0)
    with pytest.raises(ValueError, match="concurrency must be positive, got 0"):
        next(results_in_order(Here(_double), [1], concurrency=0))
