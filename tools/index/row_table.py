"""Lists the passages of an index in corpus order: one fixed-width row each, so that a million take 52 MB."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.records import Passage
from ras_agent.tools.index.logs import Places

ROW = np.dtype(
    [
        ("id", "<u8"),  # hash of the passage's id
        ("document", "<u8"),  # hash of its document's id
        ("text", "<u8"),  # hash of its indexed text: equal texts share a vector
        ("start", "<i8"),  # place in the passage log
        ("size", "<i4"),
        ("line_sum", "<u4"),  # checksum of what the passage log has there
        ("vector", "<i8"),  # number in the vector log
        ("vector_sum", "<u4"),  # checksum of that vector
    ]
)
Table = npt.NDArray[np.void]

_NO_VECTOR = -1


def indexed_text(passage: Passage) -> str:
    """Return title and text as one: a title often names what the text then calls "he" or "the city"."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def hash_of(text: str) -> int:
    """Return 64 bits that find candidates; callers compare what they found with what was asked for."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def new_rows(passages: Sequence[Passage], places: Places) -> Table:
    """Return rows of passages just written at `places`, which have no vectors yet."""
    table = np.zeros(len(passages), dtype=ROW)
    table["id"] = [hash_of(passage.id) for passage in passages]
    table["document"] = [hash_of(passage.document_id) for passage in passages]
    table["text"] = [hash_of(indexed_text(passage)) for passage in passages]
    table["start"], table["size"], table["line_sum"] = places
    table["vector"] = _NO_VECTOR
    return table


def find_rows(column: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Ints:
    """Return for each wanted value the first row whose `column` holds it, -1 for none; shape (len(wanted),).

    Reads the column once and sorts only the wanted values.
    """
    values, inverse = np.unique(wanted, return_inverse=True)
    found = np.full(len(values), -1, dtype=np.int64)
    if len(values):
        at = np.searchsorted(values, column).clip(max=len(values) - 1)
        rows = np.flatnonzero(values[at] == column)[::-1]  # backwards, so that the first row is written last
        found[at[rows]] = rows
    return found[inverse]


def fingerprint(table: Table) -> str:
    """Return a digest of ids and texts in corpus order: equal for indexes of the same corpus."""
    digest = blake2b(digest_size=16)
    for name in ("id", "text"):
        digest.update(np.ascontiguousarray(table[name]).data)
    return digest.hexdigest()
