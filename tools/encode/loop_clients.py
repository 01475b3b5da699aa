"""One OpenAI client for many event loops.

Connections belong to the event loop that opened them. A client that is used from a second `asyncio.run` would send a
request over a connection of the first one's, and never hear the reply.
"""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["openai_client"]


@cache
def openai_client() -> Any | None:
    """An `httpx.AsyncClient` as OpenAI's package makes it, with connections of each loop's own; None without openai."""
    try:
        from openai import DefaultAsyncHttpxClient
    except ImportError:
        return None

    class ClientOfEachLoop(DefaultAsyncHttpxClient):
        """Hands each request to the client of the loop that is running."""

        def __init__(self) -> None:
            super().__init__()
            self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
            self._lock = threading.Lock()

        async def send(self, request: Any, **options: Any) -> Any:
            loop = asyncio.get_running_loop()
            with self._lock:
                client = self._of_loop.get(loop)
                if client is None:
                    client = self._of_loop[loop] = DefaultAsyncHttpxClient()
            return await client.send(request, **options)

    return ClientOfEachLoop()
