"""HTTP clients for models that speak OpenAI's protocol: they bound replies and refuse half streams and other hosts."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

MOST_BYTES = 32 * 2**20
"""The largest reply that is read, in bytes, whether it comes as a whole or as a stream."""
MOST_BYTES_OF_VECTORS = 8 * MOST_BYTES
"""The largest reply of an embedder: a thousand texts have some ten million digits."""

_LAST_EVENT = re.compile(rb'^data: ?\[DONE\]|"finish_reason" ?: ?"', re.MULTILINE)
_LONGEST_MARK = 64
_SAME_REQUEST = (307, 308)  # after the other redirects a client asks with GET


class BrokenReply(Exception):
    """Raised for a reply that is none: half a stream, an error under status 200. Another try may bring a better one."""


class RefusedReply(Exception):
    """Raised for a reply that is not read on: too large, or a redirect to another host. Another try brings no other."""


class _Intake:
    """Takes a response's body in, piece by piece, and counts it.

    The body is not handed to the client's own decoders: they turn a few bytes of a compressed reply into any number.
    """

    def __init__(self, response: Any) -> None:
        """Prepare for a response, whose headers then say nothing of a compression. Raises RefusedReply for some."""
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise RefusedReply(f"the reply is compressed ({encoding:.40}), though the request asked for plain text")
        self._inflate = None if encoding == "identity" else zlib.decompressobj(47)  # 47: gzip or zlib
        path = response.request.url.path
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        # of the other protocols' streams the client knows the end itself
        self._unfinished = streamed and path.endswith("/completions")
        self._most = self._room = MOST_BYTES_OF_VECTORS if path.endswith("/embeddings") else MOST_BYTES
        self._seen = b""
        self._seconds = response.request.extensions.get("timeout", {}).get("read")
        self._began = time.monotonic()

    def take(self, piece: bytes) -> bytes:
        """Return a piece as plain text. Raises RefusedReply when the reply is too large, TimeoutError when too slow."""
        if self._seconds is not None and time.monotonic() - self._began > self._seconds:
            raise TimeoutError(f"no whole reply within {self._seconds:g} seconds")
        if self._inflate is not None:
            try:
                piece = self._inflate.decompress(piece, self._room + 1)
            except zlib.error as error:
                raise BrokenReply(f"the reply cannot be decompressed: {error}") from error
        self._room -= len(piece)
        if self._room < 0:
            raise RefusedReply(f"the reply is larger than {self._most // 2**20} MB, which is the most that is read")
        if self._unfinished:
            self._seen = self._seen[-_LONGEST_MARK:] + piece
            self._unfinished = not _LAST_EVENT.search(self._seen)
        return piece

    def end(self) -> None:
        """Take note of the body's end. Raises BrokenReply if a stream has not said that it is finished."""
        if self._unfinished:
            raise BrokenReply("the stream ended without a finish reason")


def _refuse_redirect(response: Any) -> None:
    """Raise RefusedReply for a redirect that leads to another host, or that would not send the request again."""
    if not response.has_redirect_location:
        return
    here = response.request.url
    there = here.join(response.headers["location"])
    if response.status_code in _SAME_REQUEST and _origin(here) == _origin(there):
        return
    raise RefusedReply(
        f"the server redirects ({response.status_code}) to {there.scheme}://{there.netloc.decode().rpartition('@')[2]}"
        f"{there.path}, and prompts go to no address that you did not name; name that one, if it is right"
    )


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@cache
def openai_clients() -> dict[str, Any]:
    """Return ChatOpenAI's `http_client` and `http_async_client`; no options without langchain-openai.

    They are OpenAI's own clients, but read no reply without end, follow no redirect to another host, and notice half a
    stream. The asynchronous one has separate connections for each event loop: connections belong to the event loop
    that opened them, and a client that is used from a second `asyncio.run` would send a request over a connection of
    the first loop, and never get the reply.
    """
    try:
        from langchain_openai import ChatOpenAI
        from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
    except ImportError:
        return {}
    # the library of these clients, httpx or httpx2, depends on the version of openai
    httpx: Any = sys.modules[DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]

    class Bounded(httpx.SyncByteStream):  # type: ignore[misc]
        """Reads a response's body through an intake."""

        def __init__(self, response: Any) -> None:
            self._stream, self._intake = response.stream, _Intake(response)

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._stream:
                yield self._intake.take(piece)
            self._intake.end()

        def close(self) -> None:
            self._stream.close()

    class AsyncBounded(httpx.AsyncByteStream):  # type: ignore[misc]
        """Does the same as Bounded, for coroutines."""

        def __init__(self, response: Any) -> None:
            self._stream, self._intake = response.stream, _Intake(response)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                yield self._intake.take(piece)
            self._intake.end()

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def arefuse_redirect(response: Any) -> None:
        _refuse_redirect(response)

    class Client(DefaultHttpxClient):
        """Sends a request and bounds its reply."""

        def __init__(self) -> None:
            super().__init__(event_hooks={"response": [_refuse_redirect]})

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            request.headers["accept-encoding"] = "identity"
            response = super().send(request, stream=True, **options)
            try:
                response.stream = Bounded(response)
                if not stream:
                    response.read()
            except BaseException:
                response.close()
                raise
            return response

    class ClientPerLoop(DefaultAsyncHttpxClient):
        """Hands each request to the client of the running event loop, and bounds its reply."""

        def __init__(self) -> None:
            super().__init__()
            self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
            self._lock = threading.Lock()

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            request.headers["accept-encoding"] = "identity"
            response = await self._client().send(request, stream=True, **options)
            try:
                response.stream = AsyncBounded(response)
                if not stream:
                    await response.aread()
            except BaseException:
                await response.aclose()
                raise
            return response

        def _client(self) -> Any:
            loop = asyncio.get_running_loop()
            with self._lock:
                client = self._clients.get(loop)
                if client is None:
                    client = DefaultAsyncHttpxClient(event_hooks={"response": [arefuse_redirect]})
                    self._clients[loop] = client
            return client

    options: dict[str, Any] = {"http_client": Client(), "http_async_client": ClientPerLoop()}
    if "http_socket_options" in ChatOpenAI.model_fields:
        options["http_socket_options"] = ()  # they are for clients that ChatOpenAI makes itself
    return options
