"""Compares the retriever `dense` with FAISS over the same vectors, query by query.

    python -m ras_agent.eval.bench --parts dense

FAISS gets a query's vector, scans all vectors, and returns row numbers. Our retriever gets the query's text,
whose vector it has cached, and returns passages read from disk, with ties in the order of the corpus. A query's
time is the fastest of three by the clock. FAISS has one thread.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.bench.retrieval import (
    fastest,
    synthetic_passages,
    synthetic_queries,
)
from ras_agent.eval.bench.rows import BenchRow, median_row
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

_WIDTH = 384
_CENTRES = 1000
_SPREAD = 0.7
_AT_ONCE = 10_000
_K = 10


class DrawnEmbedder:
    """Embeds each text as 384 random numbers near one of a thousand centres, so that texts have near
    neighbours.
    """

    name = "drawn"
    dimension = _WIDTH

    def __init__(self) -> None:
        self._centres = (
            np.random.default_rng(0)
            .standard_normal((_CENTRES, _WIDTH))
            .astype(np.float32)
        )

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (len(texts), 384). Equal texts get equal vectors."""
        vectors = np.stack([self._drawn(text) for text in texts])
        return np.asarray(
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32
        )

    def _drawn(self, text: str) -> Floats:
        rng = np.random.default_rng(
            int.from_bytes(
                hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"
            )
        )
        noise = rng.standard_normal(_WIDTH, dtype=np.float32)
        return np.asarray(
            self._centres[rng.integers(_CENTRES)] + _SPREAD * noise, dtype=np.float32
        )


def bench_rows(
    sizes: Sequence[int] = (10_000,), queries: int = 100
) -> Iterator[BenchRow]:
    """Yield a row for the retriever `dense` at each number of passages in `sizes`.

    Raises:
        SettingsError: If FAISS is not installed.
    """
    if find_spec("faiss") is None:
        raise SettingsError(
            "FAISS, the peer of this benchmark, is not installed: pip install faiss-cpu"
        )
    for size in sizes:
        name = f"dense, {size:,} passages"
        times = _times(size, queries)
        yield median_row(name, "ms", "FAISS, vector given", times, at_most=2)


def _times(size: int, queries: int) -> list[tuple[float, float]]:
    """Return the milliseconds of each query, ours and FAISS's."""
    import faiss

    embedder = DrawnEmbedder()
    bare = faiss.IndexFlatIP(_WIDTH)
    with tempfile.TemporaryDirectory() as folder:
        index = PassageIndex.create(Path(folder) / "bench.index", embedder)
        passages = synthetic_passages(size)
        with index.batch():
            while batch := list(islice(passages, _AT_ONCE)):
                index.add(batch)
                bare.add(embedder.embed([indexed_text(passage) for passage in batch]))
        retriever = retriever_over(index, "dense")
        times = []
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            for text in synthetic_queries(queries):
                vector = embedder.embed([text])
                ours = fastest(retriever.retrieve, text, _K)
                times.append((ours, fastest(bare.search, vector, _K)))
        finally:
            faiss.omp_set_num_threads(threads)
    return times
