"""Defines base classes of retrievers that rank the rows of a corpus, and of those that can explain their hits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Protocol, Self, runtime_checkable

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import ErasedPassage
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.protocols import Retriever
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
    """Describes an object that ranks the rows of a corpus. Rankings of the same rows can be mixed."""

    passages: Sequence[Passage]

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`, or fewer. Raises ValueError for a blank query or k < 1."""
        ...


def reasons_of(
    retriever: object, query: str, passage_ids: Sequence[str], reasons: int
) -> list[tuple[str, ...]]:
    """Return, for each passage, the reasons for which the retriever found it, as lines of text; () if it cannot say.

    A retriever that gives reasons has the methods `explained(reasons)`, which returns a copy that gives so many,
    and `why(query, passage_ids)`.

    Args:
        reasons: the maximum number of lines for each passage.
    """
    explaining = explained(retriever, reasons)
    why = getattr(explaining, "why", None)
    if why is None:
        return [()] * len(passage_ids)
    lines: list[tuple[str, ...]] = why(query, passage_ids)
    return lines


def explained(retriever: Any, reasons: int) -> Any:
    """Return a copy of `retriever` whose hits have at most `reasons` reasons; the retriever itself if it cannot give
    any.
    """
    explain = getattr(retriever, "explained", None)
    if explain is None:
        return retriever
    return explain(reasons)


def with_reasons(hits: Sequence[Hit], reasons: Sequence[tuple[str, ...]]) -> list[Hit]:
    """Return copies of the hits with more reasons, which come before the reasons that they have."""
    explained_hits = []
    for hit, why in zip(hits, reasons, strict=True):
        explained_hits.append(replace(hit, why=why + hit.why))
    return explained_hits


def hits(
    passages: Sequence[Passage], ranking: Ranking, *, whole: bool = False
) -> list[Hit]:
    """Return the passages of a ranking as hits. Passages that were erased after the ranking was made are left out.

    Args:
        whole: whether to raise ErasedPassage instead of leaving a passage out.
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
    """Turns a ranking of rows into hits within a filter. Subclasses implement `rank`."""

    passages: Sequence[Passage]
    filtered: Callable[[Filter], Retriever] | None = None
    """Returns the retriever over only those passages that a filter admits.

    If it is None, a filter is applied to the ranking of all passages.
    """

    @abstractmethod
    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`. Raises ValueError for a blank query or k < 1."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first; hits with equal scores are in corpus order.

        Raises ValueError for a blank query or k < 1.

        Args:
            filter: the passages to search, as a Filter or in any form that `Filter.of` takes; by default all.
        """
        return self._found("retrieve", self.rank, query, k, filter)

    def candidates(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits for a reranker to read. `completed` applies the stages that follow the reranker."""
        return self._found("candidates", self.rank_candidates, query, k, filter)

    def rank_candidates(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows by the stages before a reranker; by default the same as `rank`."""
        return self.rank(query, k)

    def completed(self, query: str, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return the first `k` of the hits that a reranker returned. A subclass may apply further stages to them."""
        return list(hits[:k])

    def reasons_for(
        self, query: str, passage_ids: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """Return the reasons for each passage, as lines of text, within the filter of the running search."""
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

        Args:
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
    """Adds reasons to hits, at most `_paths` for each; by default 0, since reasons take time. Subclasses implement
    `why`.
    """

    _paths = 0

    @abstractmethod
    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the reasons for each passage, as lines of text; an empty tuple if it has no reason."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits with their reasons, best first; hits with equal scores are in corpus order.

        Raises ValueError for a blank query or k < 1.
        """
        found = super().retrieve(query, k, filter)
        if not self._paths:
            return found
        restriction = current_retrieval().filter.both(Filter.of(filter))
        asked = Retrieval(filter=restriction, reasons=self._paths)
        with retrieving(asked):
            reasons = self.reasons_for(query, [hit.passage.id for hit in found])
        return with_reasons(found, reasons)

    def explained(self, paths: int) -> Self:
        """Return a copy of the retriever whose hits have at most `paths` reasons."""
        other = copy(self)
        other._paths = paths
        return other
