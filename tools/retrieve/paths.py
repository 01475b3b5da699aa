"""Reasoning paths as a retriever: passages whose facts make paths from the question's entities."""

from __future__ import annotations

from ras_agent.records import Hit
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.graph_retriever import GraphRetriever, by_path, tell
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.subgraph.composition import Composition
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.paths import PathLimits
from ras_agent.tools.subgraph.pipeline import FoundPaths, PathFinder, PathSettings
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers

__all__ = ["INTERACTIVE", "PathRetriever", "paths"]

INTERACTIVE = PathSettings(Extraction(max_ent=500), limits=PathLimits(longest=3, width=8))
"""Smaller than the paper's, so that a question takes about a second of one core on a graph of text. Chosen on
HotpotQA's tuning half."""


class PathRetriever(GraphRetriever[PathFinder]):
    """Ranks passages by the best path that has a fact from them."""

    name = "paths"

    def paths(self, query: str) -> FoundPaths:
        """The paths themselves, with the subgraph and the time of each module."""
        return self.finder.find(query, [link.entity for link in self.linked(query)])

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` hits, best first, ties in corpus order.

        Raises ValueError for a blank query or k < 1, and ModelCallError if a chat model judged nothing. Where it judged
        in part, that is told in a RuntimeWarning.
        """
        check_query(query, k)
        found = self.paths(query)
        hits = by_path(self.finder.graph, found.paths, self._passage_of, k)
        tell(found.failures, "paths were", found=bool(hits))
        return hits


def paths(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    composition: Composition | str | int = "",
    models: ScorerModels | None = None,
    settings: PathSettings | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
) -> PathRetriever:
    """The retriever registered as "paths", over the graph beside the index, or `graph`.

    composition: of the three modules; by default PageRank, a beam led by the graph's own vectors and a choice by their
        encoder, or both by BM25 for a graph without vectors.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    own = linked.embedder
    chosen = composition if composition != "" else ("ppr>beam:kg>st" if own else "ppr>beam:bm25>bm25")
    whole = Graph.from_index(linked.graph)
    scorers = Scorers(models or ScorerModels(own or "minilm", graph=whole if own else None))
    finder = PathFinder(whole, chosen, scorers, settings or INTERACTIVE)
    return PathRetriever(index.snapshot.passages, linked, finder)
