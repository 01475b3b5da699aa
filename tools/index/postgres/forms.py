"""Gives passages, terms and vectors the forms that PostgreSQL stores."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ras_agent.arrays import Floats
from ras_agent.records import Passage

_MOST_POSITIONS = 255
_LONGEST_TERM = 2000  # bytes; a lexeme has at most 2046
_UNSTORABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")


def storable(text: str) -> str:
    """Return `text` with a replacement character for the two things that PostgreSQL's text cannot hold.

    They are the character 0 and halves of surrogate pairs.
    """
    return text.translate(_UNSTORABLE)


def query_of(terms: Iterable[str]) -> str:
    """Return a tsquery that finds what holds one of the terms."""
    return " | ".join(map(_lexeme, terms))


def vector_literal(vector: Floats) -> str:
    """Return a vector as pgvector reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _lexeme(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def clipped(term: str) -> str:
    """Return a term as it is stored: its first 2,000 bytes."""
    return term if len(term) < _LONGEST_TERM // 4 else term.encode()[:_LONGEST_TERM].decode(errors="ignore")


def tsvector(terms: Iterable[str]) -> str:
    """Return a tsvector that holds each term as often as it occurs."""
    counts = Counter(map(clipped, terms))
    return " ".join(
        f"{_lexeme(term)}:{','.join(map(str, range(1, min(count, _MOST_POSITIONS) + 1)))}"
        for term, count in counts.items()
    )


def stored_form(passage: Passage) -> Passage:
    """Return a passage as the database gives it back, so that it can be compared with what is there."""
    metadata = json.loads(json.dumps(passage.metadata), object_hook=_storable_keys)
    return Passage(
        storable(passage.id), storable(passage.text), storable(passage.title), storable(passage.document_id), metadata
    )


def _storable_keys(value: dict[str, Any]) -> dict[str, Any]:
    return {storable(name): _storable_value(one) for name, one in value.items()}


def _storable_value(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    return [_storable_value(one) for one in value] if isinstance(value, list) else value


def digest_of(text: str) -> bytes:
    """Return what equal texts are known by."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
