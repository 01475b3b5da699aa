"""Calls servers that speak OpenAI's protocol over HTTP: replies are bounded, streams complete, redirects refused.

Every event loop has one session, whose calls share connections. Synchronous callers share one event loop, which
runs in a separate thread (`run`).
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import ssl
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Coroutine,
    Iterator,
    Mapping,
)
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from ras_agent.contracts.records import JSON
from ras_agent.tools.chat.secrets import printable

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

MOST_BYTES = 32 * 2**20
"""The maximum number of bytes of a reply, whether it comes whole or as a stream."""
MOST_BYTES_OF_VECTORS = 8 * MOST_BYTES
"""The maximum number of bytes of an embedder's reply: the vectors of a thousand texts have some ten million digits."""

_LIST_WITHIN = 10.0  # seconds
# values of the finish reason in pieces before the end
_NOT_ENDED = (None, "", "null", "none", False, 0)
_NOT_FOUND = 404
_VERSION = re.compile(r"/v\d")
# the end of an address that was copied together with its path
_OWN_PATH = re.compile(
    r"/chat/completions\Z|(?<=/v1)/(?:chat|models|completions|responses|embeddings)\Z"
)
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
# markers among the events of a stream: "[DONE]" was read; the connection ended
_DONE, _END = object(), object()
# seconds that a stream may take to send its usage after the last piece
_AFTER_THE_END = 5.0
_TO_END = 2.0  # seconds to wait at the end of the process for connections to close


class BrokenReply(Exception):
    """Reports an unusable reply, such as half a stream or an error with status 200. Another try may succeed."""


class RefusedReply(Exception):
    """Reports a reply that is not accepted: too large, or a redirect. Another try would give the same."""


