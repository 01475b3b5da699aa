"""The retriever "paths" returns passages with facts that form reasoning paths from the question's entities."""

from __future__ import annotations

from ras_agent.contracts.records import Hit
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.graph_retriever import GraphRetriever, by_path, warn_of
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.subgraph.composition import Composition
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.paths import PathLimits
from ras_agent.tools.subgraph.pipeline import FoundPaths, PathFinder, PathSettings
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers

INTERACTIVE = PathSettings(
    Extraction(max_ent=500), limits=PathLimits(longest=3, width=8)
)
"""Smaller bounds than the paper's, so that a question takes about a second of one core on a graph read from text.

They were chosen on HotpotQA's tuning half.
"""


class PathRetriever(GraphRetriever[PathFinder]):
    """Scores each passage by the best reasoning path with a fact from that passage."""

    name = "paths"

    def paths(self, query: str) -> FoundPaths:
        """Return the query's paths, with the subgraph in which they were found and the time that each module took."""
        starts = [link.entity for link in self.linked(query)]
        return self.finder.find(query, starts)

    def retrieve_unfiltered(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits, made from the paths by `by_path`."""
        result = self.paths(query)
        hits = by_path(self.finder.graph, result.paths, self._passage_of, k)
        warn_of(result.failures, "paths were", any_hit=bool(hits))
        return hits


@takes("graph", "linking", "mentions")
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
    """Build the retriever registered as "paths", over the index's knowledge graph or over `graph`.

    Args:
        composition: the three modules that find paths, such as "ppr>beam:bm25>bm25". By default PageRank, a beam
            search guided by the graph's vectors, and a final choice by their encoder; for a graph without vectors,
            BM25 guides and chooses.
        models: the models that score paths; by default the encoder of the graph's vectors.
        settings: bounds of the search; by default `INTERACTIVE`.
        linking, mentions: how the query's names are found in the graph.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    everything = Graph.from_index(linked.graph)
    if linked.embedder:
        usual = "ppr>beam:kg>st"
        usual_models = ScorerModels(linked.embedder, graph=everything)
    else:
        usual = "ppr>beam:bm25>bm25"
        usual_models = ScorerModels("minilm", graph=None)
    finder = PathFinder(
        everything,
        usual if composition == "" else composition,
        Scorers(models or usual_models),
        settings or INTERACTIVE,
    )
    return PathRetriever(index.snapshot.passages, linked, finder)
