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

__all__ = ["openai_options"]


@cache
def openai_options() -> dict[str, Any]:
    """ChatOpenAI's `http_async_client`, as OpenAI's package makes it but with connections of each loop's own.

    Nothing without langchain-openai.
    """
    try:
        from langchain_openai import ChatOpenAI
        from openai import DefaultAsyncHttpxClient
    except ImportError:
        return {}

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

    options: dict[str, Any] = {"http_async_client": ClientOfEachLoop()}
    if "http_socket_options" in ChatOpenAI.model_fields:
        # beside a client that it did not make, ChatOpenAI tunes the sockets of the other, which then knows no proxy
        options["http_socket_options"] = ()
    return options
