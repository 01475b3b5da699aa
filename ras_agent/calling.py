"""One way to call a role, from synchronous and from asynchronous code."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["acall", "call"]


def call(role: object, method: str, *args: Any) -> Any:
    """`role.method(*args)`."""
    return getattr(role, method)(*args)


async def acall(role: object, method: str, *args: Any) -> Any:
    """`await role.a<method>(*args)` where the role has it, else the synchronous method in a worker thread."""
    twin = getattr(role, f"a{method}", None)
    if twin is not None:
        return await twin(*args)
    return await asyncio.to_thread(getattr(role, method), *args)
