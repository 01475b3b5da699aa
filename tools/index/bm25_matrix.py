"""Computes BM25 over the postings of an index: exact statistics of the current passages, one numpy call per query
term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.running.recent import RecentResults
from ras_agent.tools.index.passages import term_hash, terms_of
from ras_agent.tools.index.postings import Postings, Slots
from ras_agent.tools.index.tokenise import Tokeniser

Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
_MOST_CACHED = 1 << 25
"""The number of postings whose weights are kept for further queries, 8 bytes each."""


@dataclass(frozen=True, slots=True)
class BM25Parameters:
    """Sets the variant of BM25 and its parameters (see Kamphuis et al., ECIR 2020)."""

    k1: float = 1.5
    """Term saturation: how much further occurrences of a term count."""
    b: float = 0.75
    """Length normalisation, from 0 to 1."""
    method: Method = "lucene"
    delta: float = 0.5
    """The minimum weight of an occurrence in BM25L and BM25+, however long the passage is."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(
                f"unknown BM25 variant {self.method!r}; known: {', '.join(get_args(Method))}"
            )

    def rarity(self, having: int, size: int) -> float:
        """Return the weight of a term that occurs in `having` of `size` passages."""
        odds = (size - having + 0.5) / (having + 0.5)
        if self.method == "lucene":
            return log(1 + odds)
        if self.method == "robertson":
            return log(max(odds, 1))
        if self.method == "atire":
            return log(size / having)
        if self.method == "bm25l":
            return log((size + 1) / (having + 0.5))
        return log((size + 1) / having)

    def saturation(
        self, counts: npt.NDArray[Any], lengths: npt.NDArray[Any]
    ) -> npt.NDArray[np.float64]:
        """Return how much `counts` occurrences of a term add to a score, before the term's rarity; 0 for no occurrence.

        Args:
            counts: (n,).
            lengths: (n,), the lengths of the passages, as multiples of the mean length.
        """
        k1 = self.k1
        delta = self.delta
        norm = 1 - self.b + self.b * lengths
        share: npt.NDArray[np.float64] = counts / (counts + k1 * norm)
        if self.method in ("lucene", "robertson"):
            return share
        if self.method == "bm25l":
            c = counts / norm + delta
            return (k1 + 1) * (c / (k1 + c) - delta / (k1 + delta))
        return (k1 + 1) * share


class TermPart(NamedTuple):
    """Holds the postings of a segment, whose slots are numbered from `base` on among those of all segments."""

    base: int
    postings: Postings


class BM25Matrix:
    """Holds the weight of each term in each passage, computed column by column when a term is first needed.

    Scores are exact: a term's rarity and the mean length are those of the current passages.
    """

    def __init__(
        self,
        parts: Sequence[TermPart],
        lengths: Ints,
        order: Ints | None,
        parameters: BM25Parameters | None = None,
    ) -> None:
        """Take the postings of segments and the lengths of all their slots, in terms.

        Args:
            order: the slot of each passage; None if every slot is a passage, in order.
        """
        self._parts = tuple(parts)
        self._order = order
        self._parameters = parameters or BM25Parameters()
        self._slots = len(lengths)
        living = lengths if order is None else lengths[order]
        self.size = len(living)
        mean = living.mean() if living.any() else 1.0
        self._lengths = lengths / mean
        self._row_of_slot: npt.NDArray[np.int32] | None = None
        if order is not None:
            rows = np.full(self._slots, -1, dtype=np.int32)
            rows[order] = np.arange(self.size)
            self._row_of_slot = rows
        self._columns = RecentResults[str, tuple[Slots, Floats]](
            _MOST_CACHED, lambda column: len(column[0])
        )

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return the BM25 score of every passage, shape (size,); exactly 0 for a passage without any of the terms.

        For BM25L and BM25+ this is the score minus that of a passage without the terms, which gives the same ranking.
        """
        scores = np.zeros(self._slots, dtype=np.float32)
        for term in terms:
            slots, weights = self._column(term)
            # faster than `scores[slots] += weights`, which gathers and scatters
            np.add.at(scores, slots, weights)
        if self._order is None:
            return scores
        return scores[self._order]

    def having(self, term: str) -> npt.NDArray[np.int32]:
        """Return the passages that contain a term, ascending."""
        slots, _ = self._column(term)
        if self._row_of_slot is None:
            return slots
        return np.sort(self._row_of_slot[slots])

    def of_rows(self, rows: Ints) -> BM25Matrix:
        """Return the matrix of the passages in `rows` (ascending), with the same weights as in the whole matrix."""
        return _PartOfMatrix(self, rows)

    def _column(self, term: str) -> tuple[Slots, Floats]:
        (column,) = self._columns.of([term], lambda _: [self._weigh(term)])
        return column

    def _weigh(self, term: str) -> tuple[Slots, Floats]:
        key = term_hash(term)
        all_slots = [np.empty(0, np.int32)]
        all_counts = [np.empty(0, np.uint32)]
        for base, postings in self._parts:
            slots, counts = postings.having(key)
            if len(slots):
                all_slots.append(slots + np.int32(base))
                all_counts.append(counts)
        slots = np.concatenate(all_slots)
        counts = np.concatenate(all_counts)
        try:
            if self._row_of_slot is not None:
                living = self._row_of_slot[slots] >= 0
                slots = slots[living]
                counts = counts[living]
            if not len(slots):
                return slots, np.empty(0, np.float32)
            weights = self._parameters.saturation(counts, self._lengths[slots])
        except IndexError as error:
            # large files are not verified completely when they are opened
            raise IndexMismatch(
                f"the cache of an index is damaged ({error}): `ras-agent doctor --index INDEX` names the file"
            ) from error
        return slots, (self._parameters.rarity(len(slots), self.size) * weights).astype(
            np.float32
        )


class _PartOfMatrix(BM25Matrix):
    """Reads the passages `chosen` of the matrix `whole`, so that a part of a large corpus needs no copy."""

    def __init__(self, whole: BM25Matrix, chosen: Ints) -> None:
        self._whole = whole
        self._chosen = chosen
        self.size = len(chosen)

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return the BM25 score of every passage, shape (size,)."""
        scores: Floats = self._whole.scores(terms)[self._chosen]
        return scores

    def having(self, term: str) -> npt.NDArray[np.int32]:
        """Return the passages that contain a term, ascending."""
        having = self._whole.having(term)
        places = np.flatnonzero(np.isin(self._chosen, having))
        return places.astype(np.int32)

    def of_rows(self, rows: Ints) -> BM25Matrix:
        """Return the matrix of some of these passages."""
        return _PartOfMatrix(self._whole, self._chosen[rows])


def build_matrix(
    texts: Iterable[str], tokeniser: Tokeniser, parameters: BM25Parameters | None = None
) -> BM25Matrix:
    """Build the BM25 matrix of `texts`, with one row for each text in the same order.

    Args:
        tokeniser: splits texts into terms.
        parameters: by default `BM25Parameters()`.
    """
    blobs: list[bytes] = []
    lengths: list[int] = []
    for text in texts:
        blob, length = terms_of(text, tokeniser)
        blobs.append(blob)
        lengths.append(length)
    return BM25Matrix(
        [TermPart(0, Postings.of_terms(blobs))],
        np.array(lengths, dtype=np.int64),
        None,
        parameters,
    )
