"""Work spread over processes of this machine: one interpreter drives one processor core, whatever it waits for.

This process hands out the items and takes the results; each worker fills the order for itself and works on an event
loop of its own. A worker that dies ends the run; when this process dies, the workers notice it at their pipes and end.
A script that uses them needs `if __name__ == "__main__":` (see ras_agent.tools.spread.child).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from ras_agent.errors import RunError
from ras_agent.tools.spread.child import Child, in_words
from ras_agent.tools.spread.order import Do, Order

__all__ = ["Processes"]

READY = -1


class Processes:
    """A Pool of `count` processes that fill the same order."""

    def __init__(self, order: Order, count: int) -> None:
        if count < 1:
            raise ValueError(f"count must be positive, got {count}")
        self._order, self._count = order, count

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Do]:
        """Start the workers, and end them with the block. Raises RunError for one that cannot start."""
        workers = [_Worker(self._order) for _ in range(min(self._count, concurrency))]
        try:
            for told in await asyncio.gather(*(worker.ready for worker in workers), return_exceptions=True):
                if isinstance(told, BaseException):
                    raise told

            async def do(item: Any) -> Any:
                return await min(workers, key=lambda worker: len(worker.waiting)).do(item)

            yield do
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process, seen from the event loop that hands out items."""

    def __init__(self, order: Order) -> None:
        self._loop, self._child = asyncio.get_running_loop(), Child(_serve, order)
        self.ready: asyncio.Future[Any] = self._loop.create_future()
        self.waiting: dict[int, asyncio.Future[Any]] = {READY: self.ready}
        self._given = 0
        threading.Thread(target=self._listen, daemon=True).start()

    async def do(self, item: Any) -> Any:
        number, self._given = self._given, self._given + 1
        self.waiting[number] = future = self._loop.create_future()
        try:
            self._child.pipe.send((number, item))
            return await future
        except OSError as error:
            raise await asyncio.to_thread(self._child.died) from error
        finally:
            self.waiting.pop(number, None)

    def end(self) -> None:
        with suppress(OSError):
            self._child.pipe.send(None)  # the pipe cannot be closed: a thread listens at it
        self._child.bury()

    def _listen(self) -> None:
        try:
            while True:
                number, result = self._child.pipe.recv()
                self._loop.call_soon_threadsafe(self._settle, number, result)
        except (OSError, EOFError, RuntimeError):  # the pipe or the event loop is closed
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._lose)

    def _settle(self, number: int, result: Any) -> None:
        future = self.waiting.get(number)
        if future is None or future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _lose(self) -> None:
        lost = [future for future in self.waiting.values() if not future.done()]
        if lost:
            error = self._child.died()  # once: it may wait a moment
            for future in lost:
                future.set_exception(error)


def _serve(pipe: Connection, order: Order) -> None:
    """A worker's whole life."""
    try:
        work = order.fill()
    except Exception as error:
        pipe.send((READY, RunError(f"a worker process could not start: {type(error).__name__}: {error}")))
        return
    pipe.send((READY, None))
    asyncio.run(_work(pipe, work))


async def _work(pipe: Connection, work: Do) -> None:
    loop, sending, tasks = asyncio.get_running_loop(), threading.Lock(), set()
    closed = asyncio.Event()

    async def one(number: int, item: Any) -> None:
        try:
            result = await work(item)
        except Exception as error:
            result = in_words(error)
        await asyncio.to_thread(send, number, result)

    def send(number: int, result: Any) -> None:
        with sending:
            pipe.send((number, result))

    def start(number: int, item: Any) -> None:
        task = loop.create_task(one(number, item))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def listen() -> None:
        try:
            while True:
                if (given := pipe.recv()) is None:
                    break
                loop.call_soon_threadsafe(start, *given)
        except (OSError, EOFError):  # the process that hands out is gone
            pass
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=listen, daemon=True).start()
    await closed.wait()
    for task in tasks:
        task.cancel()
