"""Equivalence edges: pairs of entities whose vectors nearly agree, found in near-linear time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.tools.index.kg.arrays import Vectors
from ras_agent.tools.index.vector_index import VectorSettings, require_faiss

__all__ = ["Equivalence", "Pairs", "equivalent_pairs"]

_FLAT_BELOW = 5000  # an exact search of so few takes a second, and needs no graph
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two entities are equivalent if their cosine is above `threshold` and one is among the other's `neighbours`.

    threshold: of the embedder at hand; papers' 0.8 is of ColBERTv2. neighbours: the most edges that one entity asks
    for; an entity may get more where others ask for it. kind: how they are searched, "hnsw", "ivf" or "flat" (exact).
    """

    threshold: float = 0.8
    neighbours: int = 10
    kind: str = "hnsw"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1 or self.neighbours < 0 or self.kind not in ("flat", "hnsw", "ivf"):
            raise ValueError(
                "equivalence needs a threshold above 0 and up to 1, neighbours from 0 on, and kind flat, hnsw or ivf; "
                f"got {self.threshold}, {self.neighbours}, {self.kind!r}"
            )


class Pairs(NamedTuple):
    """Entities (P, 2) int32, the lesser number first, each pair once; their cosines (P,) float32."""

    entities: npt.NDArray[np.int32]
    similarities: npt.NDArray[np.float32]


def equivalent_pairs(vectors: Vectors, how: Equivalence) -> Pairs:
    """The pairs among unit vectors (N, d). Raises MissingExtra without FAISS.

    Every row asks an approximate-neighbour index for its nearest, so the work is N log N and not N x N.
    """
    count = len(vectors)
    if count < 2 or how.neighbours == 0:
        return Pairs(np.empty((0, 2), np.int32), np.empty(0, np.float32))
    require_faiss()
    index = _index(vectors, how)
    found: list[npt.NDArray[np.int64]] = []
    cosines: list[npt.NDArray[np.float32]] = []
    for start in range(0, count, _AT_ONCE):
        block = np.ascontiguousarray(vectors[start : start + _AT_ONCE], dtype=np.float32)
        products, numbers = index.search(block, min(how.neighbours + 1, count))
        rows = np.broadcast_to(np.arange(start, start + len(block))[:, None], numbers.shape)
        keep = (numbers >= 0) & (numbers != rows) & (products > how.threshold)
        found.append(np.sort(np.stack([rows[keep], numbers[keep]], axis=1), axis=1))
        cosines.append(products[keep])
    flat = np.concatenate(found)
    codes, first = np.unique(flat[:, 0] * count + flat[:, 1], return_index=True)
    entities = np.stack([codes // count, codes % count], axis=1).astype(np.int32)
    return Pairs(entities, np.minimum(np.concatenate(cosines)[first], 1).astype(np.float32))


def _index(vectors: Vectors, how: Equivalence):  # type: ignore[no-untyped-def]  # FAISS has no types
    import faiss

    count, dimension = vectors.shape
    kind = how.kind if count >= _FLAT_BELOW else "flat"
    index: faiss.Index
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, VectorSettings().links // 2, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = index.hnsw.efSearch = 64
    elif kind == "ivf":
        lists = min(int(count**0.5), count // 39)
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT)
        index.train(np.ascontiguousarray(vectors[:: max(count // (64 * lists), 1)], dtype=np.float32))
        index.nprobe = -(-lists // 16)
    else:
        index = faiss.IndexFlatIP(dimension)
    for start in range(0, count, _AT_ONCE):
        index.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE], dtype=np.float32))
    return index
