"""The retriever "ppr" ranks passages by the personalised PageRank of their entities (after HippoRAG, 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, LinkedEntity, Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.page_rank import PageRank, walk_matrix
from ras_agent.tools.retrieve.completeness import asked_shares
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_ASKED = np.float32(1)
"""How much a passage's score grows, as a multiple, if it contains all of the question's terms.

Chosen on MuSiQue: with 2, "ppr" by itself finds a little more, but a mix finds less.
"""


class PPRRetriever(RankedRetriever):
    """Ranks passages by the PageRank of their entities, with random walks that start at the question's entities.

    Walks only see entities, so thousands of passages with the same entities would score alike; those with more of
    the question's other terms come first. Passages that no walk reaches are not returned.
    """

    name = "ppr"
    walks_graph = tells_doubt = True

    def __init__(
        self,
        snapshot: Snapshot,
        graph: KGIndex,
        rows: npt.NDArray[np.int64],
        linker: EntityLinker,
        *,
        damping: float,
        specificity: bool,
        equivalence: float,
        length: float,
    ) -> None:
        """Prepare the walks. Raises SettingsError for numbers outside their ranges.

        Args:
            rows: (D,), the position in the snapshot of each of the graph's documents, -1 for a document that is not
                there.
            linker: finds the query's entities in the graph.
            damping: the probability that a walk goes on instead of starting again.
            specificity: whether an entity's weight as a start is divided by the number of passages that name it.
            equivalence: the weight of an equivalence of similarity 1; a fact has weight 1.
            length: the exponent, 0 to 1, of the number of names in a passage, by which its score is divided.
        """
        if not 0 <= length <= 1 or not 0 <= equivalence < float("inf"):
            raise SettingsError(
                f"retriever 'ppr' needs a length from 0 to 1 and an equivalence from 0 on, got {length} and {equivalence}"
            )
        self.passages = snapshot.passages
        self.graph = graph
        self._snapshot = snapshot
        self._linker = linker
        self._rank = PageRank(
            walk_matrix(graph, equivalence=equivalence), damping=damping
        )
        self._specificity = specificity
        in_corpus = np.flatnonzero(rows >= 0)
        self._rows = rows[in_corpus]
        self._naming = _weights(graph, length)[in_corpus]

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """Return the entities of the query, at which walks start."""
        return self._linker.link(query)

    def entity_scores(self, query: str) -> npt.NDArray[np.float32] | None:
        """Return the PageRank of every entity, shape (N,); None if the query names no entity of the graph."""
        seeds = np.zeros(len(self.graph.entities), dtype=np.float32)
        for link in self.linked(query):
            weight = link.weight
            if self._specificity:
                weight /= max(int(self.graph.document_frequency[link.entity]), 1)
            seeds[link.entity] += weight
        if not seeds.any():
            return None
        return self._rank.scores(seeds)

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of the snapshot's passages. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        entities = self.entity_scores(query)
        if entities is None:
            return Ranking.empty()
        scores = np.zeros(len(self.passages), dtype=np.float32)
        scores[self._rows] = self._naming @ entities
        scores *= 1 + _ASKED * asked_shares(self._snapshot, query)
        return top_k(scores, k)


def _weights(graph: KGIndex, length: float) -> csr_matrix:
    """Return (D, N): how strongly each document names each entity.

    This is log(1 + count), divided by a power of the document's sum.
    """
    counts = graph.mentions.to_scipy().T.tocsr()
    counts.data = np.log1p(counts.data)
    sums = np.asarray(counts.sum(axis=1), dtype=np.float32)
    sizes = np.diff(counts.indptr)
    counts.data /= np.repeat(sums.ravel() ** length, sizes)
    return counts


@takes("graph", "linking", "mentions")
def ppr(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    damping: float = 0.5,
    specificity: bool = True,
    equivalence: float = 1.0,
    length: float = 0.5,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
) -> PPRRetriever:
    """Build the retriever registered as "ppr", over the index's knowledge graph or over `graph`.

    Args:
        damping, specificity, equivalence, length: see `PPRRetriever.__init__`.
        linking, mentions: how the query's names are found in the graph.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    return PPRRetriever(
        index.snapshot,
        linked.graph,
        linked.rows,
        linked.linker,
        damping=damping,
        specificity=specificity,
        equivalence=equivalence,
        length=length,
    )
