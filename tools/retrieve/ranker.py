"""Base classes of retrievers that rank a corpus by row, and of those that can explain their hits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

from ras_agent.errors import ErasedPassage
from ras_agent.filters import Filter
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.index.snapshot import StoredPassages
from ras_agent.tools.retrieve.copies import best_without_copies, without_copies
from ras_agent.tools.retrieve.ranking import Ranking, check_query
from ras_agent.tools.retrieve.retrieval import (
    Retrieval,
    current_retrieval,
    retrieving,
)

Rank = Callable[[str, int], Ranking]


@runtime_checkable
class Ranker(Protocol):
    """Protocol of what ranks the rows of a corpus; rankings of the same rows can be mixed."""

    passages: Sequence[Passage]

    def rank(self, query: str, k: int) -> Ranking:
        """Return at most `k` rows of `passages`. Raises ValueError for a blank query or k < 1."""
        ...


def reasons_of(
    retriever: object, query: str, passage_ids: Sequence[str], reasons: int
) -> list[tuple[str, ...]]:
    """Return, for each passage, at most `reasons` lines that say why the retriever found it; () if it gives none.

    A retriever that gives reasons has the methods `explained(reasons)`, which returns such a retriever, and `why(query,
    passage_ids)`.
    """
    explaining = explained(retriever, reasons)
    why = getattr(explaining, "why", None)
    if why is None:
        return [()] * len(passage_ids)
    lines: list[tuple[str, ...]] = why(query, passage_ids)
    return lines


def explained(retriever: Any, reasons: int) -> Any:
    """Return a copy of `retriever` whose hits carry at most `reasons` reasons, or itself if it can give none."""
    explain = getattr(retriever, "explained", None)
    if explain is None:
        return retriever
    return explain(reasons)


def with_reasons(hits: Sequence[Hit], reasons: Sequence[tuple[str, ...]]) -> list[Hit]:
    """Return the hits with further reasons before those that they already carry."""
    explained_hits = []
    for hit, why in zip(hits, reasons, strict=True):
        explained_hits.append(replace(hit, why=why + hit.why))
    return explained_hits


def hits(
    passages: Sequence[Passage], ranking: Ranking, *, whole: bool = False
) -> list[Hit]:
    """Return the passages of a ranking as hits, without those that were erased after they were ranked.

    whole: whether to raise ErasedPassage instead of leaving any out.
    """
    found: Sequence[Passage | None]
    if isinstance(passages, StoredPassages):
        found = passages.take(ranking.rows)
    else:
        found = [passages[row] for row in ranking.rows.tolist()]
    if whole and None in found:
        raise ErasedPassage(
            "a passage was deleted or replaced while it was being searched: search again"
        )
    scored = zip(found, ranking.scores.tolist(), strict=True)
    return [Hit(passage, score) for passage, score in scored if passage is not None]


class RankedRetriever(ABC):
    """A retriever that ranks rows; subclasses implement `rank`."""

    passages: Sequence[Passage]
    filtered: Callable[[Filter], Retriever] | None = None
    """Returns the retriever over only the passages that a filter admits.

    Without it, a filter is applied to the ranking of all passages.
    """

    @abstractmethod
    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        return self._found("retrieve", self.rank, query, k, filter)

    def candidates(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits of the stages before a reranker; `completed` applies the stages after it."""
        return self._found("candidates", self.rank_candidates, query, k, filter)

    def rank_candidates(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows by the stages before a reranker."""
        return self.rank(query, k)

    def completed(self, query: str, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return `k` of the reranked hits, after the stages that follow a reranker."""
        return list(hits[:k])

    def reasons_for(
        self, query: str, passage_ids: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """Return each passage's reasons, within the filter of the running search."""
        retrieval = current_retrieval()
        retriever: object = self
        if retrieval.filter and self.filtered is None:
            # reasons could contain facts of passages that the filter excludes
            return [()] * len(passage_ids)
        if self.filtered is not None and retrieval.filter:
            retriever = self.filtered(retrieval.filter)
        return reasons_of(retriever, query, passage_ids, retrieval.reasons)

    def _found(
        self, method: str, rank: Rank, query: str, k: int, filter: object
    ) -> list[Hit]:
        """Return at most `k` hits of `rank` that a filter admits.

        method: the name of the method to call on the filtered retriever, if there is one.
        """
        retrieval = current_retrieval()
        restriction = retrieval.filter.both(Filter.of(filter))
        retrieval.is_filtered = True
        if not restriction:
            return self._best(rank, query, k)
        if self.filtered is not None:
            with retrieving(Retrieval()):
                part = self.filtered(restriction)
                found: list[Hit] = getattr(part, method)(query, k)
            return found
        check_query(query, k)
        ranking = rank(query, max(len(self.passages), 1))
        admitted = [
            hit
            for hit in hits(self.passages, ranking)
            if restriction.matches(hit.passage)
        ]
        return without_copies(admitted)[:k]

    def _best(self, rank: Rank, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits.

        Further hits fill the places of copies, and of passages that were erased after they were ranked.
        """

        whole = current_retrieval().is_whole

        def find(wanted: int) -> tuple[list[Hit], bool]:
            ranking = rank(query, wanted)
            found = hits(self.passages, ranking, whole=whole)
            return found, len(ranking.rows) == wanted

        return best_without_copies(find, k)


class ExplainedRetriever(RankedRetriever):
    """A retriever whose hits carry at most `_paths` reasons; 0 by default, since reasons take time."""

    _paths = 0

    @abstractmethod
    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each passage's reasons, one line for each, or an empty tuple."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        found = super().retrieve(query, k, filter)
        if not self._paths:
            return found
        restriction = current_retrieval().filter.both(Filter.of(filter))
        asked = Retrieval(filter=restriction, reasons=self._paths)
        with retrieving(asked):
            reasons = self.reasons_for(query, [hit.passage.id for hit in found])
        return with_reasons(found, reasons)

    def explained(self, paths: int) -> Self:
        """Return a copy of the retriever whose hits carry at most `paths` reasons."""
        other = copy(self)
        other._paths = paths
        return other
