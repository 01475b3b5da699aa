"""Retrievers that walk a graph, mixed with dense search: the one knows how facts connect, the other what texts mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np

from ras_agent.protocols import Retriever
from ras_agent.records import Passage
from ras_agent.registry import forwards_to
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.linking import Linking, Mentions
from ras_agent.tools.retrieve.dense import dense
from ras_agent.tools.retrieve.mix import MixedRetriever
from ras_agent.tools.retrieve.paths import PathRetriever, paths
from ras_agent.tools.retrieve.pcst import PCSTRetriever, pcst
from ras_agent.tools.retrieve.query import check_query
from ras_agent.tools.retrieve.ranking import Ranking

__all__ = ["RankedHits", "paths_dense", "pcst_dense"]


class RankedHits:
    """A retriever of `passages` as a ranker, so that it can be mixed; hits that are none of them do not count."""

    def __init__(self, retriever: Retriever, passages: Sequence[Passage], name: str) -> None:
        self.passages, self.name = passages, name
        self._rows = {passage.id: row for row, passage in enumerate(passages)}
        self._hits = lru_cache(64)(lambda query: tuple(retriever.retrieve(query, len(passages) or 1)))

    def rank(self, query: str, k: int) -> Ranking:
        """The `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        placed = [hit for hit in self._hits(query) if hit.passage.id in self._rows][:k]
        rows = np.array([self._rows[hit.passage.id] for hit in placed], dtype=np.int64)
        return Ranking(rows, np.array([hit.score for hit in placed], dtype=np.float32))

    def explained(self, paths: int) -> Self:
        """Itself: its hits say why at no cost."""
        return self

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """The reasons of each passage, where it is among the hits."""
        told = {hit.passage.id: hit.why for hit in self._hits(query)}
        return [told.get(passage, ()) for passage in passage_ids]


@forwards_to(paths)
def paths_dense(
    index: PassageIndex,
    *,
    share: float = 0.5,
    graph: KGIndex | LinkedGraph | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
    **options: Any,
) -> MixedRetriever:
    """The retriever registered as "paths+dense": the mean of both, `share` of it the paths', with their `options`."""
    linked = LinkedGraph.of(index, graph, linking, mentions)
    return _mixed(paths(index, graph=linked, **options), index, linked, share)


@forwards_to(pcst)
def pcst_dense(
    index: PassageIndex,
    *,
    share: float = 0.5,
    graph: KGIndex | LinkedGraph | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
    **options: Any,
) -> MixedRetriever:
    """The retriever registered as "pcst+dense": the mean of both, `share` of it the subgraph's, with its `options`."""
    linked = LinkedGraph.of(index, graph, linking, mentions)
    return _mixed(pcst(index, graph=linked, **options), index, linked, share)


def _mixed(
    walker: PathRetriever | PCSTRetriever, index: PassageIndex, linked: LinkedGraph, share: float
) -> MixedRetriever:
    ranker = RankedHits(walker, walker.passages, walker.name)
    return MixedRetriever([ranker, dense(index, queries=linked.queries)], [share, 1 - share])
