"""Secrets of models, made unreadable in texts: in a spec, in an error, and in the replies of a server.

A server knows the key, or the name and password, that it was sent. It may say it again whole, in part, in base64 as it
stood in a header, or over several lines, in an error or in a reply.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from string import ascii_uppercase
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from ras_agent.address import without_login
from ras_agent.tools.chat.runnables import bound_arguments, chat_models_in

MASK = "***"
SHORTEST = 8
"""A shorter secret is the dummy of a local server, as in OPENAI_API_KEY=x, and would be found in every word."""
PART = 12
"""Letters of a secret in a row that are masked as the whole is."""
URL_ATTRIBUTES = (
    "openai_api_base",
    "base_url",
    "anthropic_api_url",
    "azure_endpoint",
    "endpoint_url",
)
"""Where chat models of LangChain's providers hold their address"""
BETWEEN_URLS = re.compile(r",\s*(?=https?://)")
# of base64, the characters that also depend on the bytes before the secret, by how many these are beyond threes
_BEFORE = (0, 2, 3)
# not str.lower(), which makes two letters of one or other
_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}
_WRITERS: tuple[Callable[[str], str], ...] = (
    quote,
    partial(quote, safe=""),
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    html.escape,
)

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"\?[^#\s]*")
# how credentials look, and their replacements
_LOOKS = (
    (
        re.compile(
            r"(?i)([?&][\w.-]{0,40}(?:key|token|secret|password|signature|sig)=)[^&#\s\"'<>]+"
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(r"(?i)\b(bearer\s+|api[_-]?key[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]+"),
        rf"\1{MASK}",
    ),
    (re.compile(r"\b(?:sk|pk|xai|gsk|hf)[-_][\w*-]{8,}"), MASK),
)


class HeldSecrets:
    """Secrets that are masked in texts: whole, from twelve letters on, in base64, escaped, spaced, in capitals."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms: set[str] = set()
        self._parts: set[str] = set()
        for secret in secrets:
            if len(secret) < SHORTEST:
                continue
            for form in _forms(secret):
                if len(form) >= SHORTEST:
                    self._forms.add(form)
                    self._parts.update(_parts(form))
        self._lengths = sorted({len(part) for part in self._parts})

    def __bool__(self) -> bool:
        return bool(self._forms)

    def masked(self, text: str) -> str:
        """Return a text with `***` in place of each part of a secret."""
        return _without(text, self._places(text))

    def masked_in(self, value: Any) -> Any:
        """Return a value of JSON with its texts masked."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {key: self.masked_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.masked_in(item) for item in value]
        return value

    def settled(self, text: str) -> tuple[str, int]:
        """Return the masked beginning of a text that goes on, and how much of the text that is.

        The rest is not known before more of the text is: its end may begin a secret.
        """
        places = self._places(text)
        end = self._possible_start(text)
        for start, behind in reversed(places):
            if behind > end:
                end = min(end, start)
        settled = [place for place in places if place[1] <= end]
        return _without(text[:end], settled), end

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return the beginnings and ends of the parts of secrets in a text, in order, apart."""
        if not self._parts:
            return []
        letters = _folded(text)
        if not any(part in letters for part in self._parts):
            return []
        places = [place for place, char in enumerate(text) if not char.isspace()]
        joined: list[tuple[int, int]] = []
        for start in range(len(letters)):
            for length in self._lengths:
                end = start + length
                if letters[start:end] not in self._parts or end > len(letters):
                    continue
                first = places[start]
                behind = places[end - 1] + 1
                if joined and first < joined[-1][1]:
                    first, until = joined.pop()
                    behind = max(until, behind)
                joined.append((first, behind))
        return joined

    def _possible_start(self, text: str) -> int:
        """Return where the end of a text begins that a secret holds, too."""
        start = len(text)
        tail = ""
        for place in reversed(range(len(text))):
            char = text[place].translate(_LOWER)
            if char.isspace():
                continue
            tail = char + tail
            if not any(tail in form for form in self._forms):
                break
            start = place
        return start


def _parts(form: str) -> Iterator[str]:
    """Yield the parts by which a form of a secret is found; a short one is found whole."""
    length = min(PART, len(form))
    for start in range(len(form) - length + 1):
        yield form[start : start + length]


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret, and its base64, each as an address, JSON, HTML and Python write it, too."""
    for form in (secret, *_in_base64(secret)):
        yield _folded(form)
        for write in _WRITERS:
            yield _folded(write(form))


def _folded(text: str) -> str:
    """Return a text without white space and capital letters, by which forms are compared."""
    return "".join(text.split()).translate(_LOWER)


def _in_base64(secret: str) -> Iterator[str]:
    """Yield the characters that every text in base64 holds in which the secret stands, wherever that is."""
    data = secret.encode()
    for shift, skipped in enumerate(_BEFORE):
        encoded = b64encode(b"\0" * shift + data).decode()
        form = encoded[skipped:].rstrip("=")
        if encoded.endswith("="):  # the last character depends on the next byte
            form = form[:-1]
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _without(text: str, places: list[tuple[int, int]]) -> str:
    """Return a text with `***` in these places."""
    pieces = []
    end = 0
    for start, behind in places:
        pieces.append(text[end:start])
        end = behind
    return MASK.join([*pieces, text[end:]])


@lru_cache(64)
def _held(secrets: tuple[str, ...]) -> HeldSecrets:
    return HeldSecrets(secrets)


def printable(spec: str) -> str:
    """Return a role spec without the parts of a URL that may hold a secret: user info and query."""
    return without_login(_QUERY.sub("", _USERINFO.sub("", spec)))


def without_secrets(text: str, model: object = None) -> str:
    """Return `text` with `***` for everything that looks like a credential and for the secrets that `model` holds."""
    text = without_login(secrets_of(model).masked(text))
    for look, replacement in _LOOKS:
        text = look.sub(replacement, text)
    return text


def secrets_of(model: object) -> HeldSecrets:
    """Return the secrets that a model holds: its keys, those of its fallbacks, and those in headers and addresses."""
    return _held(tuple(dict.fromkeys(_secrets(model))))


def _secrets(model: object) -> Iterator[str]:
    for one in chat_models_in(model) or (model,):
        for name in URL_ATTRIBUTES:
            stated = str(getattr(one, name, None) or "")
            for address in BETWEEN_URLS.split(stated):
                yield from _in_address(address)
        for value in getattr(one, "__dict__", {}).values():
            yield from _revealed(value)
        yield from _header_values(getattr(one, "default_headers", None))
    for arguments in bound_arguments(model):
        yield from _header_values(arguments.get("extra_headers"))


def _in_address(address: str) -> Iterator[str]:
    """Yield the password of an address, and the header that is sent for its user: name and password in base64."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    if parts.password:
        password = unquote(parts.password)
        user = unquote(parts.username or "")
        yield password
        yield b64encode(f"{user}:{password}".encode()).decode()


def _revealed(value: object) -> Iterator[str]:
    """Yield the secrets in a field of a model: a key, or places with a key each."""
    if isinstance(value, tuple):
        for part in value:
            yield from _revealed(part)
        return
    reveal = getattr(value, "get_secret_value", None)
    secret = reveal() if callable(reveal) else None
    if isinstance(secret, str):
        yield secret


def _header_values(headers: object) -> Iterator[str]:
    if not isinstance(headers, Mapping):
        return
    for value in headers.values():
        if isinstance(value, str):
            yield value
