"""The retriever "dense": which passages are nearest to the query in an embedder's space?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.vector_index import VectorIndex
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query
from ras_agent.tools.retrieve.registered import takes


class DenseRetriever(RankedRetriever):
    """Retriever by cosine similarity of title and text to the query; scores in -1..1.

    By inner product where the index's vectors are unscaled, as those of "unscaled:st:facebook/contriever-msmarco".
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
        """Take an index of vectors, one for each passage, in order. The vectors of `cache_size` queries are cached."""
        self.passages = passages
        self._vectors = vectors
        self._embed = remembering(embedder, cache_size).embed_query

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1, IndexMismatch for another width."""
        check_query(query, k)
        if not self.passages:
            return Ranking.empty()
        vector = self._embed(query)
        return Ranking(*self._vectors.search(vector, k))


@takes("queries")
def dense(
    index: PassageIndex, *, queries: Embedder | None = None, cache_size: int = 1024
) -> DenseRetriever:
    """Build the retriever. Raises IndexMismatch for an index without vectors.

    queries: embeds queries instead of the index's own embedder; it must be the same model.
    """
    snapshot = index.snapshot
    return DenseRetriever(
        snapshot.passages,
        snapshot.vectors(),
        queries or cast(Embedder, index.embedder),
        cache_size=cache_size,
    )
