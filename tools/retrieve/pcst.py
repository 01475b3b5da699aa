"""The retriever "pcst" returns passages that state the facts of a connected subgraph for the question."""

from __future__ import annotations

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.records import Hit
from ras_agent.running.protocols import Scorer
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.completeness import asked_shares
from ras_agent.tools.retrieve.graph_retriever import GraphRetriever, by_fact, warn_of
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.tools.subgraph.pcst import PCSTFinder, PCSTSettings, QuestionSubgraph
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer

OF_TEXT = PCSTSettings(
    nodes=20, edges=0, named_prize=210.0, neighbourhood=Extraction(max_ent=500)
)
"""Settings for graphs that were read from text.

Few facts of such a graph share a relation, so edges have no prizes, and more nodes have one than in the paper. A name
in the question gets a prize as large as all other prizes together, less if it is linked by its vector; so a subgraph
without a name that is linked for certain is never better than that name by itself. The neighbourhood is smaller, so
that a question takes well under a second. The values were chosen on HotpotQA's tuning half.
"""


_HUB = 100
"""The number of an entity's facts above which a tree tends to miss those that the question asks for."""
_MOST_ADDED = 5


class PCSTRetriever(GraphRetriever[PCSTFinder]):
    """Finds a subgraph for the question by a prize-collecting Steiner tree, and ranks the passages that state its
    facts.

    A passage scores the sum of the prizes of the facts that it states, and of the entities that these facts
    connect. If no fact is worth its cost, the passages with most of the question's terms come first.
    """

    name = "pcst"

    def __init__(
        self,
        snapshot: Snapshot,
        linked: LinkedGraph,
        finder: PCSTFinder,
    ) -> None:
        """Take the snapshot of the passages, the graph with its linker, and the finder of subgraphs in that graph."""
        super().__init__(snapshot.passages, linked, finder)
        self._snapshot = snapshot

    def subgraph(self, query: str) -> QuestionSubgraph:
        """Return the question's subgraph, to show it (`textualise`) or to use its facts (`subgraph.triples`)."""
        links = self.linked(query)
        entities = [link.entity for link in links]
        weights = [link.weight for link in links]
        return self.finder.find(query, entities, weights)

    def retrieve_unfiltered(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits, made from the subgraph by `by_fact`."""
        result = self.subgraph(query)
        tree = result.subgraph
        warn_of(result.failures, "a graph was", any_hit=len(tree.nodes) > 0)
        values = _values(result)
        shares = None
        if not values:
            # nothing was worth connecting, so take the facts of the single nodes
            edges: list[int] = []
            for node in tree.nodes.tolist():
                edges += self.finder.graph.incident.row(node).tolist()
            tree = Subgraph.of_edges(self.finder.graph, edges)
            values = [0.0] * len(tree.edges)
            shares = asked_shares(self._snapshot, query)
        else:
            tree, values = self._with_facts_of_hubs(query, tree, values)
        return by_fact(tree, values, self._passage_of, k, shares)

    def _with_facts_of_hubs(
        self, query: str, tree: Subgraph, values: list[float]
    ) -> tuple[Subgraph, list[float]]:
        """Add facts of entities with very many facts, if their passages share most words with the question.

        A tree connects what is similar to the question, and next to a hub too much is. Each added fact is worth more
        than the best fact of the tree. Nothing is added if too many facts share equally many words.
        """
        near = self._facts_of_hubs(query)
        if not near:
            return tree, values
        shares = asked_shares(self._snapshot, query)
        asked: dict[int, float] = {}
        for edge in near:
            asked[edge] = self._share_of(edge, shares)
        best = max(asked.values())
        added = [edge for edge in near if asked[edge] == best]
        if len(added) > _MOST_ADDED:
            return tree, values
        edges = tree.edges.tolist()
        worth = dict(zip(edges, values, strict=True))
        highest = max(values)
        for edge in added:
            worth[edge] = highest + best
        wider = Subgraph.of_edges(self.finder.graph, worth)
        ordered = sorted(worth)
        return wider, [worth[edge] for edge in ordered]

    def _facts_of_hubs(self, query: str) -> list[int]:
        """Return the edges of those entities in the question that have more than _HUB facts."""
        found: list[int] = []
        for link in self.linked(query):
            edges = self.finder.graph.incident.row(link.entity)
            if len(edges) > _HUB:
                found += edges.tolist()
        return found

    def _share_of(self, edge: int, shares: Floats) -> float:
        """Return the largest share of the question's words in any passage that states the fact `edge`.

        Args:
            shares: (D,), the share of the question's words that each passage contains.
        """
        triple = self.finder.graph.triple(edge)
        share = 0.0
        for source in triple.sources:
            place = self._passage_of(source.passage_id)
            if place is None:
                continue
            row, _ = place
            share = max(share, float(shares[row]))
        return share


def _values(result: QuestionSubgraph) -> list[float]:
    """Return, for each edge, the sum of its prize and those of its two nodes."""
    subgraph = result.subgraph
    edges = subgraph.graph.edges[subgraph.edges]
    ends = np.searchsorted(subgraph.nodes, edges[:, [0, 2]])
    of_ends = result.node_prizes[ends].sum(axis=1)
    values: list[float] = (result.edge_prizes + of_ends).tolist()
    return values


@takes("graph", "linking", "mentions")
def pcst(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    scorer: Scorer | None = None,
    settings: PCSTSettings | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
) -> PCSTRetriever:
    """Build the retriever registered as "pcst", over the index's knowledge graph or over `graph`.

    Args:
        scorer: scores names of entities and relations for the question; by default by the graph's vectors, or by
            BM25 for a graph without vectors.
        settings: prizes, costs and bounds; by default `OF_TEXT`.
        linking, mentions: how the query's names are found in the graph.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    if scorer is None and linked.graph.entity_vectors is None:
        scorer = BM25Scorer()
    everything = Graph.from_index(linked.graph)
    finder = PCSTFinder(everything, scorer, settings or OF_TEXT, linked.embedder)
    return PCSTRetriever(index.snapshot, linked, finder)
