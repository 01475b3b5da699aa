"""Retrievers that rank a corpus in a fixed order: what they share, and what those add that can say why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol, Self, cast, runtime_checkable

from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.retrieve.ranking import Ranking

__all__ = ["ExplainedRetriever", "Explaining", "RankedRetriever", "Ranker", "explained", "hits"]


class Ranker(Protocol):
    """A retriever over a corpus in a fixed order, which hybrid retrieval can fuse by row."""

    passages: Sequence[Passage]

    def rank(self, query: str, k: int) -> Ranking:
        """At most `k` rows of `passages`. Raises ValueError for a blank query or k < 1."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """A retriever that can tell why it found a passage; that costs time, so it is done when it is asked for."""

    def explained(self, paths: int) -> Self:
        """The same retriever, whose hits carry at most `paths` reasons each."""
        ...

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Each passage's reasons, a line each; none where there are none."""
        ...


def explained(retriever: Retriever, reasons: int) -> Retriever:
    """`retriever`, with hits that say why where it can tell."""
    return cast(Retriever, retriever.explained(reasons)) if isinstance(retriever, Explaining) else retriever


def hits(passages: Sequence[Passage], ranking: Ranking) -> list[Hit]:
    """The ranking's passages, looked up now, as hits."""
    best = zip(ranking.rows.tolist(), ranking.scores.tolist(), strict=True)
    return [Hit(passages[row], score) for row, score in best]


class RankedRetriever(ABC):
    """A ranker whose best rows, their passages looked up now, are its hits."""

    passages: Sequence[Passage]

    @abstractmethod
    def rank(self, query: str, k: int) -> Ranking:
        """The `k` best rows. Raises ValueError for a blank query or k < 1."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        return hits(self.passages, self.rank(query, k))


class ExplainedRetriever(RankedRetriever):
    """One whose hits carry at most `_paths` reasons each; none unless asked for, since they cost time."""

    _paths = 0

    @abstractmethod
    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Each passage's reasons, a line each; none where there are none."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        found = super().retrieve(query, k)
        if not self._paths:
            return found
        reasons = self.why(query, [hit.passage.id for hit in found])
        return [replace(hit, why=why) for hit, why in zip(found, reasons, strict=True)]

    def explained(self, paths: int) -> Self:
        """The same retriever, whose hits say why, each by at most `paths` reasons."""
        other = copy(self)
        other._paths = paths
        return other
