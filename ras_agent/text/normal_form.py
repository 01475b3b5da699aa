"""Normalises Unicode text in linear time, and replaces characters that databases or encodings cannot hold."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Normalising sorts the marks on a letter in time quadratic in their number. So at most 30 in a row are kept, as in
# Unicode's stream-safe text format (UAX 15, section 13); no language needs more than a few.
_MOST_MARKS = 30
# The first character of a run is searched outside ASCII, which is fast.
_LONG_RUN = re.compile(rf"[^\x00-\x7f](?<=[^\w\s])[^\w\s\x00-\x7f]{{{_MOST_MARKS},}}+")

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def normal_form(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """Return `text` in the Unicode normal form `form`. After 30 combining marks in a row, further ones are
    dropped.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _LONG_RUN.sub(_without_most_marks, text))


def storable(text: str) -> str:
    """Return a text in which U+FFFD replaces each character that requests, files or databases cannot hold.

    These are the character 0 and lone surrogates, which come from replies and records that were cut inside a
    character, and from undecodable bytes.
    """
    plain = text.isascii() and "\0" not in text
    if plain:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def storable_number(number: int) -> bool:
    """Tell whether a whole number fits into 64 bits with a sign, which is the most that a checkpoint can store."""
    return -(1 << 63) <= number < 1 << 64


def encodable(text: str) -> str:
    """Return a text in which "?" replaces each lone surrogate, which UTF-8 cannot encode and tokenizers do not accept."""
    return text.encode("utf-8", "replace").decode()


def _without_most_marks(run: re.Match[str]) -> str:
    result = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MOST_MARKS:
            result.append(char)
    return "".join(result)
