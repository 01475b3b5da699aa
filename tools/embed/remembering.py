"""Caches the vectors of queries, so that several retrievers can share them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ras_agent.contracts.arrays import Floats
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import query_vector


class RememberingEmbedder:
    """Wraps an embedder and caches the vectors of the last `size` queries. Passages are embedded each time."""

    def __init__(self, embedder: Embedder, size: int = 1024) -> None:
        """Wrap an embedder.

        Args:
            size: the number of queries in the cache.
        """
        self._embedder = embedder
        self._cached_vector = lru_cache(size)(
            lambda query: query_vector(embedder, query)
        )

    @property
    def name(self) -> str:
        """Return the name of the wrapped embedder."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Return the width of the vectors."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of passages, shape (len(texts), dimension), float32."""
        return self._embedder.embed(texts)

    def embed_query(self, text: str) -> Floats:
        """Return the vector of a query, shape (dimension,), from the cache if it is there."""
        return self._cached_vector(text)


def remembering(embedder: Embedder, size: int = 1024) -> RememberingEmbedder:
    """Return `embedder` with a cache of `size` queries. One that has a cache already is returned unchanged."""
    if isinstance(embedder, RememberingEmbedder):
        return embedder
    return RememberingEmbedder(embedder, size)
