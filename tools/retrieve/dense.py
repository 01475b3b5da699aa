"""The retriever "dense": ranks passages by their similarity to the query in an embedder's vector space."""

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
    """A retriever by cosine similarity between the query and a passage's title and text; scores are from -1 to 1.

    If the index's vectors are unscaled, as those of "unscaled:st:facebook/contriever-msmarco", it uses the inner
    product.
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
        """Take an index of vectors, one for each passage in order, and its embedder.

        cache_size: the number of queries whose vectors are cached.
        """
        self.passages = passages
        self._vectors = vectors
        self._embed = remembering(embedder, cache_size).embed_query

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows.

        Raises ValueError for a blank query or k < 1, IndexMismatch if the query's vector has another width than the
        index's.
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
    """Build the retriever. Raises IndexMismatch if the index has no vectors.

    queries: an embedder of queries to use instead of the index's; it must be the same model.
    cache_size: the number of queries whose vectors are cached.
    """
    snapshot = index.snapshot
    return DenseRetriever(
        snapshot.passages,
        snapshot.vectors(),
        queries or cast(Embedder, index.embedder),
        cache_size=cache_size,
    )
