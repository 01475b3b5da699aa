"""Base classes of retrievers that rank a corpus by row, and of those that can explain their hits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol, Self, cast, runtime_checkable

from ras_agent.errors import ErasedPassage
from ras_agent.filters import Filter
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.index.snapshot import StoredPassages
from ras_agent.tools.retrieve.copies import best_without_copies, without_copies
from ras_agent.tools.retrieve.ranking import Ranking, check_query


@runtime_checkable
class Ranker(Protocol):
    """Protocol of a ranker of the rows of a corpus; rankings of the same rows can be fused."""

    passages: Sequence[Passage]

    def rank(self, query: str, k: int) -> Ranking:
        """Return at most `k` rows of `passages`. Raises ValueError for a blank query or k < 1."""
        ...


@runtime_checkable
class Explaining(Protocol):
    """Protocol of a retriever that gives reasons for its hits on request, since they cost time."""

    def explained(self, paths: int) -> Self:
        """Return the same retriever with hits that carry at most `paths` reasons each."""
        ...

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each passage's reasons, one line per reason, or an empty tuple."""
        ...


def explained(retriever: Retriever, reasons: int) -> Retriever:
    """Return `retriever` with hits that carry reasons, if it can give any."""
    if isinstance(retriever, Explaining):
        return cast(Retriever, retriever.explained(reasons))
    return retriever


def hits(
    passages: Sequence[Passage], ranking: Ranking, *, complete: bool = False
) -> list[Hit]:
    """Look up the ranking's passages and return them as hits, without those that were erased after they were ranked.

    complete: raise ErasedPassage instead of leaving any out.
    """
    found: Sequence[Passage | None]
    if isinstance(passages, StoredPassages):
        found = passages.take(ranking.rows)
    else:
        found = [passages[row] for row in ranking.rows.tolist()]
    if complete and None in found:
        raise ErasedPassage(
            "a passage was deleted or replaced while it was being searched: search again"
        )
    scored = zip(found, ranking.scores.tolist(), strict=True)
    return [Hit(passage, score) for passage, score in scored if passage is not None]


@runtime_checkable
class Filterable(Protocol):
    """Retriever that applies a filter by a second retriever over only the admitted passages.

    filtered: makes the second one; set by `retriever_over`, and None for a retriever that was made by hand.
    """

    filtered: Callable[[Filter], Retriever] | None


class RankedRetriever(ABC):
    """Retriever that ranks rows; a subclass implements `rank`."""

    passages: Sequence[Passage]
    filtered: Callable[[Filter], Retriever] | None = None
    """without it a filter goes through the ranking of all passages"""
    complete = False
    """whether a search that meets an erased passage raises ErasedPassage, rather than leave it out"""

    @abstractmethod
    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        restriction = Filter.of(filter)
        if not restriction:
            return self._best(query, k)
        if self.filtered is not None:
            return self.filtered(restriction).retrieve(query, k)
        check_query(query, k)
        ranking = self.rank(query, max(len(self.passages), 1))
        admitted = [
            hit
            for hit in hits(self.passages, ranking)
            if restriction.matches(hit.passage)
        ]
        return without_copies(admitted)[:k]

    def _best(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits.

        Those behind take the places of copies, and of passages that were erased after they were ranked.
        """

        def find(wanted: int) -> tuple[list[Hit], bool]:
            ranking = self.rank(query, wanted)
            found = hits(self.passages, ranking, complete=self.complete)
            return found, len(ranking.rows) == wanted

        return best_without_copies(find, k)


class ExplainedRetriever(RankedRetriever):
    """Retriever of hits with at most `_paths` reasons each; without any by default, since they cost time."""

    _paths = 0

    @abstractmethod
    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each passage's reasons, one line per reason, or an empty tuple."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        restriction = Filter.of(filter)
        if restriction and self._paths and self.filtered is not None:
            second = explained(self.filtered(restriction), self._paths)
            return second.retrieve(query, k)
        best = super().retrieve(query, k, restriction)
        # reasons may hold facts of passages that the filter leaves out
        if restriction or not self._paths:
            return best
        reasons = self.why(query, [hit.passage.id for hit in best])
        explained_hits = []
        for hit, why in zip(best, reasons, strict=True):
            explained_hits.append(replace(hit, why=why + hit.why))
        return explained_hits

    def explained(self, paths: int) -> Self:
        """Return a copy of the retriever that gives hits at most `paths` reasons each."""
        other = copy(self)
        other._paths = paths
        return other
