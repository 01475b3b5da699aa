"""Checks before any path sees a request: the caller, the page it comes from, its size and its speed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ras_agent.app.serve.access import Access, Caller, is_loopback
from ras_agent.app.serve.errors import ApiError, response_of

UPLOADS = "/api/documents"
# paths that show nothing of the index
_OPEN = frozenset(("/", "/health", "/ready", "/docs", "/openapi.json"))
_OPEN_BELOW = "/page/"

MOST_BYTES = 4 * 1024 * 1024
"""of a request that is no upload"""
BODY_SECONDS = 300.0
"""in which a request's body has to arrive"""
_DRAIN_SECONDS = 5.0


class Guard:
    """Middleware that lets callers in and bounds their requests.

    The caller is left in the scope's state, where paths find him.
    access: None where an application around this one lets callers in; it may leave a Caller in the state itself.
    """

    def __init__(
        self, app: ASGIApp, *, access: Access | None, host: str, most_upload: int, origins: tuple[str, ...]
    ) -> None:
        self._app, self._access = app, access
        self._host, self._origins = host, origins
        self._most_upload = most_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        most = (self._most_upload or MOST_BYTES) if path == UPLOADS else MOST_BYTES
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            if self._access is None:
                scope.setdefault("state", {}).setdefault("caller", Caller())
            else:
                self._check_place(self._access, scope, headers)
                self._let_in(self._access, scope, path, headers.get("authorization", ""))
            await self._app(scope, _limit_body(receive, most), noting)
        except asyncio.CancelledError:
            if self._access is None:
                raise  # an application around this one cancels what is its own
            if not has_begun:  # its time to end is over; uvicorn closes what has begun, and would log a traceback
                await response_of(ApiError(503, "the server is ending: ask again soon", "ending"))(scope, receive, send)
        except Exception as error:  # not left to the server, which would log it with the keys that it may hold
            response = response_of(error)
            if not has_begun:
                await response(scope, receive, send)

    def _check_place(self, access: Access, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse a request that a page from elsewhere sends through its user's browser to a server without tokens.

        Such a page names its own origin or, where its name was made to lead to this machine, its own host.
        """
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            asker = urlsplit(headers.get("origin", "")).netloc
        except ValueError:
            raise ApiError(400, "Host and Origin: one of them is no address", "bad_request") from None
        if not access.open:
            return
        if not (is_loopback(name) or name == self._host):
            raise ApiError(421, f"this server is not {host!r}: ask it by the address that it serves", "wrong_host")
        origin = headers.get("origin")
        changes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if origin and changes and origin not in self._origins and asker != host:
            raise ApiError(403, f"pages of {origin} may not ask: --cors {origin} lets them", "wrong_origin")

    def _let_in(self, access: Access, scope: Scope, path: str, authorization: str) -> None:
        caller = access.caller(authorization)
        if caller is None and not (path in _OPEN or path.startswith(_OPEN_BELOW)):
            raise ApiError(401, "show a token that the server knows: Authorization: Bearer TOKEN", "invalid_api_key")
        scope.setdefault("state", {})["caller"] = caller


async def _drain(receive: Receive) -> None:
    """Read what a client still sends, for a while: a client that is cut off in the middle does not see the reason."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (await receive()).get("more_body"):
                pass


def _limit_body(receive: Receive, most: int) -> Receive:
    """Wrap `receive`, to refuse a body of more than `most` bytes and one that does not arrive in time."""
    received, complete, until = 0, False, monotonic() + BODY_SECONDS

    async def bounded() -> Message:
        nonlocal received, complete
        if complete:  # what comes now is that the client leaves
            return await receive()
        try:
            async with asyncio.timeout(until - monotonic()):
                message = await receive()
        except TimeoutError:
            raise ApiError(408, "the request's body did not arrive in time", "timeout") from None
        received += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if received > most:
            if not complete:
                await _drain(receive)
            wrong = f"the request has more than {most:,} bytes, which is the most that this path takes"
            raise ApiError(413, wrong, "too_large")
        return message

    return bounded
