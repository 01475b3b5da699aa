"""Finds the nearest vectors by inner product, through FAISS, on graphics processors if FAISS can use them.

An index that is built, saved or loaded is in main memory; only searches are moved to the graphics processors. The
package `faiss-cpu` or `faiss-gpu-cu12` provides FAISS: both are the same Python module, so only one of the extras
`faiss` and `gpu` is installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import (
    IndexMismatch,
    StoreError,
    needs_extra,
)
from ras_agent.tools.index.ties import TIE, level
from ras_agent.tools.store.durable import sync_file, writing

_DEEPEST_ON_GPUS = 2048  # FAISS's limit for the number of neighbours on GPUs
_LEAST_FOR_LISTS = 1000  # with fewer vectors, lists cannot be trained, and a flat index is just as fast


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """Sets how vectors are searched."""

    kind: Literal["flat", "hnsw", "ivf"] = "flat"
    """"flat" is exact, "hnsw" searches a graph of neighbours, and "ivf" searches clusters."""
    links: int = 32
    """For hnsw, the number of neighbours of a node."""
    effort: int = 128
    """For hnsw, the number of candidates kept while building and searching."""
    lists: int = 0
    """For ivf, the number of clusters; 0 for the square root of the number of vectors."""
    probes: int = 0
    """For ivf, the number of clusters that are searched; 0 for a sixteenth of them."""

    def __post_init__(self) -> None:
        if self.kind not in ("flat", "hnsw", "ivf"):
            raise ValueError(
                f"unknown kind of vector index {self.kind!r}; known: flat, hnsw, ivf"
            )


class VectorIndex:
    """Searches vectors by inner product. The number of a vector is its position in the given order. Safe for several
    threads.
    """

    def __init__(self, index: Any) -> None:
        """Search `index`, a faiss.Index of inner products."""
        self._index = index

    @cached_property
    def _moved(self) -> Any:
        """Return the index for searches of all vectors, which is moved to the graphics processors when it is first
        searched."""
        return on_gpus(self._index)

    @classmethod
    def build(cls, vectors: Floats, settings: VectorSettings) -> Self:
        """Build an index of `vectors`, shape (n, dimension)."""
        index = empty_index(vectors.shape, settings)
        if not index.is_trained:
            index.train(vectors)
        index.add(vectors)
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index in FAISS's own format."""
        try:
            with writing(path):
                _faiss().write_index(self._index, str(path))
                sync_file(path)
        except RuntimeError as error:
            raise StoreError(
                f"{path} could not be written ({error}): check that there is room on its disk"
            ) from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Open a saved index, memory-mapped if this FAISS supports it. Raises FileNotFoundError and MissingExtra."""
        faiss = _faiss()
        path.stat()
        try:
            return cls(
                faiss.read_index(
                    str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP)
                )
            )
        except RuntimeError:
            path.stat()  # raises FileNotFoundError if a writer has deleted it, for which FAISS has no separate error
            raise

    @property
    def count(self) -> int:
        """Return the number of vectors."""
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        """Return the number of components of a vector."""
        return int(self._index.d)

    def vectors(self) -> Floats:
        """Return all vectors, (count, dimension)."""
        faiss = _faiss()
        known = faiss.downcast_index(self._index)
        if isinstance(known, faiss.IndexIVF):
            known.make_direct_map()
        vectors: Floats = known.reconstruct_n(0, self.count)
        return vectors

    def search(self, query: Floats, k: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the numbers and inner products of the `k` vectors nearest to `query` (dimension,), best first.

        Ties are in the order of the numbers. Raises IndexMismatch for a query of another dimension.
        """
        if query.shape != (self.dimension,):
            raise IndexMismatch(
                f"the query's vector has shape {query.shape}, the index holds vectors of {self.dimension} numbers: "
                "search with the embedder that built the index"
            )
        depth = min(k + 1, self.count)
        while depth:
            products, numbers = self._nearest(query, depth)
            # on a tie at position k, FAISS returns any of the tied vectors, so search deeper until all of them are found
            if depth == self.count or products[k - 1] - products[-1] > TIE:
                found = numbers >= 0  # an approximate index may find fewer
                products = products[found]
                numbers = numbers[found]
                best_first = np.argsort(-products, kind="stable")
                numbers = numbers[best_first]
                products = level(products[best_first], relative=False)
                order = np.lexsort((numbers, -products))[:k]
                return numbers[order], products[order]
            depth = min(2 * depth, self.count)
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)

    def of_rows(self, rows: Ints) -> VectorIndex:
        """Return an index of the vectors in `rows` (ascending); their new numbers are their positions in `rows`."""
        return _PartOfVectors(self._index, rows)

    def _nearest(self, query: Floats, depth: int) -> tuple[Floats, Ints]:
        """Return the inner products and numbers that FAISS finds; the number is -1 for a missing result."""
        index = self._moved if depth <= _DEEPEST_ON_GPUS else self._index
        products, numbers = index.search(query[None], depth)
        return products[0], numbers[0]


