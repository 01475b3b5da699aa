"""One way to call a role, from synchronous and from asynchronous code."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["acall", "call", "raise_if_cancelled"]


def call(role: object, method: str, *args: Any) -> Any:
    """`role.method(*args)`."""
    return getattr(role, method)(*args)


async def acall(role: object, method: str, *args: Any) -> Any:
    """`await role.a<method>(*args)` where the role has it, else the synchronous method in a worker thread."""
    twin = getattr(role, f"a{method}", None)
    if twin is not None:
        return await twin(*args)
    return await asyncio.to_thread(getattr(role, method), *args)


def raise_if_cancelled() -> None:
    """Raise CancelledError if the running task was asked to end and went on all the same.

    A library in between may take a cancellation for its own, such as LangGraph for that of a node. Without this, what
    such a run returns would pass for a result.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
