"""The secrets that a model holds, made unreadable in what its server sends back.

A server knows what it was sent: a key, or a name with a password. It may say it again whole, in part, in base64 as it
stood in a header, or over several lines, in an error or in a reply.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from string import ascii_uppercase
from typing import Any
from urllib.parse import quote

MASK = "***"
SHORTEST = 8
"""A shorter secret is the dummy of a local server, as in OPENAI_API_KEY=x, and would be found in every word."""
PART = 12
"""Letters of a secret in a row that are masked as the whole is."""
# of base64, the characters that also depend on what stands before the secret, by how many bytes these are beyond threes
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


class HeldSecrets:
    """Secrets that are masked in texts: whole, from twelve letters on, in base64, escaped, spaced, in capitals."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: dict[str, None] = {}
        for secret in secrets:
            if len(secret) >= SHORTEST:
                forms.update(dict.fromkeys(_forms(secret)))
        self._forms = [form for form in forms if len(form) >= SHORTEST]
        self._parts = {part for form in self._forms for part in _parts(form)}

    def masked(self, text: str) -> str:
        """Return a text with `***` in place of what tells a secret."""
        return _without(text, self._places(text))

    def __bool__(self) -> bool:
        return bool(self._forms)

    def masked_in(self, value: Any) -> Any:
        """Return a value of JSON with its texts masked."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, Mapping):
            return {key: self.masked_in(item) for key, item in value.items()}
        return [self.masked_in(item) for item in value] if isinstance(value, list) else value

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
        """Return where the text tells a secret: beginnings and ends, in order, apart."""
        if not self._parts:
            return []
        letters = _folded(text)
        spans = [span for part in self._parts for span in _occurrences(part, letters)]
        if not spans:
            return []
        places = [place for place, char in enumerate(text) if not char.isspace()]
        joined: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            first, behind = places[start], places[end - 1] + 1
            if joined and first < joined[-1][1]:
                last, until = joined.pop()
                first, behind = last, max(until, behind)
            joined.append((first, behind))
        return joined

    def _possible_start(self, text: str) -> int:
        """Return where the end of a text begins that a secret holds, too."""
        start, tail = len(text), ""
        for place in range(len(text) - 1, -1, -1):
            char = text[place].translate(_LOWER)
            if char.isspace():
                continue
            tail = char + tail
            if not any(tail in form for form in self._forms):
                break
            start = place
        return start


@lru_cache(64)
def held(secrets: tuple[str, ...]) -> HeldSecrets:
    """Return what masks these secrets."""
    return HeldSecrets(secrets)


def _parts(form: str) -> Iterator[str]:
    """Yield the parts by which a form of a secret is found; a short one is found whole."""
    length = min(PART, len(form))
    for start in range(len(form) - length + 1):
        yield form[start : start + length]


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret, and what it is in base64, each as an address, JSON, HTML and Python write it, too."""
    for form in (secret, *_in_base64(secret)):
        yield _folded(form)
        for write in _WRITERS:
            yield _folded(write(form))


def _folded(text: str) -> str:
    """Return a text without white space and capital letters, by which forms are compared."""
    return "".join(text.split()).translate(_LOWER)


def _in_base64(secret: str) -> Iterator[str]:
    """Yield what every text in base64 holds in which the secret stands, wherever that is."""
    data = secret.encode()
    for shift, skipped in enumerate(_BEFORE):
        encoded = b64encode(b"\0" * shift + data).decode()
        whole = encoded.rstrip("=")
        is_open = whole != encoded  # the last character depends on what follows
        form = whole[skipped : len(whole) - is_open]
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _occurrences(part: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _without(text: str, places: list[tuple[int, int]]) -> str:
    """Return a text with `***` in these places."""
    if not places:
        return text
    kept = pairwise((0, *(edge for place in places for edge in place), len(text)))
    pieces = [text[start:end] for start, end in list(kept)[::2]]
    return MASK.join(pieces)
