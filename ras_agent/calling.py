"""One way to call a role, from synchronous and from asynchronous code, and to stop waiting for it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from math import inf
from time import monotonic, perf_counter, process_time, thread_time
from typing import Any, TypeVar

from ras_agent.budget import Ledger, Limits, current_ledger, metered
from ras_agent.events import emitting_until_the_end

T = TypeVar("T")
Asked = TypeVar("Asked")
Reply = TypeVar("Reply")

# runs that begin without waiting; seconds of the processor that a run takes, until some have ended; how many times as
# long one may have taken
_AT_ONCE = 8
_USUAL_COST = 0.03
_MOST_GROWTH = 4

# how long a coroutine that was cancelled may take to close its connections
_TO_CLOSE = 0.2

# how long a thread that was interrupted while it was being started may take to begin
_TO_BEGIN = 5.0


class StillRunning(Exception):
    """Raised when a call has taken longer than it may; its later result is dropped."""


def call(role: object, method: str, *args: Any, within: float = inf) -> Any:
    """Return `role.method(*args)`. Raises StillRunning if that takes more than `within` seconds.

    Python cannot end a thread. So a call with a limit runs in a thread of its own, which goes on when nobody waits for
    it any more: its result, its exception and its events are dropped, and the process can end without it.
    """
    work = getattr(role, method)
    if within == inf:
        return work(*args)
    began = monotonic()
    with emitting_until_the_end():
        future = in_thread(lambda: work(*args))
        try:
            result = future.result(within)
        except TimeoutError:
            if not future.done():
                raise StillRunning from None
            result = future.result()  # the work's own error, or just in time
    return _in_time(result, began, within)


def acall(role: object, method: str, *args: Any, within: float = inf) -> Awaitable[Any]:
    """Return an awaitable of `role.a<method>(*args)`, or of the synchronous method in a thread.

    Awaiting raises StillRunning if that takes more than `within` seconds. A coroutine is then cancelled; one that never
    awaits holds the event loop until it ends, and is found to be late only then.
    """
    coroutine = getattr(role, f"a{method}", None)
    if within < inf:
        return _limited(
            coroutine or getattr(role, method), coroutine is not None, args, within
        )
    if coroutine:
        own: Awaitable[Any] = coroutine(*args)
        return own
    work = getattr(role, method)
    if current_ledger().seconds_left() == inf:
        # not where somebody may stop waiting: the event loop's own threads are waited for when it ends
        return _in_shared_thread(work, *args)
    return asyncio.wrap_future(in_thread(lambda: work(*args)))


def run_steps(
    steps: Generator[Asked, Reply, T],
    answer: Callable[[Asked], Reply],
    told: tuple[type[Exception], ...] = (Exception,),
) -> T:
    """Run a generator that yields what it asks for and is sent the answers, and return its result.

    told: the errors of `answer` that are raised inside the generator, at its yield. Others are raised here.
    """
    try:
        asked = next(steps)
        while True:
            try:
                reply = answer(asked)
            except told as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def arun_steps(
    steps: Generator[Asked, Reply, T],
    answer: Callable[[Asked], Awaitable[Reply]],
    told: tuple[type[Exception], ...] = (Exception,),
) -> T:
    """Do the same as `run_steps`, for coroutines."""
    try:
        asked = next(steps)
        while True:
            try:
                reply = await answer(asked)
            except told as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def _limited(
    work: Callable[..., Any], is_coroutine: bool, args: tuple[Any, ...], within: float
) -> Any:
    began = monotonic()
    with emitting_until_the_end():
        if is_coroutine:
            task: asyncio.Future[Any] = asyncio.ensure_future(work(*args))
        else:
            task = asyncio.wrap_future(in_thread(lambda: work(*args)))
        try:
            await asyncio.wait({task}, timeout=within)
            if not task.done():
                raise StillRunning
        finally:
            if not task.done() and task.cancel():
                await asyncio.wait({task}, timeout=_TO_CLOSE)
    return _in_time(task.result(), began, within)


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Run `work` in a thread that the process does not wait for when it ends, and return its future."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it then, and the thread may always set its result

    def run() -> None:
        try:
            future.set_result(_ended(work))
        except BaseException as error:
            future.set_exception(error)

    context = copy_context()  # holds the ledger and LangChain's callbacks
    threading.Thread(
        target=context.run, args=(run,), name="ras-agent-call", daemon=True
    ).start()
    return future


def run_whole(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, from a notebook's cell too, in whose thread an event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return run_apart(coroutine)


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own. An interrupt of the thread that waits for it cancels it."""
    began: Future[Callable[[], object]] = Future()
    ended = threading.Event()

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        began.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await coroutine
        finally:
            ended.set()

    try:
        # an interrupt may come while the thread is being started, too
        result = in_thread(partial(asyncio.run, run()))
        return result.result()
    except KeyboardInterrupt:
        with suppress(TimeoutError):
            cancel = began.result(_TO_BEGIN)
            cancel()
            ended.wait()
        raise


