"""Holds a knowledge graph as the network reads it, and the entities at which a question starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints, offsets_of

Vectors = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class GFMGraph:
    """Holds M messages among N entities over R relations, including inverse relations, sorted by target entity."""

    indptr: Ints
    """(N + 1,); the messages to entity e have the numbers indptr[e] to indptr[e + 1] - 1."""
    source: Ints
    """(M,), the entity that each message comes from."""
    relation: Ints
    """(M,), 0 to R - 1."""
    relation_vectors: Vectors
    """(K, text width), the sentence vectors of relations 0 to K - 1, as they are stored."""
    inverse_vectors: Vectors | None = None
    """(I, text width), those of the relations from K on; None for K inverses whose vectors are those of their
    relations times -1, which are not stored.
    """

    @property
    def relations(self) -> int:
        """Return R, the number of relations including inverses."""
        if self.inverse_vectors is None:
            inverses = self.relation_vectors
        else:
            inverses = self.inverse_vectors
        return len(self.relation_vectors) + len(inverses)

    @property
    def vectors(self) -> Floats:
        """Return the sentence vectors of all relations, (R, text width), copied to float32."""
        return self.vectors_of(np.arange(self.relations))

    def vectors_of(self, relations: Ints) -> Floats:
        """Return the sentence vectors of the relations with the numbers `relations` (k,), as (k, text width)."""
        given = self.relation_vectors
        later = relations >= len(self.relation_vectors)
        vectors = np.empty((len(relations), given.shape[1]), dtype=np.float32)
        vectors[~later] = given[relations[~later]]
        inverses = relations[later] - len(given)
        vectors[later] = (
            -given[inverses]
            if self.inverse_vectors is None
            else self.inverse_vectors[inverses]
        )
        return vectors

    @property
    def entities(self) -> int:
        """Return the number of entities, N."""
        return len(self.indptr) - 1

    @property
    def messages(self) -> int:
        """Return the number of messages, M."""
        return len(self.source)

    @property
    def target(self) -> Ints:
        """Return the entity that each message goes to, (M,)."""
        numbers = np.arange(self.entities)
        return np.repeat(numbers, np.diff(self.indptr))

    @classmethod
    def from_edges(
        cls,
        entities: int,
        edges: npt.NDArray[np.integer],
        vectors: Vectors,
        inverse: Vectors | None,
        message_target: str = "head",
    ) -> GFMGraph:
        """Build the graph of the facts `edges` (E, 3): head, relation, tail. A fact gives one message in each
        direction.

        Raises ValueError for a number out of range.

        Args:
            entities: the number of entities, N.
            vectors: (relations, text width), the sentence vectors of the relations.
            inverse: those of their inverses; None for inverses whose vectors are the relations' times -1.
            message_target: "head" or "tail", the end of a fact that its relation's message goes to (see GFMConfig).
        """
        facts = np.asarray(edges, dtype=np.int64).reshape(-1, 3)
        head, relation, tail = facts.T
        if len(facts) and (facts.min() < 0 or max(head.max(), tail.max()) >= entities):
            raise ValueError(f"edges name entities other than 0 to {entities - 1}")
        inverses = vectors if inverse is None else inverse
        if vectors.shape != inverses.shape or (
            len(facts) and relation.max() >= len(vectors)
        ):
            raise ValueError(
                f"{len(vectors)} relation vectors and {len(inverses)} inverse ones do not fit the edges: give one of each, "
                "of equal width, for every relation"
            )
        target = np.concatenate((tail, head))
        source = np.concatenate((head, tail))
        if message_target == "head":
            target, source = source, target
        relations = np.concatenate((relation, relation + len(vectors)))
        # target and source as one key: two sorts instead of three
        order = np.lexsort((relations, target * entities + source))
        indptr = offsets_of(np.bincount(target, minlength=entities))
        return cls(indptr, source[order], relations[order], vectors, inverse)


@dataclass(frozen=True, slots=True)
class OutgoingMessages:
    """Holds a graph's messages sorted by source: those from entity e have the numbers indptr[e] to indptr[e + 1] - 1.

    `indptr` is (N + 1,), `target` and `relation` are (M,).
    """

    indptr: Ints
    target: Ints
    relation: Ints

    @classmethod
    def of(cls, graph: GFMGraph) -> OutgoingMessages:
        """Return the messages of `graph` sorted by source."""
        order = np.argsort(graph.source, kind="stable")
        counts = np.bincount(graph.source, minlength=graph.entities)
        target = graph.target[order]
        return cls(offsets_of(counts), target, graph.relation[order])


@dataclass(frozen=True, slots=True)
class GFMStart:
    """Holds a question's entities (k,), each once, and the weight of each for the question (k,): eq. 6's H0 / q."""

    entities: Ints
    weights: Floats


def row_entries(indptr: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return where the entries of some rows of a compressed sparse matrix are stored, row after row.

    Args:
        indptr: (N + 1,), the offset of each row.
        rows: (T,), the numbers of the rows.

    Returns:
        The positions of the entries, and for each entry the index in `rows` of its row.
    """
    counts = indptr[rows + 1] - indptr[rows]
    row = np.repeat(np.arange(len(rows)), counts)
    # how far the entries of each row lie from their places in the answer
    shifts = indptr[rows + 1] - np.cumsum(counts)
    return np.arange(len(row)) + shifts[row], row
