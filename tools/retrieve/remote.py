"""Queries graph databases over HTTP: bounded in time and size, without redirects, with errors that give a remedy."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from ras_agent.contracts.errors import SearchError, SettingsError
from ras_agent.tools.chat.http import trusted

PATIENCE = 30.0
"""The maximum number of seconds that one query may take."""
_MOST = 16 * 2**20
_PIECE = 64 * 1024
_EXCERPT = 200


class RemoteAddress(NamedTuple):
    """Holds a database's address without its login, and the user and password from it."""

    url: str
    user: str = ""
    password: str = ""

    @property
    def shown(self) -> str:
        """Return the address without its query string, which may contain a key."""
        return self.url.partition("?")[0]

    @property
    def headers(self) -> dict[str, str]:
        """Return the HTTP header that authorises the user; {} without a user."""
        if not self.user:
            return {}
        pair = f"{self.user}:{self.password}"
        encoded = b64encode(pair.encode()).decode()
        return {"Authorization": f"Basic {encoded}"}


def remote_address(text: str, schemes: tuple[str, ...]) -> RemoteAddress:
    """Parse an address. Raises SettingsError if it has no host, or its scheme is not one of `schemes`, such as
    "https".
    """
    try:
        parts = urlsplit(text)
        host = parts.hostname
        port = parts.port
    except ValueError as error:
        raise SettingsError(
            f"{error}: write the address as {schemes[0]}://host"
        ) from error
    if parts.scheme not in schemes or not host:
        known = ", ".join(f"{scheme}://" for scheme in schemes)
        raise SettingsError(
            f"{parts.scheme or text!r} is not the address of a graph: write one that begins with {known} and names a host"
        )
    place = f"[{host}]" if ":" in host else host
    if port is not None:
        place = f"{place}:{port}"
    bare = parts._replace(netloc=place, fragment="")
    return RemoteAddress(
        url=urlunsplit(bare),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def post(
    address: RemoteAddress, body: bytes, headers: Mapping[str, str], url: str = ""
) -> Any:
    """Post a body and return the parsed JSON reply. Raises SearchError, which names the address and a remedy.

    Args:
        headers: sent in addition to the address's authorisation.
        url: the URL to post to; by default the address itself.
    """
    request = Request(url or address.url, body, {**address.headers, **headers})
    opener = build_opener(_NoRedirects, HTTPSHandler(context=trusted()))
    where = address.shown
    try:
        with opener.open(request, timeout=PATIENCE) as response:
            data = _whole(response, where)
    except HTTPError as error:
        raise _refused(error, where) from error
    except TimeoutError as error:
        raise _too_slow(where) from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _too_slow(where) from error
        raise SearchError(
            f"{where} cannot be reached ({error.reason}): start the server, or correct the address"
        ) from error
    except (OSError, HTTPException) as error:
        raise SearchError(
            f"{where} broke off the connection ({error!r}): ask again, or see the server's log"
        ) from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        begin = _excerpt(data)
        raise SearchError(
            f"{where} answered with something that is not JSON ({begin}): give the address that takes queries"
        ) from error


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would send the user's key to another address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _whole(response: HTTPResponse, where: str) -> bytes:
    """Read a whole response. Raises SearchError if it is too large or arrives too slowly."""
    end = time.monotonic() + PATIENCE
    pieces = []
    size = 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > _MOST:
            raise SearchError(
                f"{where} answered with more than {_MOST // 2**20} MB: use a smaller graph"
            )
        if time.monotonic() > end:
            raise _too_slow(where)
    return b"".join(pieces)


def _too_slow(where: str) -> SearchError:
    return SearchError(
        f"{where} gave no answer within {PATIENCE:.0f} s: ask again when it is less busy"
    )


def _refused(error: HTTPError, where: str) -> SearchError:
    """Return an error that says why a server refused a query, with advice."""
    said = _excerpt(error.read(_EXCERPT * 4))
    if error.code in (401, 403):
        remedy = "give user and password in the address, as in //user:password@host"
    elif error.code in (301, 302, 303, 307, 308):
        target = error.headers.get("Location", "which the reply does not name")
        remedy = f"give the address to which it redirects, {target}"
    elif error.code == 404:
        remedy = "correct the path of the address"
    elif error.code in (429, 503):
        remedy = "ask again later, and less often"
    else:
        remedy = "see the server's log"
    return SearchError(
        f"{where} answered {error.code} ({said or error.reason}): {remedy}"
    )


def _excerpt(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    line = " ".join(text.split())
    return line[:_EXCERPT]
