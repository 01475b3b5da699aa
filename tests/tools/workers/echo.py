"""Work that costs a worker nothing to build: it returns its input."""

from __future__ import annotations

from typing import Any

from ras_agent.tools.workers.pool import Work


def echo() -> Work:
    """Return work that returns its item."""

    async def work(item: Any) -> Any:
        return item

    return work
