"""A knowledge graph as arrays: what is on disk, what is in memory, what everything else reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.tools.kg.sparse_rows import SparseRows
from ras_agent.tools.kg.string_table import StringTable

__all__ = ["SOURCE", "Edges", "KGArrays", "Vectors"]

Edges = npt.NDArray[np.int32]
Vectors = npt.NDArray[np.floating[Any]]

SOURCE = np.dtype([("document", "<i4"), ("start", "<i4"), ("end", "<i4")])
"""Where an edge was read: a document's number, and characters `start` to `end` of its text."""


@dataclass(frozen=True, slots=True)
class KGArrays:
    """N entities, R relations, E edges, D documents; all sorted, so that they are the same for the same facts.

    entities: the surface forms met most often; keys: their canonical keys, ascending.
    relations: ascending by canonical key, `relation_keys`; the last is the equivalence relation, and no text's.
    edges: (E, 3) head, relation, tail; the facts ascend and come first, then equivalences with head < tail.
    similarities: (equivalences,) of the last edges.
    mentions: N x D, how often a document names an entity.
    source_starts, sources: edge `e` was read at `sources[source_starts[e]:source_starts[e + 1]]`, equivalences nowhere.
    documents: passage ids, ascending.
    entity_vectors: (N, d), relation_vectors: (R, d), unit length; None without an embedder.
    near: N x N, the nearest entities that equivalences were chosen from; None without an embedder.
    texts: (D,) uint64, the number that a passage index has for the text that was read, 0 where it is not known.
    """

    entities: StringTable
    keys: StringTable
    relations: StringTable
    relation_keys: StringTable
    edges: Edges
    similarities: npt.NDArray[np.float32]
    mentions: SparseRows
    source_starts: npt.NDArray[np.int64]
    sources: npt.NDArray[np.void]
    documents: StringTable
    entity_vectors: Vectors | None = None
    relation_vectors: Vectors | None = None
    near: SparseRows | None = None
    texts: npt.NDArray[np.uint64] | None = None

    @property
    def facts(self) -> int:
        """How many of the edges are facts."""
        return len(self.edges) - len(self.similarities)