class NoConnection(ConnectionError):
    """Reports that a connection could not be made or broke. Its cause has the reason; `url` is the address."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class ErrorStatus(Exception):
    """Reports a server's reply with an error status.

    Attributes:
        status_code: the HTTP status.
        headers: the reply's headers.
        body: the reply's error object, or the whole object if it holds the error as text; {} for another form.
        code: the server's own code of the error.
    """

    def __init__(self, status: int, headers: Mapping[str, str], text: str) -> None:
        try:
            told = json.loads(text)
        except ValueError:
            told = None
        whole = told if isinstance(told, dict) else {}
        error = whole.get("error", told)
        self.body: JSON = error if isinstance(error, dict) else whole
        message = self.body.get("message") or (
            error if isinstance(error, str) else text
        )
        super().__init__(f"Error code: {status} - {message}")
        self.status_code, self.headers, self.code = (
            status,
            headers,
            self.body.get("code"),
        )


_NO_REPLY = (ErrorStatus, BrokenReply, RefusedReply)
_listed: dict[tuple[str, str], JSON] = {}


@dataclass(frozen=True)
class Endpoint:
    """Calls a server at one address, in OpenAI's protocol.

    The proxy is the one that the environment names at the first request.
    """

    url: str
    """The address, up to /v1, which may be left out."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The headers that are sent with every request, including the one with the key."""

    @classmethod
    def with_key(cls, url: str, key: str, **more: str) -> Endpoint:
        """Return an endpoint that sends `key`. If its address has a login, that is sent instead.

        Args:
            more: further headers.
        """
        names_user = "@" in urlsplit(url).netloc
        if names_user or not key:
            return cls(url, more)
        return cls(url, {"Authorization": f"Bearer {key}"} | more)

    async def about(self, model: str) -> JSON:
        """Return the model's entry in the server's list of models; {} if there is no entry.

        The list is requested once per process. If the server lists a single model, its entry is returned whatever
        its name, as llama.cpp accepts any name.
        """
        key = self.url, model
        if key in _listed:
            return _listed[key]
        try:
            async with self._response("GET", "/models", None, _LIST_WITHIN) as response:
                listed = _parsed(await _whole(response))["data"]
            models = list(map(dict, listed))
            named = [one for one in models if one["id"] == model]
        except (ConnectionError, TimeoutError):
            return {}
        except (*_NO_REPLY, LookupError, TypeError, ValueError):
            models = named = []
        if len(models) == 1:
            named = models
        _listed[key] = named[0] if named else {}
        return _listed[key]

    async def post(
        self,
        path: str,
        body: Any,
        seconds: float | None = None,
        most: int | None = None,
    ) -> Any:
        """Post `body` to a path of the server and return the JSON of its reply.

        Args:
            seconds: the time within which the last byte has to arrive; None for no limit.
            most: the maximum number of bytes of the reply; by default `MOST_BYTES`.

        Raises:
            ErrorStatus, BrokenReply, RefusedReply, NoConnection: see these classes.
            TimeoutError: after `seconds`.
        """
        async with self._response("POST", path, body, seconds) as response:
            return _parsed(await _whole(response, most))

    async def events(
        self, path: str, body: Any, seconds: float | None = None
    ) -> AsyncIterator[Any]:
        """Yield the JSON of each event of a streamed reply; if the server does not stream, yield its whole reply.

        Raises as `post` does, and BrokenReply for a stream that ends without a finish reason or "[DONE]". After a
        finish reason, any error only ends the stream.
        """
        async with self._response("POST", path, body, seconds) as response:
            if response.content_type != "text/event-stream":
                yield _parsed(await _whole(response))
                return
            finished = False
            events = _events(_lines(response))
            while True:
                patience = _AFTER_THE_END if finished else None
                try:
                    event = await asyncio.wait_for(anext(events, _END), patience)
                except Exception:
                    if finished:
                        return
                    raise
                if event is _DONE:
                    return
                if event is _END:
                    break
                finished = finished or any(map(ends, choices_in(event)))
                yield event
            if not finished:
                raise BrokenReply("the stream ended without a finish reason")

    @asynccontextmanager
    async def _response(
        self, method: str, path: str, body: Any, seconds: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and hold its successful response open during the block.

        An address without a version may or may not need "/v1": if one of the two paths is not found, the other is
        tried.
        """
        missing: ErrorStatus | None = None
        async with AsyncExitStack() as stack:
            for root in tuple(self._roots):
                sending = self._sent(method, self._at(f"{root}{path}"), body, seconds)
                try:
                    response = await stack.enter_async_context(sending)
                except ErrorStatus as error:
                    if error.status_code != _NOT_FOUND:
                        raise
                    missing = missing or error
                    continue
                self._roots[:] = [root]
                yield response
                return
        raise missing or AssertionError("there is an address")

    @asynccontextmanager
    async def _sent(
        self, method: str, url: str, body: Any, seconds: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp

        session = await _session()
        data = None
        if body is not None:
            written = json.dumps(body, ensure_ascii=False)
            # lone surrogates cannot be encoded and become question marks
            data = written.encode("utf-8", "replace")
        try:
            async with session.request(
                method,
                url,
                data=data,
                headers=self._headers,
                proxy=self._proxy,
                ssl=trusted() if url.startswith("https") else True,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as response:
                if response.status >= 400:
                    text = (await _whole(response)).decode("utf-8", "replace")
                    raise ErrorStatus(response.status, response.headers, text)
                if response.status >= 300:
                    there = printable(
                        urljoin(url, response.headers.get("Location", ""))
                    )
                    raise RefusedReply(
                        f"the server redirects ({response.status}) to {there}, and prompts are sent only to addresses "
                        "that you gave: give that address, if it is right"
                    )
                yield response
        except aiohttp.ClientPayloadError as error:
            raise BrokenReply(
                f"the reply broke off or cannot be decompressed: {error}"
            ) from error
        except aiohttp.ClientResponseError as error:
            if "content-encoding" in error.message.lower():
                raise RefusedReply(
                    f"the reply is compressed, although the request does not accept that: {error.message}"
                ) from error
            raise BrokenReply(f"the reply is not HTTP: {error.message}") from error
        except (aiohttp.ClientError, OSError) as error:
            # a short message, as the client's has more detail than callers need
            if isinstance(error, TimeoutError):
                message = str(error)
                if seconds:
                    message = f"no whole reply within {seconds:g} seconds"
                raise TimeoutError(message) from error
            # the error of the system or the TLS library, without the client's text around it
            reason = getattr(error, "certificate_error", None) or getattr(
                error, "os_error", None
            )
            if url.startswith("https:") and isinstance(
                reason, (ConnectionResetError, ConnectionAbortedError)
            ):
                reason = ssl.SSLEOFError(
                    ssl.SSL_ERROR_EOF,
                    "the server ended the connection in the TLS handshake",
                )
            reason = reason or error
            raise NoConnection(
                f"no connection to {printable(url)}: {reason}", url
            ) from reason

    def _at(self, path: str) -> str:
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=path, fragment=""))

    @cached_property
    def _roots(self) -> list[str]:
        """Return the URL paths before the protocol's own, in the order in which they are tried."""
        stated = urlsplit(self.url).path.rstrip("/")
        root = _OWN_PATH.sub("", stated)
        if _VERSION.search(root):
            return [root]
        versioned = f"{root}/v1"
        return [root, versioned] if root else [versioned, root]

    @cached_property
    def _headers(self) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            **self.headers,
        }

    @cached_property
    def _proxy(self) -> str | None:
        from urllib.request import getproxies, proxy_bypass

        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        if proxy_bypass(host):
            return None
        proxies = getproxies()
        return proxies.get(parts.scheme, proxies.get("all"))


async def _pieces(response: aiohttp.ClientResponse, most: int) -> AsyncIterator[bytes]:
    """Yield a response's body as it arrives. Raises RefusedReply if it exceeds `most` bytes."""
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            raise RefusedReply(
                f"the reply is larger than {most // 2**20} MB, the limit of a reply: check the server"
            )
        yield piece


