"""Who may ask: tokens, and the part of the index that each may see.

A file of tokens is a JSON object. A key is a token, or `sha256:` and the hexadecimal SHA-256 of one, so that the file
holds no secret; its value is null for the whole index, or a filter over the metadata of passages:

    {"sha256:2bb8...": null, "sha256:9f86...": {"team": "sales"}}
"""

from __future__ import annotations

import hashlib
import hmac
import json
import string
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ras_agent.errors import SettingsError
from ras_agent.filters import Filter
from ras_agent.records import JSON
from ras_agent.settings import TOKEN_VARIABLE

_HASHED = "sha256:"
_SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request. name: tells callers apart; empty where nobody needs a token. filter: what he may see."""

    name: str = ""
    filter: JSON | None = None

    @property
    def sees_all(self) -> bool:
        """Tell whether nothing is hidden from the caller."""
        return self.filter is None

    def joined_filter(self, filter: JSON | None) -> Any:
        """Return the filter for a request: a list of `filter` and the caller's own, which both have to admit a passage.

        The one of them that there is, where the other is missing; None for no filter at all.
        """
        filters = [part for part in (self.filter, filter) if part]
        return filters if len(filters) > 1 else next(iter(filters), None)


class Access:
    """Tokens of the callers, by their hashes. Without tokens, everybody is let in."""

    def __init__(self, callers: Mapping[bytes, Caller]) -> None:
        self._callers = dict(callers)

    @property
    def open(self) -> bool:
        """Tell whether no token is needed."""
        return not self._callers

    @property
    def is_shared(self) -> bool:
        """Return whether callers have tokens of their own."""
        return len(self._callers) > 1

    def caller(self, authorization: str) -> Caller | None:
        """Return the caller of the header `Authorization: Bearer TOKEN`; None for an unknown token."""
        if self.open:
            return Caller()
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        match = None
        # all are compared, each in constant time: how long it takes tells nothing
        for token_digest, caller in self._callers.items():
            if hmac.compare_digest(token_digest, digest) and scheme.lower() == "bearer":
                match = caller
        return match


def read_access(host: str, file: Path | None, environment: Mapping[str, str]) -> Access:
    """Return the access that a file of tokens and the environment give.

    Raises SettingsError for a file that cannot be used, for a short token, and where other machines reach `host` and no
    token is set.
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
    """Return the access that tokens give, each with its filter or None. Raises SettingsError, which names `where`."""
    callers: dict[bytes, Caller] = {}
    for token, bound in tokens.items():
        digest = _digest(token, where)
        if not (bound is None or (isinstance(bound, dict) and bound)):
            raise SettingsError(
                f'{where}: a token\'s value is null, for the whole index, or a filter such as {{"team": "x"}}, '
                f"got {bound!r:.80}"
            )
        Filter.of(bound)
        # what the token began while it was bound otherwise is out of its reach
        name = hashlib.sha256(digest + json.dumps(bound, sort_keys=True).encode()).hexdigest()
        callers[digest] = Caller(name[:24], bound)
    return Access(callers)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(file: Path) -> dict[str, Any]:
    try:
        tokens = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file}: cannot be read as a file of tokens: {error}") from error
    if not isinstance(tokens, dict) or not tokens:
        raise SettingsError(f'{file}: expected a JSON object from tokens to filters, such as {{"sha256:...": null}}')
    return tokens


def _digest(token: str, where: str) -> bytes:
    if token.startswith(_HASHED):
        digits = token.removeprefix(_HASHED).lower()
        if len(digits) != 64 or not set(digits) <= set(string.hexdigits):
            raise SettingsError(f"{where}: {_HASHED} is followed by the 64 hexadecimal digits of a token's SHA-256")
        return bytes.fromhex(digits)
    if len(token) < _SHORTEST:
        raise SettingsError(
            f"{where}: a token has {_SHORTEST} characters at least, and one has {len(token)}; `openssl rand -hex 32` "
            "makes a good one"
        )
    return hashlib.sha256(token.encode()).digest()
