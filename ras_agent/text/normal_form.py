"""Normalises text as Unicode does, in linear time, and replaces characters that no database holds."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Normalising sorts the marks on a letter, in time quadratic in their number. So it gets 30 in a row, as Unicode's own
# stream-safe text format allows (UAX 15, section 13); no language needs more than a few.
_MOST_MARKS = 30
# The first sign is looked for among those beyond ASCII, which is fast.
_LONG_RUN = re.compile(rf"[^\x00-\x7f](?<=[^\w\s])[^\w\s\x00-\x7f]{{{_MOST_MARKS},}}+")

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def normal_form(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """Return the normal form `form` of `text`. Of more than 30 combining marks in a row, the later ones are dropped."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _LONG_RUN.sub(_without_most_marks, text))


def storable(text: str) -> str:
    """Return a text with U+FFFD for characters that no request or file, or no database, holds.

    That are halves of characters, which come from replies and records that were cut inside one, and from undecodable
    bytes; and the character 0.
    """
    plain = text.isascii() and "\0" not in text
    if plain:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def storable_number(number: int) -> bool:
    """Tell whether a whole number has at most 64 bits, as many as a checkpoint keeps."""
    return -(1 << 63) <= number < 1 << 64


def encodable(text: str) -> str:
    """Return a text with "?" for lone surrogates, which UTF-8 cannot encode and tokenizers do not take."""
    return text.encode("utf-8", "replace").decode()


def _without_most_marks(run: re.Match[str]) -> str:
    result = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MOST_MARKS:
            result.append(char)
    return "".join(result)
