"""Masks the secrets of models in texts: in a spec, in an error, and in a server's replies.

A server knows the key, or the login, that it was sent. It may repeat it in an error or a reply: whole, in part, in
base64 as in a header, or broken over several lines.
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

from ras_agent.config.address import without_login
from ras_agent.tools.chat.runnables import bound_arguments, chat_models_in

MASK = "***"
SHORTEST = 8
"""The minimum number of characters of a secret that is masked.

A shorter one is a local server's dummy, as in OPENAI_API_KEY=x, and masking it would mask parts of ordinary words.
"""
PART = 12
"""The number of successive characters of a secret that are masked even without the rest."""
URL_ATTRIBUTES = (
    "openai_api_base",
    "base_url",
    "anthropic_api_url",
    "azure_endpoint",
    "endpoint_url",
)
"""Attributes in which the chat models of LangChain's providers hold their address."""
BETWEEN_URLS = re.compile(r",\s*(?=https?://)")
# first characters of the base64 that also depend on the bytes before the secret, by the number of these modulo 3
_BEFORE = (0, 2, 3)
# not str.lower(), which turns some letters into two
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
# patterns of credentials, and their replacements
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
    """Masks a set of secrets in texts, whether they are whole, partial, in base64, escaped or spaced."""

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
        """Return a text with `***` in place of each secret or part of one."""
        return _without(text, self._places(text))

    def masked_in(self, value: Any) -> Any:
        """Return a copy of a JSON value in which every text is masked."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {key: self.masked_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.masked_in(item) for item in value]
        return value

    def settled(self, text: str) -> tuple[str, int]:
        """Return the part of a growing text that can be shown already, masked, and its length before masking.

        The rest is held back, because the end of the text may be the beginning of a secret.
        """
        places = self._places(text)
        end = self._possible_start(text)
        for start, behind in reversed(places):
            if behind > end:
                end = min(end, start)
        settled = [place for place in places if place[1] <= end]
        return _without(text[:end], settled), end

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) offsets of secrets and their parts in a text, in order and without overlaps."""
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
        """Return the offset of the longest suffix of a text that occurs in a secret; the text's length if there is
        none.
        """
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
    """Yield the substrings of a secret's spelling that are masked: each run of twelve characters, or all of a shorter
    one.
    """
    length = min(PART, len(form))
    for start in range(len(form) - length + 1):
        yield form[start : start + length]


def _forms(secret: str) -> Iterator[str]:
    """Yield the spellings of a secret: plain and in base64, each also as escaped in URLs, JSON and HTML."""
    for form in (secret, *_in_base64(secret)):
        yield _folded(form)
        for write in _WRITERS:
            yield _folded(write(form))


def _folded(text: str) -> str:
    """Return a text in lower case without white space, to compare spellings."""
    return "".join(text.split()).translate(_LOWER)


def _in_base64(secret: str) -> Iterator[str]:
    """Yield the characters that base64 produces for a secret at each alignment, whatever stands around it."""
    data = secret.encode()
    for shift, skipped in enumerate(_BEFORE):
        encoded = b64encode(b"\0" * shift + data).decode()
        form = encoded[skipped:].rstrip("=")
        if encoded.endswith("="):  # the last character depends on the next byte
            form = form[:-1]
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _without(text: str, places: list[tuple[int, int]]) -> str:
    """Return a text with `***` in place of the given (start, end) ranges."""
    pieces = []
    end = 0
    for start, behind in places:
        pieces.append(text[end:start])
        end = behind
    return MASK.join([*pieces, text[end:]])


_held = lru_cache(64)(HeldSecrets)


def printable(spec: str) -> str:
    """Return a spec without the parts of a URL that may contain a secret: the login and the query."""
    bare = _USERINFO.sub("", spec)
    return without_login(_QUERY.sub("", bare))


def without_secrets(text: str, model: object = None) -> str:
    """Return `text` with `***` in place of everything that looks like a credential, and of the secrets that `model`
    holds.
    """
    text = without_login(secrets_of(model).masked(text))
    for look, replacement in _LOOKS:
        text = look.sub(replacement, text)
    return text


def secrets_of(model: object) -> HeldSecrets:
    """Return the secrets that a model and its fallbacks hold: keys, and those in headers and addresses."""
    secrets = dict.fromkeys(_secrets(model))
    return _held(tuple(secrets))


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
    """Yield the password in an address, and the base64 of name and password that is sent in a header."""
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
    """Yield the secrets in the value of a model's field: a key, or a tuple with keys in it."""
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
