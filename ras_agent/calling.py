"""One way to call a role, from synchronous and from asynchronous code."""

from __future__ import annotations

import asyncio
from typing import Any


def call(role: object, method: str, *args: Any) -> Any:
    """Return `role.method(*args)`."""
    return getattr(role, method)(*args)


async def acall(role: object, method: str, *args: Any) -> Any:
    """Await `role.a<method>(*args)` where the role has it, else run the synchronous method in a worker thread."""
    coroutine = getattr(role, f"a{method}", None)
    if coroutine is not None:
        return await coroutine(*args)
    return await asyncio.to_thread(getattr(role, method), *args)


def raise_if_cancelled() -> None:
    """Raise CancelledError if the running task was cancelled and goes on all the same.

    A library in between may take the cancellation for one of its own, as LangGraph does with that of a node. Without
    this check, what such a run returns would pass for a result.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
