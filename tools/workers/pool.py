"""Processes many items of work in a pool: in this process, in several processes, or on a cluster.

Asynchronous and synchronous code can both use any pool:

    await run_all(Processes(spec, 4), questions, concurrency=32, on_end=store)
    for passage, found in results_in_order(Here(read), passages, concurrency=8): ...
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")

Work = Callable[[Any], Awaitable[Any]]
"""Function that returns the result for one item."""


@dataclass(frozen=True, slots=True)
class WorkSpec:
    """Describes work that any process can build, by calling `factory`, "module:function", with `arguments`.

    Arguments are plain JSON values, and paths in them refer to the worker's machine; for processes of this machine,
    any value that can be pickled is allowed.
    """

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Work:
        """Build the work in this process. Raises the factory's errors."""
        module, _, name = self.factory.partition(":")
        work: Work = getattr(import_module(module), name)(**self.arguments)
        return work


class Pool(Protocol):
    """Describes a place where work is done: this process, other processes, other machines."""

    def opened(self, concurrency: int) -> AbstractAsyncContextManager[Work]:
        """Return a context manager that keeps the pool ready for `concurrency` items at once. Raises RunError if it
        cannot start.
        """
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """Does the work in this process, on the caller's event loop."""

    work: Work

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        """Return a context manager with the work itself."""
        yield self.work


async def run_all(
    pool: Pool,
    items: Iterable[Any],
    *,
    concurrency: int,
    on_end: Callable[[Any], Awaitable[None]] | None = None,
) -> None:
    """Process `items`, at most `concurrency` at once, and await `on_end` with each result as it comes.

    Results come in any order. An item is read from `items` only when it can be processed. The first error cancels
    all other items and is raised.
    """
    _check(concurrency)
    waiting = iter(items)

    async def worker(work: Work) -> None:
        for item in waiting:  # all workers share one iterator: each takes the next item
            result = await work(item)
            if on_end:
                await on_end(result)

    first: Exception | None = None
    async with pool.opened(concurrency) as work:
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(concurrency):
                    workers.create_task(worker(work))
        except ExceptionGroup as several:  # of one cause, such as a full disk
            first = several.exceptions[0]
        # raised outside the handler, so that the group is not shown as its context
        if first is not None:
            raise first


def results_in_order(
    pool: Pool, items: Iterable[_T], *, concurrency: int
) -> Iterator[tuple[_T, Any]]:
    """Yield each item with its result, in the order of the items, while up to `concurrency` are being processed.

    At most `concurrency` items are read ahead, and only in the caller's thread. The pool runs on an event loop in a
    separate thread, and is closed when the iteration ends, however it ends. Without items the pool is not opened.
    """
    _check(concurrency)
    waiting = iter(items)
    first = list(islice(waiting, concurrency))
    if not first:
        return
    loop = _PoolThread(pool, min(concurrency, len(first)))
    under_way: deque[tuple[_T, Future[Any]]] = deque()
    try:
        for item in chain(first, waiting):
            if len(under_way) < concurrency:
                under_way.append((item, loop.submit(item)))
                continue
            oldest, future = under_way.popleft()
            result = future.result()
            # submitted before yielding, so that no worker idles while the caller is busy
            under_way.append((item, loop.submit(item)))
            yield oldest, result
        while under_way:
            oldest, future = under_way.popleft()
            yield oldest, future.result()
    finally:
        for _, future in under_way:
            future.cancel()
        loop.close()


class _PoolThread:
    """Keeps a pool open on an event loop in a separate thread."""

    def __init__(self, pool: Pool, concurrency: int) -> None:
        """Open the pool. Raises the errors of opening it."""
        self._pool = pool
        self._concurrency = concurrency
        self._opened: Future[tuple[asyncio.AbstractEventLoop, Work, asyncio.Event]] = (
            Future()
        )
        # daemon, so that it does not outlive a second Ctrl-C
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._loop, self._work, self._stop = self._opened.result()

    def submit(self, item: Any) -> Future[Any]:
        """Start processing an item and return the future of its result."""
        work = self._do(item)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Close the pool and wait until it is closed."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _do(self, item: Any) -> Any:
        return await self._work(item)

    def _run(self) -> None:
        try:
            asyncio.run(self._hold_open())
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    async def _hold_open(self) -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        # threads for roles that are not asynchronous
        loop.set_default_executor(ThreadPoolExecutor(self._concurrency))
        async with self._pool.opened(self._concurrency) as work:
            self._opened.set_result((loop, work, stop))
            await stop.wait()


def _check(concurrency: int) -> None:
    if concurrency < 1:
        raise ValueError(f"concurrency must be positive, got {concurrency}")
