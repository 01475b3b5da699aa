"""Records which slots of a segment have which keys: terms with their counts, or values of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.tools.index.passages import Hashes

Slots = npt.NDArray[np.int32]
Counts = npt.NDArray[np.uint32]


class Postings(NamedTuple):
    """Holds the slots of each key, key by key; the arrays may be memory-mapped.

    Key number i occurs in the slots `slots[starts[i]:starts[i + 1]]`, as often as `counts` says.
    """

    keys: Hashes
    """(K,), ascending hashes."""
    starts: npt.NDArray[np.int64]
    slots: Slots
    counts: Counts

    @classmethod
    def of(cls, keys: Hashes, slots: Slots, counts: Counts) -> Self:
        """Build postings from arrays of equal length; the slots of each key must ascend."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        is_first = np.ones(len(keys), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        firsts = np.flatnonzero(is_first)
        starts = np.append(firsts, len(keys))
        return cls(ordered[firsts], starts, slots[order], counts[order])

    @classmethod
    def of_terms(cls, blobs: Sequence[bytes]) -> Self:
        """Make postings of the terms of each slot, in the form stored in its row."""
        # a row with n terms has 2n words of hashes, followed by n counts
        words = np.frombuffer(b"".join(blobs), "<u4")
        terms = _sizes(blobs) // 12
        is_hash = np.tile([True, False], len(blobs))
        words_of_kind = np.stack([2 * terms, terms], axis=1)
        hashed = np.repeat(is_hash, words_of_kind.ravel())
        keys = words[hashed].view("<u8")
        return cls.of(keys, _slots(terms), words[~hashed])

    @classmethod
    def of_keys(cls, blobs: Sequence[bytes]) -> Self:
        """Make postings of the keys of each slot, in the form stored in its row: hashes, each once."""
        keys = np.frombuffer(b"".join(blobs), "<u8")
        slots = _slots(_sizes(blobs) // 8)
        counts = np.ones(len(keys), np.uint32)
        return cls.of(keys, slots, counts)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Postings, Slots]]) -> Self:
        """Join several postings.

        Args:
            parts: postings, each with the new slot of every old slot, -1 for those to leave out.
        """
        keys = [np.empty(0, np.uint64)]
        slots = [np.empty(0, np.int32)]
        counts = [np.empty(0, np.uint32)]
        for part, moved in parts:
            of_key = np.repeat(part.keys, np.diff(part.starts))
            to = moved[part.slots]
            stay = to >= 0
            keys.append(of_key[stay])
            slots.append(to[stay])
            counts.append(part.counts[stay])
        return cls.of(
            np.concatenate(keys), np.concatenate(slots), np.concatenate(counts)
        )

    def having(self, key: int) -> tuple[Slots, Counts]:
        """Return the slots that have a key, ascending, and how often each has it."""
        number = int(self.keys.searchsorted(np.uint64(key)))
        start = 0
        end = 0
        if number < len(self.keys) and self.keys[number] == key:
            start = self.starts[number]
            end = self.starts[number + 1]
        return self.slots[start:end], self.counts[start:end]


def _sizes(blobs: Sequence[bytes]) -> Ints:
    return np.fromiter(map(len, blobs), np.int64, len(blobs))


def _slots(sizes: Ints) -> Slots:
    """Return the slot of each key of a segment, whose slot `i` has `sizes[i]` keys."""
    numbers = np.arange(len(sizes), dtype=np.int32)
    return np.repeat(numbers, sizes)
