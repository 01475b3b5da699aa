"""The question's content words and what each is worth: rare words say more about an answer than common ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ras_agent.mentions import name_spans
from ras_agent.tools.answer.reading import tokens_of

__all__ = ["BUCKETS", "QuestionWords", "Rarity", "bucket"]

BUCKETS = 1 << 15
Floats = npt.NDArray[np.float64]


def bucket(word: str, buckets: int = BUCKETS) -> int:
    """The row of a hashed table that stands for `word`; the same everywhere and always."""
    return crc32(word.encode()) % buckets


class Rarity:
    """Inverse document frequencies of stems in encyclopaedic English, in 0..1, as a hashed table of bytes."""

    def __init__(self, table: npt.NDArray[Any]) -> None:
        """`table` has shape (BUCKETS,), uint8: 255 for the rarest."""
        self._table = table.astype(np.float64) / 255.0

    def __call__(self, stem: str) -> float:
        return float(self._table[bucket(stem)])

    def total(self, stems: Iterable[str]) -> float:
        return sum(map(self, stems))


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """place: stem -> its place among Q; worth (Q,), sums to 1; named (Q,): whether it stands in a name."""

    place: dict[str, int]
    worth: Floats
    named: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, question: str, rarity: Rarity) -> QuestionWords:
        names = name_spans(question)
        place: dict[str, int] = {}
        named: list[bool] = []
        for token in tokens_of(question):
            if token.stem:
                inside = any(start <= token.start < end for start, end in names)
                at = place.setdefault(token.stem, len(place))
                if at == len(named):
                    named.append(inside)
                named[at] |= inside
        worth = np.array([rarity(stem) + 1e-6 for stem in place], dtype=np.float64)
        return cls(place, worth / worth.sum() if len(worth) else worth, np.array(named, dtype=bool))

    def present(self, stems: Iterable[str]) -> npt.NDArray[np.bool_]:
        """(Q,): which of the question's words are among `stems`."""
        found = np.zeros(len(self.place), dtype=bool)
        found[[self.place[stem] for stem in stems if stem in self.place]] = True
        return found
