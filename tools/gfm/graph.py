"""A knowledge graph as the network reads it: who hears which message, sorted by the one that hears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints

__all__ = ["GFMGraph", "Outgoing", "entries"]


@dataclass(frozen=True, slots=True)
class GFMGraph:
    """M messages among N entities over R relations, the inverse ones included; compressed rows by hearer.

    indptr: (N + 1,), entity e hears the messages indptr[e] to indptr[e + 1]. source: (M,), the entity that speaks.
    relation: (M,), 0..R-1. vectors: (R, text width), sentence vectors of the relations.
    """

    indptr: Ints
    source: Ints
    relation: Ints
    vectors: Floats

    @property
    def entities(self) -> int:
        """N."""
        return len(self.indptr) - 1

    @property
    def messages(self) -> int:
        """M."""
        return len(self.source)

    @property
    def hearer(self) -> Ints:
        """(M,): the entity that hears each message."""
        return np.repeat(np.arange(self.entities, dtype=np.int64), np.diff(self.indptr))

    @classmethod
    def from_edges(
        cls, entities: int, edges: npt.NDArray[np.integer], vectors: Floats, inverse: Floats, toward: str = "head"
    ) -> GFMGraph:
        """The graph of facts `edges` (E, 3): head, relation, tail, each with its inverse.

        vectors, inverse: (relations, text width), of "relation" and of its inverse ("inverse_relation" in the published
        code). toward: see GFMConfig. Raises ValueError for a number out of range.
        """
        facts = np.asarray(edges, dtype=np.int64).reshape(-1, 3)
        head, relation, tail = facts.T
        if len(facts) and (facts.min() < 0 or max(head.max(), tail.max()) >= entities):
            raise ValueError(f"edges name entities outside of 0..{entities - 1}")
        if vectors.shape != inverse.shape or (len(facts) and relation.max() >= len(vectors)):
            raise ValueError(f"{len(vectors)} relation vectors and {len(inverse)} inverse ones do not fit the edges")
        hearer = np.concatenate((head, tail) if toward == "head" else (tail, head))
        source = np.concatenate((tail, head) if toward == "head" else (head, tail))
        kind = np.concatenate((relation, relation + len(vectors)))
        order = np.lexsort((kind, source, hearer))
        indptr = np.zeros(entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(hearer, minlength=entities), out=indptr[1:])
        both = np.concatenate((vectors, inverse)).astype(np.float32, copy=False)
        return cls(indptr, source[order], kind[order], both)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Who hears each entity: entity e is heard by hearer[indptr[e]] to hearer[indptr[e + 1] - 1], over `relation`."""

    indptr: Ints
    hearer: Ints
    relation: Ints

    @classmethod
    def of(cls, graph: GFMGraph) -> Outgoing:
        """Of the messages of `graph`."""
        order = np.argsort(graph.source, kind="stable")
        indptr = np.zeros(graph.entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(graph.source, minlength=graph.entities), out=indptr[1:])
        return cls(indptr, graph.hearer[order], graph.relation[order])


def entries(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Where the entries of compressed `rows` (T,) stand, row after row, and which of `rows` each belongs to."""
    counts = indptr[rows + 1] - indptr[rows]
    row = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    return np.arange(len(row)) + np.repeat(indptr[rows] - (np.cumsum(counts) - counts), counts), row