class _PartOfVectors(VectorIndex):
    """Searches some rows of a faiss.Index and skips all others, so that a part of a large index needs no copy."""

    def __init__(self, index: Any, rows: Ints) -> None:
        super().__init__(index)
        self._rows = np.ascontiguousarray(rows, dtype=np.int64)
        faiss = _faiss()
        known = faiss.downcast_index(index)
        # an array is the fastest selector to iterate over, and the slowest for looking up single numbers
        flat = not isinstance(known, faiss.IndexIVF | faiss.IndexHNSW)
        self._chosen = (
            faiss.IDSelectorArray(self._rows)
            if flat
            else faiss.IDSelectorBatch(self._rows)
        )
        if isinstance(known, faiss.IndexIVF):
            self._how = faiss.SearchParametersIVF(sel=self._chosen, nprobe=known.nprobe)
        elif isinstance(known, faiss.IndexHNSW):
            self._how = faiss.SearchParametersHNSW(
                sel=self._chosen, efSearch=known.hnsw.efSearch
            )
        else:
            self._how = faiss.SearchParameters(sel=self._chosen)

    @property
    def count(self) -> int:
        return len(self._rows)

    def _nearest(self, query: Floats, depth: int) -> tuple[Floats, Ints]:
        products, numbers = self._index.search(query[None], depth, params=self._how)
        places = np.searchsorted(self._rows, numbers[0])
        return products[0], np.where(numbers[0] < 0, -1, places)


class JoinedVectors(VectorIndex):
    """Searches several indexes as one: vector `i` of a part gets the number `rows[i]`, and is left out if that is -1."""

    def __init__(
        self, dimension: int, parts: Sequence[tuple[VectorIndex, Ints]]
    ) -> None:
        """Take indexes of vectors with `dimension` components, with the new number of each of their vectors."""
        self._dimension = dimension
        self._parts: list[tuple[VectorIndex, Ints]] = []
        for part, rows in parts:
            chosen = np.flatnonzero(rows >= 0)
            if len(chosen) == len(rows):
                self._parts.append((part, rows))
            elif len(chosen):
                self._parts.append((part.of_rows(chosen), rows[chosen]))

    @property
    def count(self) -> int:
        """Return the number of vectors."""
        return sum(len(rows) for _, rows in self._parts)

    @property
    def dimension(self) -> int:
        """Return the number of components of a vector."""
        return self._dimension

    def _nearest(self, query: Floats, depth: int) -> tuple[Floats, Ints]:
        products = [np.empty(0, np.float32)]
        numbers = [np.empty(0, np.int64)]
        for part, rows in self._parts:
            near, places = part._nearest(query, min(depth, part.count))
            there = places >= 0  # an approximate index may find fewer
            products.append(near[there])
            numbers.append(rows[places[there]])
        nearest = np.concatenate(products)
        found = np.concatenate(numbers)
        if len(nearest) > depth:
            best = np.argpartition(-nearest, depth - 1)[:depth]
            nearest = nearest[best]
            found = found[best]
        order = np.argsort(-nearest, kind="stable")
        missing = depth - len(order)
        return (
            np.append(
                nearest[order], np.full(missing, np.finfo(np.float32).min, np.float32)
            ),
            np.append(found[order], np.full(missing, -1)),
        )


def empty_index(shape: tuple[int, ...], settings: VectorSettings) -> Any:
    """Build an empty faiss.Index for vectors of `shape`. Raises MissingExtra without FAISS.

    The caller trains it, unless `is_trained`, and adds the vectors.
    """
    faiss = _faiss()
    count, dimension = shape
    index: Any
    if settings.kind == "hnsw":
        index = faiss.IndexHNSWFlat(
            dimension, settings.links, faiss.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction = index.hnsw.efSearch = settings.effort
    elif settings.kind == "ivf" and count >= _LEAST_FOR_LISTS:
        # FAISS needs 39 vectors per list for training
        lists = min(settings.lists or int(count**0.5), count // 39)
        index = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT
        )
        index.nprobe = settings.probes or -(-lists // 16)
    else:
        index = faiss.IndexFlatIP(dimension)
    return index


def on_gpus(index: Any) -> Any:
    """Return a copy of a faiss.Index on all graphics processors, each of which holds a part of the vectors.

    The index is returned unchanged if FAISS finds no GPU or was built without GPU support, for HNSW, which cannot
    be searched there, and, with a RuntimeWarning, if it does not fit into the memory of the GPUs.
    """
    faiss = _faiss()
    if not getattr(faiss, "get_num_gpus", int)() or isinstance(
        faiss.downcast_index(index), faiss.IndexHNSW
    ):
        return index
    options = faiss.GpuMultipleClonerOptions()
    options.shard = True
    try:
        return faiss.index_cpu_to_all_gpus(index, options)
    except RuntimeError as error:
        warnings.warn(
            f"vectors are searched without a graphics processor: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return index


def require_faiss() -> None:
    """Raise MissingExtra if vectors cannot be searched on this machine."""
    _faiss()


def _faiss() -> Any:
    with needs_extra("dense retrieval", "faiss"):
        import faiss
    return faiss
