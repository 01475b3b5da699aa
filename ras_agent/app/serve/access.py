"""Decides who may send requests. It checks tokens, each with the part of the index that it may read, and limits
requests.

A file of tokens is a JSON object. A key is a token, or `sha256:` and the hexadecimal SHA-256 of a token, so
that the file holds no secret. Its value is null for the whole index, or a filter over the metadata of passages:

    {"sha256:2bb8...": null, "sha256:9f86...": {"team": "sales"}}
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import string
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ras_agent.app.serve.errors import ApiError, response_of
from ras_agent.config.filters import Filter
from ras_agent.config.settings import TOKEN_VARIABLE
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON

_HASHED = "sha256:"
_SHORTEST = 16

UPLOADS = "/api/documents"
TOOLS = "/mcp"
# paths that show nothing of the index
_OPEN = frozenset(("/", "/health", "/ready", "/docs", "/openapi.json"))
_OPEN_BELOW = "/page/"

MOST_BYTES = 4 * 1024 * 1024
"""The maximum number of bytes of a request that is not an upload."""
MOST_TOOL_BYTES = 1024 * 1024
"""The maximum number of bytes of a request for a tool: the MCP package parses it in the event loop while all
other requests wait."""
BODY_SECONDS = 300.0
"""The seconds within which a request's body must arrive."""
_DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Identifies the sender of a request."""

    name: str = ""
    """distinguishes callers; "" if no token is needed"""
    filter: JSON | None = None
    """selects the passages that the caller may see; None for all"""

    @property
    def sees_all(self) -> bool:
        """Tell whether the caller may see the whole index."""
        return self.filter is None

    def joined_filter(self, filter: JSON | None) -> Any:
        """Return the filter for a request of this caller: a passage must pass both `filter` and the caller's
        own filter.

        It is a list of both, the only one of them, or None.
        """
        filters = [part for part in (self.filter, filter) if part]
        return filters if len(filters) > 1 else next(iter(filters), None)


class Access:
    """Finds the caller of a request by the hash of its token. If there are no tokens, everybody is admitted."""

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._callers = dict(callers)

    @property
    def open(self) -> bool:
        """Tell whether requests need no token."""
        return not self._callers

    @property
    def is_shared(self) -> bool:
        """Tell whether there are several tokens."""
        return len(self._callers) > 1

    def caller(self, authorization: str) -> Caller | None:
        """Return the caller for the header `Authorization: Bearer TOKEN`; None for an unknown token."""
        if self.open:
            return Caller()
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(
            token.strip().encode("utf-8", "surrogateescape")
        ).digest()
        match = None
        # all tokens are compared, each in constant time, so that the duration reveals nothing
        for token_digest, caller in self._callers.items():
            if hmac.compare_digest(token_digest, digest) and scheme.lower() == "bearer":
                match = caller
        return match


def read_access(host: str, file: Path | None, environment: Mapping[str, str]) -> Access:
    """Return the tokens that a file and the environment variable RAS_AGENT_SERVE_TOKEN define.

    Raises:
        SettingsError: for a file that cannot be used, for a short token, and if other machines can reach `host`
            although no token is set.
    """
    tokens = {} if file is None else _read(file)
    access = access_of(tokens, str(file))
    if token := environment.get(TOKEN_VARIABLE):
        access = access_of({**tokens, token: None}, TOKEN_VARIABLE)
    if access.open and not is_loopback(host):
        raise SettingsError(
            f"other machines reach {host}, so callers have to show a token: set {TOKEN_VARIABLE}, for example to the "
            "output of `openssl rand -hex 32`, or give --tokens FILE; or listen at 127.0.0.1"
        )
    return access


def access_of(tokens: Mapping[str, Any], where: str) -> Access:
    """Return the access for `tokens`, a mapping of tokens to their filter or None.

    Raises:
        SettingsError: for an invalid token or filter; the message names the place `where`.
    """
    callers: dict[bytes, Caller] = {}
    for token, bound in tokens.items():
        digest = _digest(token, where)
        if not (bound is None or (isinstance(bound, dict) and bound)):
            raise SettingsError(
                f'{where}: a token\'s value must be null, for the whole index, or a filter such as {{"team": "x"}}, '
                f"got {bound!r:.80}"
            )
        Filter.of(bound)
        # the name depends on the filter, so a token cannot reach threads that it began with another filter
        name = hashlib.sha256(
            digest + json.dumps(bound, sort_keys=True).encode()
        ).hexdigest()
        callers[digest] = Caller(name[:24], bound)
    return Access(callers)


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen at can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(file: Path) -> dict[str, Any]:
    try:
        tokens = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{file}: cannot be read as a file of tokens ({error}): correct it, or name another file"
        ) from error
    if not isinstance(tokens, dict) or not tokens:
        raise SettingsError(
            f'{file}: expected a JSON object from tokens to filters, such as {{"sha256:...": null}}'
        )
    return tokens


def _digest(token: str, where: str) -> bytes:
    if token.startswith(_HASHED):
        digits = token.removeprefix(_HASHED).lower()
        if len(digits) != 64 or not set(digits) <= set(string.hexdigits):
            raise SettingsError(
                f"{where}: {_HASHED} must be followed by the 64 hexadecimal digits of a token's SHA-256"
            )
        return bytes.fromhex(digits)
    if len(token) < _SHORTEST:
        wrong = f"a token has {_SHORTEST} characters at least, and one has {len(token)}"
        raise SettingsError(
            f"{where}: {wrong}; `openssl rand -hex 32` makes a good one"
        )
    return hashlib.sha256(token.encode()).digest()


class Guard:
    """Wraps an ASGI application: it admits callers and limits their requests.

    It stores the caller in the scope's state, where the routes read it. If `access` is None, an outer
    application admits callers, and may itself store a Caller in the state.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access | None,
        host: str,
        most_upload: int,
        origins: tuple[str, ...],
    ) -> None:
        self._app = app
        self._access = access
        self._most_upload = most_upload
        self._host = host
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        most = self._most_bytes(path)
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        state = scope.setdefault("state", {})
        try:
            if self._access is None:
                state.setdefault("caller", Caller())
            else:
                state["caller"] = self._caller(self._access, scope, path)
            await self._app(scope, _limit_body(receive, most), noting)
        except asyncio.CancelledError:
            if self._access is None:
                raise  # the surrounding application cancels its own work
            if not has_begun:  # the time to end is over; uvicorn closes a reply that has begun, and would log a traceback
                await response_of(
                    ApiError(
                        503, "the server is shutting down: ask again soon", "ending"
                    )
                )(scope, receive, send)
        except Exception as error:
            # handled here, because the server would log it with any keys in it
            response = response_of(error)
            if not has_begun:
                await response(scope, receive, send)

    def _most_bytes(self, path: str) -> int:
        if path == UPLOADS:
            return self._most_upload or MOST_BYTES
        return MOST_TOOL_BYTES if path == TOOLS else MOST_BYTES

    def _caller(self, access: Access, scope: Scope, path: str) -> Caller | None:
        """Return the caller; None if no token was sent and the path needs none.

        Without tokens, a foreign web page could send requests through its user's browser. Such a request is
        refused because its Origin is that page's, or because its Host is the page's name, if this name was made
        to lead to this machine.

        Raises:
            ApiError: if the caller is not admitted.
        """
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        origin = headers.get("origin", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            asker = urlsplit(origin).netloc
        except ValueError:
            raise ApiError(
                400,
                "the header Host or Origin is not an address: set it to the server's own address",
                "bad_request",
            ) from None
        if access.open and not (is_loopback(name) or name == self._host):
            raise ApiError(
                421,
                f"the Host header names {host!r}, not this server: use the address that the server listens at",
                "wrong_host",
            )
        changes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if (
            access.open
            and origin
            and changes
            and origin not in self._origins
            and asker != host
        ):
            raise ApiError(
                403,
                f"pages of {origin} may not use this server: to allow them, start it with --cors {origin}",
                "wrong_origin",
            )
        caller = access.caller(headers.get("authorization", ""))
        if caller is None and not (path in _OPEN or path.startswith(_OPEN_BELOW)):
            raise ApiError(
                401,
                "the request has no token that the server knows: send Authorization: Bearer TOKEN",
                "invalid_api_key",
            )
        return caller


async def _drain(receive: Receive) -> None:
    """Read the rest of a client's request for a while. A client whose request is cut off would not read the
    error.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (await receive()).get("more_body"):
                pass


def _limit_body(receive: Receive, most: int) -> Receive:
    """Wrap `receive` so that it refuses a body of more than `most` bytes, and a body that does not arrive in time."""
    received, complete, until = 0, False, monotonic() + BODY_SECONDS

    async def bounded() -> Message:
        nonlocal received, complete
        if complete:  # the next message says that the client has left
            return await receive()
        try:
            async with asyncio.timeout(until - monotonic()):
                message = await receive()
        except TimeoutError:
            raise ApiError(
                408,
                "the request's body did not arrive in time: send it again",
                "timeout",
            ) from None
        received += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if received > most:
            if not complete:
                await _drain(receive)
            wrong = f"the request has more than {most:,} bytes, the most that this path takes: send a smaller one"
            raise ApiError(413, wrong, "too_large")
        return message

    return bounded
