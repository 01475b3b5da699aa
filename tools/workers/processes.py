"""Distributes work over processes of this machine, since one Python interpreter uses only one processor core.

This process hands out the items and takes the results; each worker builds the work for itself and runs it on its own
event loop. A worker that dies ends the run. No worker outlives this process: a worker ends when its pipe closes, even
if this process is killed.

Workers are spawned, so each imports the main module again. A script that starts workers must therefore do so under `if
__name__ == "__main__":`; otherwise its workers would start workers, which Python detects and stops.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from ras_agent.contracts.errors import ModelRefused, RunError
from ras_agent.tools.workers.pool import Work, WorkSpec

_READY = -1  # the item number of a worker's first message, that it is ready


class Processes:
    """Runs work in `count` processes, each of which builds the same work."""

    def __init__(self, spec: WorkSpec, count: int) -> None:
        """Take the work and the number of processes. Raises ValueError if it is below 1."""
        if count < 1:
            raise ValueError(f"count must be positive, got {count}")
        self._spec = spec
        self._count = count

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        """Return a context manager that starts the processes for its block. Raises RunError if one cannot start."""
        workers = [_Worker(self._spec) for _ in range(min(self._count, concurrency))]
        try:
            for started in await asyncio.gather(
                *(worker.ready for worker in workers), return_exceptions=True
            ):
                if isinstance(started, BaseException):
                    raise started

            async def do(item: Any) -> Any:
                return await min(workers, key=lambda worker: len(worker.waiting)).do(
                    item
                )

            yield do
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """Starts a worker process, sends it items and receives their results, on the event loop that hands out items."""

    def __init__(self, spec: WorkSpec) -> None:
        # not forked, since a fork copies locks that other threads hold
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(theirs, spec), daemon=True)
        self._process.start()
        theirs.close()
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Any] = self._loop.create_future()
        self.waiting: dict[int, asyncio.Future[Any]] = {_READY: self.ready}
        self._next_number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    async def do(self, item: Any) -> Any:
        """Send an item and return its result. Raises RunError if the worker died, or the error that the item raised."""
        number = self._next_number
        self._next_number = self._next_number + 1
        self.waiting[number] = future = self._loop.create_future()
        try:
            self._pipe.send((number, item))
            return await future
        except OSError as error:
            raise await asyncio.to_thread(self._died) from error
        finally:
            self.waiting.pop(number, None)

    def end(self) -> None:
        """Ask the process to end and wait for it; kill it after two seconds."""
        with suppress(OSError):
            self._pipe.send(None)  # not by closing the pipe, as a thread listens at it
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _listen(self) -> None:
        try:
            while True:
                number, result = self._pipe.recv()
                self._loop.call_soon_threadsafe(self._settle, number, result)
        except (
            OSError,
            EOFError,
            RuntimeError,
        ):  # the pipe or the event loop is closed
            with suppress(RuntimeError):
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
        pending = [future for future in self.waiting.values() if not future.done()]
        if pending:
            error = self._died()  # called once, as it may wait a moment
            for future in pending:
                future.set_exception(error)

    def _died(self) -> RunError:
        """Return the error for a process that ended without being asked to, with advice."""
        self._process.join(1)
        return RunError(
            f"a worker process ended (exit code {self._process.exitcode}); the same command resumes the work, with "
            "fewer --workers if memory is short"
        )


def _live(pipe: Connection, spec: WorkSpec) -> None:
    """Run a worker process from its start to its end."""
    # Ctrl-C is handled by the parent process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):  # the parent process is gone
        try:
            work = spec.build()
        except Exception as error:
            pipe.send(
                (
                    _READY,
                    RunError(
                        f"a worker process could not start: {type(error).__name__}: {error}"
                    ),
                )
            )
            return
        pipe.send((_READY, None))
        asyncio.run(_work(pipe, work))


async def _work(pipe: Connection, work: Work) -> None:
    loop, sending, tasks = asyncio.get_running_loop(), threading.Lock(), set()
    closed = asyncio.Event()

    async def answer(number: int, item: Any) -> None:
        try:
            result = await work(item)
        except ModelRefused as error:
            result = ModelRefused(str(error))
        except Exception as error:  # as text: not every exception can be sent back
            result = RunError(f"{type(error).__name__}: {error}")
        await asyncio.to_thread(send, number, result)

    def send(number: int, result: Any) -> None:
        with sending:
            pipe.send((number, result))

    def start(number: int, item: Any) -> None:
        task = loop.create_task(answer(number, item))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def listen() -> None:
        try:
            while True:
                if (message := pipe.recv()) is None:
                    break
                loop.call_soon_threadsafe(start, *message)
        except (OSError, EOFError):  # the parent process is gone
            pass
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=listen, daemon=True).start()
    await closed.wait()
    for task in tasks:
        task.cancel()
