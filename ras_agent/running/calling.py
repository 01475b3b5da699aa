"""Calls the methods of roles from synchronous and from asynchronous code, with a limit on how long to wait for
them.
"""

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

from ras_agent.contracts.events import emitting_until_the_end
from ras_agent.running.budget import Ledger, Limits, current_ledger, metered

T = TypeVar("T")
Asked = TypeVar("Asked")
Reply = TypeVar("Reply")

# this many runs may be at work before others have to wait
_AT_ONCE = 8
# assumed processor time of a run in seconds, until runs have ended and were measured
_USUAL_COST = 0.03
# one measurement counts at most as this multiple of the cost so far
_MOST_GROWTH = 4

# seconds in which a cancelled coroutine may close its connections
_TO_CLOSE = 0.2

# seconds in which a thread that was interrupted while it was being started has to begin
_TO_BEGIN = 5.0


class StillRunning(Exception):
    """Raised when a call has taken longer than its limit. A later result of the call is dropped."""


def name_of(role: object) -> str:
    """Return the name of a role, or the name of its class if it has none."""
    return str(getattr(role, "name", None) or type(role).__name__)


def call(role: object, method: str, *args: Any, within: float = inf) -> Any:
    """Return `role.method(*args)`. Raises StillRunning if the call takes more than `within` seconds.

    Python cannot stop a thread. So a call with a limit runs in its own thread, which continues after the caller
    has stopped waiting. Its later result, exception and events are dropped, and the process can end without it.
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
            # the TimeoutError was the work's own, or the work has just ended
            result = future.result()
    return _in_time(result, began, within)


def acall(role: object, method: str, *args: Any, within: float = inf) -> Awaitable[Any]:
    """Return an awaitable of `role.a<method>(*args)`. Without such a coroutine, `role.<method>(*args)` runs in
    a thread.

    If `within` is given, awaiting raises StillRunning after that many seconds and cancels the coroutine. A
    coroutine that never awaits blocks the event loop until it ends, so its lateness is noticed only then.
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
        # only without a time limit: the event loop waits for its threads when it ends
        return _in_shared_thread(work, *args)
    return asyncio.wrap_future(in_thread(lambda: work(*args)))


def run_steps(
    steps: Generator[Asked, Reply, T],
    answer: Callable[[Asked], Reply],
    told: tuple[type[Exception], ...] = (Exception,),
) -> T:
    """Run a generator that yields requests, send it the reply to each request, and return the generator's
    result.

    With `arun_steps`, the same generator can use asynchronous input and output.

    Args:
        steps: The generator.
        answer: Returns the reply to a request.
        told: The classes of errors of `answer` that are raised inside the generator, at its `yield`. Other
            errors are raised to the caller.
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
    """Run a generator as `run_steps` does, with a coroutine function as `answer`."""
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
    """Start `work` in a daemon thread and return its future. The process can end while the thread is still running."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # a running future cannot be cancelled, so the thread may set its result

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
    """Run a coroutine and return its result, also in a notebook, where an event loop is already running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return run_apart(coroutine)


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of a new thread, and return its result.

    A KeyboardInterrupt in the waiting thread cancels the coroutine and waits for its end.
    """
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
        # an interrupt may also come while the thread is being started
        result = in_thread(partial(asyncio.run, run()))
        return result.result()
    except KeyboardInterrupt:
        with suppress(TimeoutError):
            cancel = began.result(_TO_BEGIN)
            cancel()
            ended.wait()
        raise


def _ended(work: Callable[..., T], *args: Any) -> T:
    """Return `work(*args)`. A StopIteration of `work` becomes a RuntimeError, as in a coroutine.

    A future cannot hold a StopIteration, so an event loop would wait forever.
    """
    try:
        return work(*args)
    except StopIteration as error:
        raise RuntimeError(
            "a role or a model raised StopIteration: let it return a result, or raise another exception"
        ) from error


