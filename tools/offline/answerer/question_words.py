"""The question's content words and what each is worth: rare words say more about an answer than common ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles
from ras_agent.text.names import name_spans
from ras_agent.tools.offline.answerer.reading import Token, tokens_of

__all__ = ["BUCKETS", "QuestionWords", "Rarity", "bucket"]

BUCKETS = 1 << 15
_FADE = 4.0
_ASKING = frozenset({"what", "which", "who", "whom", "whose", "where", "when", "how", "why"})
_OPENLY = frozenset({"what", "how", "why"})
_PREPOSITIONS = frozenset({"in", "of", "by", "for", "with", "from", "to", "on", "at", "as", "under", "into", "about"})
_LEADS = {
    "where": frozenset({"in", "at", "from", "to", "near"}),
    "when": frozenset({"in", "on", "since", "during", "until"}),
    "who": frozenset({"by"}),
}


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
    """What Q content words of a question are worth.

    place: stem -> its place among Q; worth (Q,), sums to 1; named (Q,): whether it stands in a name; focus (Q,): worth
    that fades with the distance to the word that asks; ending (Q,): with the distance to the question's end. lead: the
    function words that may stand before the answer as they stand before the word that asks ("in which" - "in").
    """

    place: dict[str, int]
    worth: Doubles
    named: npt.NDArray[np.bool_]
    focus: Doubles
    ending: Doubles
    lead: frozenset[str]

    @classmethod
    def of(cls, question: str, rarity: Rarity) -> QuestionWords:
        names, tokens = name_spans(question), tokens_of(question)
        asks = _asks(tokens)
        place: dict[str, int] = {}
        named: list[bool] = []
        gaps: list[tuple[int, int]] = []
        for number, token in enumerate(tokens):
            if token.stem:
                inside = any(start <= token.start < end for start, end in names)
                gap = abs(number - asks), len(tokens) - number
                at = place.setdefault(token.stem, len(place))
                if at == len(named):
                    named.append(inside)
                    gaps.append(gap)
                named[at] |= inside
                gaps[at] = min(gaps[at][0], gap[0]), min(gaps[at][1], gap[1])
        worth = np.array([rarity(stem) + 1e-6 for stem in place], dtype=np.float64)
        focus, ending = worth * np.exp(-np.array(gaps, dtype=np.float64).reshape(-1, 2).T / _FADE)
        lead = _LEADS.get(tokens[asks].word if tokens else "", frozenset())
        if asks and tokens[asks - 1].word in _PREPOSITIONS:
            lead = frozenset({tokens[asks - 1].word})
        return cls(place, _whole(worth), np.array(named, dtype=bool), _whole(focus), _whole(ending), lead)

    def present(self, stems: Iterable[str]) -> npt.NDArray[np.bool_]:
        """(Q,): which of the question's words are among `stems`."""
        found = np.zeros(len(self.place), dtype=bool)
        found[[self.place[stem] for stem in stems if stem in self.place]] = True
        return found


def _asks(tokens: Sequence[Token]) -> int:
    """The place of the word that asks: one that begins or ends the question, one that only asks, else the first."""
    found = [number for number, token in enumerate(tokens) if token.word in _ASKING]
    if not found or found[0] == 0:
        return 0
    if found[-1] == len(tokens) - 1:
        return found[-1]
    return next((number for number in found if tokens[number].word in _OPENLY), found[0])


def _whole(worth: Doubles) -> Doubles:
    """Scaled to sum to 1."""
    return worth / worth.sum() if len(worth) else worth
