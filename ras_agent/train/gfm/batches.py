"""Parts of a knowledge graph to train on: the facts of some documents, and what they mean for some questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.kg.index import KGIndex

__all__ = ["Asked", "Part", "part_of", "picked_documents"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a graph sees it: its sentence vector (text width,), its entities (k,) with their weights (k,), and
    the documents (g,) that support its answer."""

    vector: Floats
    entities: Ints
    weights: Floats
    supporting: Ints


@dataclass(frozen=True, slots=True)
class Part:
    """The graph of some documents alone, numbered anew: entities 0..N-1 and documents 0..D-1.

    entities: (N,) and documents: (D,), their numbers in the whole graph, ascending. mentions: D x N.
    """

    graph: GFMGraph
    entities: Ints
    documents: Ints
    mentions: SparseRows

    def rows(self, asked: Sequence[Asked]) -> tuple[Floats, Floats, Floats]:
        """Start (B, N), target entities (B, N) and target documents (B, D) of questions.

        A question's targets are all entities of its supporting documents.
        """
        start, targets = np.zeros((2, len(asked), len(self.entities)), dtype=np.float32)
        wanted = np.zeros((len(asked), len(self.documents)), dtype=np.float32)
        for row, question in enumerate(asked):
            kept = np.isin(question.entities, self.entities)
            start[row, np.searchsorted(self.entities, question.entities[kept])] = question.weights[kept]
            for document in np.flatnonzero(np.isin(self.documents, question.supporting)):
                wanted[row, document] = 1
                targets[row, self.mentions.row(int(document))] = 1
        return start, targets, wanted


def picked_documents(kg: KGIndex, asked: Sequence[Asked], size: int, rng: np.random.Generator) -> Ints:
    """`size` documents to ask `asked` of, ascending: what supports them, half of what is left from those that name the
    questions' entities, and others at random."""
    needed = np.unique(np.concatenate([question.supporting for question in asked]))
    rows = [kg.mentions.row(int(entity)) for question in asked for entity in question.entities]
    near = np.setdiff1d(np.concatenate(rows) if rows else [], needed).astype(np.int64)
    near = rng.permutation(near)[: max(0, (size - len(needed)) // 2)]
    known = np.union1d(needed, near)
    rest = np.setdiff1d(np.arange(len(kg.documents)), known)
    return np.union1d(known, rng.permutation(rest)[: max(0, size - len(known))])


def part_of(kg: KGIndex, documents: Ints, inverse: Floats, toward: str = "head") -> Part:
    """The part of `kg` that `documents`, ascending, state; equivalences hold between the entities that are left.

    inverse: (R, text width), the vectors of the inverse relations. Raises ValueError for a graph without vectors.
    """
    if kg.relation_vectors is None:
        raise ValueError("the knowledge graph holds no vectors: build it with an embedder")
    chosen = np.zeros(len(kg.documents), dtype=bool)
    chosen[documents] = True
    sources = chosen[kg.arrays.sources["document"]]
    stated = np.zeros(len(kg.edges), dtype=bool)
    edge = np.repeat(np.arange(len(kg.edges)), np.diff(kg.arrays.source_starts))
    stated[edge[sources]] = True
    by_document = kg.documents_to_entities
    named = np.concatenate([by_document.row(int(document)) for document in documents])
    entities = np.unique(named).astype(np.int64)
    kept = np.zeros(len(kg.entities), dtype=bool)
    kept[entities] = True
    alike = np.asarray(kg.edges)[kg.equivalences.start :]
    stated[kg.equivalences.start :] = kept[alike[:, 0]] & kept[alike[:, 2]]
    edges = np.asarray(kg.edges)[stated].astype(np.int64)
    relations, edges[:, 1] = np.unique(edges[:, 1], return_inverse=True)
    edges[:, [0, 2]] = np.searchsorted(entities, edges[:, [0, 2]])
    vectors = np.asarray(kg.relation_vectors, dtype=np.float32)[relations]
    graph = GFMGraph.from_edges(len(entities), edges, vectors, inverse[relations], toward)
    sizes = by_document.row_sizes()[documents]
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    columns = np.searchsorted(entities, named).astype(np.int32)
    ones = np.ones(len(columns), dtype=np.int32)
    return Part(graph, entities, np.asarray(documents), SparseRows(starts, columns, ones, len(entities)))