class Queueing:
    """Counts the seconds in which a run only waits: some of its calls wait for their turn, and none is being
    worked on.

    A call waits for a thread, for the event loop, or for a slot or the rate limit of a model. Thread safe.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._waiting = 0
        self._working = 0
        self._since = perf_counter()
        self._lock = threading.Lock()

    def change(self, *, waiting: int = 0, working: int = 0) -> None:
        """Add `waiting` to the number of calls that wait, and `working` to the number that are being worked on.
        Both may be negative.
        """
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
    """Yield a Queueing that measures how long the calls made inside the `with` block wait for their turn."""
    queueing = Queueing()
    token = _queueing.set(queueing)
    try:
        yield queueing
    finally:
        _queueing.reset(token)


@contextmanager
def noted(*, waiting: int = 0, working: int = 0) -> Iterator[None]:
    """Count the `with` block as `waiting` calls and `working` calls; do nothing outside `measured_queueing`."""
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
    """Return `work(*args)` from one of the event loop's threads, which other runs use too, so it may have to
    wait for one.
    """
    queueing = _queueing.get()
    if queueing is None:
        return await asyncio.to_thread(_ended, work, *args)

    def run() -> T:
        # counts as work until the thread ends; then the run waits for the event loop
        with noted(waiting=-1, working=1):
            return _ended(work, *args)

    with noted(waiting=1):
        return await asyncio.to_thread(run)


class Threads:
    """Runs calls in threads: at most `most` at the same time, first come, first served, each for at most
    `seconds` seconds.

    A call that hangs keeps its place until it ends. So at most `most` threads ever hang, and other pools are
    not delayed.
    """

    def __init__(self, most: int, seconds: float) -> None:
        """Allow `most` calls at the same time, each at most `seconds` long, including the time that it waits
        for its turn.
        """
        self._free = asyncio.Semaphore(most)
        self._seconds = seconds

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Return `work(*args)` from a thread. Raises StillRunning after the pool's time limit.

        Model calls inside `work` have the same time limit.
        """
        loop, ledger = (
            asyncio.get_running_loop(),
            Ledger(limits=Limits(max_seconds=self._seconds)),
        )

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the event loop ended before the work
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
    """Starts runs first come, first served, as fast as the processor can do their work.

    If all runs share the processor from the start, all end late; if they start one after another, half of them
    end in half the time. A run that waits for a model needs no processor. So a run starts at once if few runs
    are working, and otherwise after a pause as long as the processor time of an average run. It never waits for
    another run to end, because that run may hang.
    """

    def __init__(self) -> None:
        self._at_work = 0
        self._first = asyncio.Lock()
        self._cost = _USUAL_COST
        self._work_done = _work_done()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a run's turn, then yield. The run counts as working until the `with` block ends."""
        if self._at_work >= _AT_ONCE or self._first.locked():
            async with self._first:
                await asyncio.sleep(self._cost)
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            now = _work_done()
            # the processor may have done other work
            cost = min(now - self._work_done, _MOST_GROWTH * self._cost)
            self._cost = 0.9 * self._cost + 0.1 * cost
            self._work_done = now


def _work_done() -> float:
    """Return the processor seconds of this process's work: those of the event loop's thread, or those of all
    threads divided by the number of cores if that is more.
    """
    return max(thread_time(), process_time() / (os.cpu_count() or 1))


def _in_time(result: T, began: float, within: float) -> T:
    """Return `result`. Raises StillRunning if more than `within` seconds have passed since `began`.

    A coroutine that never awaits blocks the event loop, so its lateness is noticed only here, after its end.
    """
    if monotonic() - began > within:
        raise StillRunning
    return result


def raise_if_cancelled() -> None:
    """Raise CancelledError if the running task was cancelled but is still running.

    A library between the task and its caller may catch the cancellation, as LangGraph does in a node. Without
    this check, the output of such a run would be taken for a result.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
