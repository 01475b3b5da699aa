"""The retriever "neighbours" returns the facts in the index's knowledge graph about the entities that a query names."""

from __future__ import annotations

from ras_agent.contracts.records import Hit
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.graph_retriever import (
    GraphRetriever,
    by_fact,
    subgraph_passage,
)
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.subgraph.graph import Graph, Subgraph

_MOST_FACTS = 24
"""The maximum number of facts that are returned; those that the most passages state are kept."""


class NeighbourRetriever(GraphRetriever[Graph]):
    """Returns the facts about the query's entities, without ranking them by the rest of the question.

    The passages that state the most of these facts come first. The last hit lists the facts themselves, so that no
    extractor has to read them from the passages; it is omitted if there is only one fact. This is the search step
    of agents that walk a graph from entity to entity (Think-on-Graph, Sun et al., 2024).
    """

    name = "neighbours"

    def facts(self, query: str) -> Subgraph:
        """Return the facts about the entities that the query names, at most 24: those that the most passages state."""
        edges: list[int] = []
        for link in self.linked(query):
            edges += self.finder.incident.row(link.entity).tolist()
        edges.sort(key=self._statements)
        return Subgraph.of_edges(self.finder, edges[:_MOST_FACTS])

    def _statements(self, edge: int) -> tuple[int, int]:
        sources = self.finder.triple(edge).sources
        return -len(sources), edge

    def retrieve_unfiltered(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits: passages, then one that lists the facts."""
        facts = self.facts(query)
        values = [1.0] * len(facts.edges)
        hits = by_fact(facts, values, self._passage_of, k)
        if len(facts.edges) < 2 or k < 2:
            return hits  # a single fact is already stated by its passage
        whole = subgraph_passage(facts)
        passages: list[Hit] = []
        for hit in hits:
            if hit.passage.id != whole.id:
                passages.append(hit)
        best = passages[: k - 1]
        least = 0.0
        if best:
            least = best[-1].score
        return [*best, Hit(whole, least)]


@takes("graph", "linking", "mentions")
def neighbours(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
) -> NeighbourRetriever:
    """Build the retriever registered as "neighbours", over the index's knowledge graph or over `graph`.

    Args:
        linking, mentions: how the query's names are found in the graph.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    whole = Graph.from_index(linked.graph)
    return NeighbourRetriever(index.snapshot.passages, linked, whole)
