"""The retriever "dense" ranks passages by the similarity of their vectors to the query's vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.vector_index import VectorIndex
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query
from ras_agent.tools.retrieve.registered import takes


class DenseRetriever(RankedRetriever):
    """Ranks passages by cosine similarity between the query and a passage's title and text; scores are from -1 to 1.

    If the index holds vectors that are not scaled to length 1, such as those of
    "unscaled:st:facebook/contriever-msmarco", scores are inner products.
    """

    name = "dense"

    def __init__(
        self,
        passages: Sequence[Passage],
        vectors: VectorIndex,
        embedder: Embedder,
        *,
        cache_size: int = 1024,
    ) -> None:
        """Take the passages, an index with one vector for each passage, in the same order, and the embedder that made
        them.

        Args:
            cache_size: the number of recent queries whose vectors are kept.
        """
        self.passages = passages
        self._vectors = vectors
        self._embed = remembering(embedder, cache_size).embed_query

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`.

        Raises ValueError for a blank query or k < 1, and IndexMismatch if the query's vector does not have the
        index's width.
        """
        check_query(query, k)
        if not self.passages:
            return Ranking.empty()
        vector = self._embed(query)
        return Ranking(*self._vectors.search(vector, k))


@takes("queries")
def dense(
    index: PassageIndex, *, queries: Embedder | None = None, cache_size: int = 1024
) -> DenseRetriever:
    """Build the retriever registered as "dense" over an index. Raises IndexMismatch if the index has no vectors.

    Args:
        queries: an embedder to use for queries instead of the index's; it must be the same model.
        cache_size: the number of recent queries whose vectors are kept.
    """
    snapshot = index.snapshot
    return DenseRetriever(
        snapshot.passages,
        snapshot.vectors(),
        queries or cast(Embedder, index.embedder),
        cache_size=cache_size,
    )