def _ended(work: Callable[..., T], *args: Any) -> T:
    """Call `work` and return its result. Its StopIteration becomes a RuntimeError, as in a coroutine.

    A future cannot hold one: who waits for it in an event loop would wait for ever.
    """
    try:
        return work(*args)
    except StopIteration as error:
        raise RuntimeError("a role or a model raised StopIteration") from error


class Queueing:
    """Clock of one run that counts the seconds in which the run waits for its turn while no call of it is at work.

    It waits for a thread, for the event loop, or for a slot or the rates of a model. Thread safe.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._waiting = 0
        self._working = 0
        self._since = perf_counter()
        self._lock = threading.Lock()

    def change(self, *, waiting: int = 0, working: int = 0) -> None:
        """Note that so many more calls of the run wait, and so many more are at work."""
        with self._lock:
            now = perf_counter()
            if self._waiting and not self._working:
                self.seconds += now - self._since
            self._since = now
            self._waiting += waiting
            self._working += working


_queueing: ContextVar[Queueing | None] = ContextVar("queueing", default=None)


@contextmanager
def measured_queueing() -> Iterator[Queueing]:
    """Measure in the block how long its calls wait for their turn."""
    queueing = Queueing()
    token = _queueing.set(queueing)
    try:
        yield queueing
    finally:
        _queueing.reset(token)


@contextmanager
def noted(*, waiting: int = 0, working: int = 0) -> Iterator[None]:
    """Have the block count as waiting, or as work, where the run's queueing is measured."""
    queueing = _queueing.get()
    if queueing is None:
        yield
        return
    queueing.change(waiting=waiting, working=working)
    try:
        yield
    finally:
        queueing.change(waiting=-waiting, working=-working)


async def _in_shared_thread(work: Callable[..., T], *args: Any) -> T:
    """Return `work(*args)` out of one of the event loop's threads, for which other runs may have to be waited for."""
    queueing = _queueing.get()
    if queueing is None:
        return await asyncio.to_thread(_ended, work, *args)

    def run() -> T:
        # until the thread has ended: then the event loop is waited for
        with noted(waiting=-1, working=1):
            return _ended(work, *args)

    with noted(waiting=1):
        return await asyncio.to_thread(run)


class Threads:
    """Pool of threads for one kind of work: a bounded number at a time, first come first served, and nobody for long.

    Work that hangs holds its place until it ends, so that no more than `most` threads ever hang, and delays no other
    kind of work.
    """

    def __init__(self, most: int, seconds: float) -> None:
        """Let `most` calls work at a time, and `seconds` pass for each, in which it also waits for its turn."""
        self._free = asyncio.Semaphore(most)
        self._seconds = seconds

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Return `work(*args)` out of a thread, where a ledger says how long it may take. Raises StillRunning."""
        loop, ledger = (
            asyncio.get_running_loop(),
            Ledger(limits=Limits(max_seconds=self._seconds)),
        )

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended before the work
                loop.call_soon_threadsafe(self._free.release)

        async def result() -> T:
            await self._free.acquire()
            with metered(ledger):
                future = in_thread(partial(work, *args))
            future.add_done_callback(release)
            return await asyncio.wrap_future(future)

        waiting = asyncio.ensure_future(result())
        try:
            await asyncio.wait({waiting}, timeout=self._seconds)
            if not waiting.done():
                raise StillRunning
        finally:
            waiting.cancel()
        return waiting.result()


class Turns:
    """Queue of runs, first come first served, which begin as fast as the processor does their work.

    Runs that share a processor end together, late: begun one after another, half of them end in half the time. But runs
    that wait for a model cost nothing. So a run begins at once while few are at work, and else after as much time as a
    run has lately taken of the processor. It waits for no other run's end, which may hang.
    """

    def __init__(self) -> None:
        self._at_work = 0
        self._first = asyncio.Lock()
        self._cost = _USUAL_COST
        self._work_done = _work_done()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a run's turn; the run lasts for the block."""
        if self._at_work >= _AT_ONCE or self._first.locked():
            async with self._first:
                await asyncio.sleep(self._cost)
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            now = _work_done()
            # it may have been other work
            cost = min(now - self._work_done, _MOST_GROWTH * self._cost)
            self._cost = 0.9 * self._cost + 0.1 * cost
            self._work_done = now


def _work_done() -> float:
    """Return the seconds that this process has worked at least: its event loop's, or all cores' by their number."""
    return max(thread_time(), process_time() / (os.cpu_count() or 1))


def _in_time(result: T, began: float, within: float) -> T:
    """Return `result`. Raises StillRunning if more than `within` seconds have passed since `began`.

    A coroutine that never awaits holds the event loop, so that its lateness is found only here, at its end.
    """
    if monotonic() - began > within:
        raise StillRunning
    return result


def raise_if_cancelled() -> None:
    """Raise CancelledError if the running task was cancelled but has not stopped.

    A library in between may take the cancellation for one of its own, as LangGraph does with that of a node. Without
    this check, the output of such a run would pass for a result.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