async def _whole(response: aiohttp.ClientResponse, most: int | None = None) -> bytes:
    pieces = _pieces(response, most or MOST_BYTES)
    return b"".join([piece async for piece in pieces])


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yield the JSON of each event, which may span several data lines; "[DONE]" yields _DONE."""
    begun = list[bytes]()
    async for line in lines:
        field, _, data = line.partition(b":")
        data = data.strip()
        if field.lstrip(_BOM) != b"data":
            data = b""
        if data == b"[DONE]":
            yield _DONE
        if data and not begun:
            with suppress(ValueError):
                yield json.loads(data)
                continue
        if data:
            begun.append(data)
        elif begun and not line.strip():
            yield _parsed(b"".join(begun))
            begun = []
    if begun:
        yield _parsed(b"".join(begun))


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    begun = list[bytes]()
    held = b""
    async for piece in _pieces(response, MOST_BYTES):
        piece = held + piece
        held = b"\r" if piece.endswith(b"\r") else b""
        first, *others = _LINE_END.split(piece.removesuffix(held))
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    yield b"".join(begun)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise BrokenReply(f"the reply is not JSON: {error}") from error


def choices_in(event: Any) -> list[JSON]:
    """Return the choices in a reply or in an event of a stream.

    Some servers send one choice without a list, or null in the list.
    """
    if not isinstance(event, dict):
        return []
    choices = event.get("choices")
    if not isinstance(choices, list):
        choices = [choices]
    return [choice for choice in choices if isinstance(choice, dict)]


def ends(choice: JSON) -> bool:
    """Return whether a choice has a finish reason, which marks the end of the reply."""
    return choice.get("finish_reason") not in _NOT_ENDED


# ---- one session for each event loop

_sessions: dict[
    asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, AsyncGenerator[Any, None]]
] = {}


async def _session() -> aiohttp.ClientSession:
    """Return the running event loop's session. asyncio closes it with the loop, as it closes all open generators."""
    loop = asyncio.get_running_loop()
    if loop not in _sessions:
        opened = _open_session(loop)
        _sessions[loop] = await anext(opened), opened
    return _sessions[loop][0]


async def _open_session(
    loop: asyncio.AbstractEventLoop,
) -> AsyncGenerator[aiohttp.ClientSession, None]:
    import aiohttp

    # our own limits bound the calls in flight; the system's resolver says why it finds no host
    connector = aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver())
    try:
        async with aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            yield session
    finally:
        _sessions.pop(loop, None)


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context with the trusted certificates: from SSL_CERT_FILE or SSL_CERT_DIR, else the system's and
    Mozilla's.
    """
    context = ssl.create_default_context()
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


# ---- one event loop for synchronous callers


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop that synchronous callers share, with this context, and return its result.

    Raises RuntimeError if it is called from that event loop itself, as in a callback, since it would wait for
    itself.
    """
    loop = _background()
    if asyncio._get_running_loop() is loop:
        work.close()
        raise RuntimeError(
            "a synchronous model call was made in a callback of another call, which would wait for itself: make it in "
            "another thread"
        )
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()  # in case the caller was interrupted; a finished future ignores it
        raise


def in_shared_loop() -> bool:
    """Return whether this code runs in the event loop that synchronous callers share."""
    return asyncio._get_running_loop() is _shared


def run_iterator(pieces: AsyncGenerator[T]) -> Iterator[T]:
    """Yield the items of an asynchronous generator, which runs in the shared event loop (see `run`).

    Closing this iterator closes the generator. An item must not be None.
    """

    async def result(step: Awaitable[Any]) -> Any:
        return await step

    try:
        while (piece := run(result(anext(pieces, None)))) is not None:
            yield piece
    finally:
        run(result(pieces.aclose()))


_lock = threading.Lock()
_shared: asyncio.AbstractEventLoop | None = None


def _background() -> asyncio.AbstractEventLoop:
    global _shared
    with _lock:
        if _shared is None:
            began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
            thread = threading.Thread(
                target=asyncio.run,
                args=(_serve(began),),
                name="ras-agent-calls",
                daemon=True,
            )
            thread.start()
            _shared, ended = began.result()
            atexit.register(_end, _shared, ended, thread)
        return _shared


async def _serve(
    began: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]],
) -> None:
    ended = asyncio.Event()
    began.set_result((asyncio.get_running_loop(), ended))
    await ended.wait()


def _end(
    loop: asyncio.AbstractEventLoop, ended: asyncio.Event, thread: threading.Thread
) -> None:
    loop.call_soon_threadsafe(ended.set)
    thread.join(_TO_END)


def _after_fork() -> None:
    """Drop the parent's connections and its event loop, whose thread does not exist in a forked process."""
    global _shared, _lock
    _shared, _lock = None, threading.Lock()
    _sessions.clear()
    atexit.unregister(_end)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
