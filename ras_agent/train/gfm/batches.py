"""What one training step reads: questions of one set, and the part of its graph that some documents state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.train.gfm.sets import GFMSet, LinkedQuestion

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class GFMExample:
    """Holds B questions over a graph of N entities: vectors (B, text width), start and targets (B, N).

    chosen: (B, C), the entities that the loss reads; None for all.
    shares: sparse (D, N), and wanted: (B, D), for the loss for documents.
    """

    name: str
    graph: GFMGraph
    vectors: Floats
    start: Floats
    targets: Floats
    chosen: Ints | None = None
    shares: Tensor | None = None
    wanted: Floats | None = None


def retrieval_example(
    sets: Sequence[GFMSet], batch: int, documents: int, labelled: float, dropout: float, rng: np.random.Generator
) -> GFMExample:
    """Draw questions of one set, and the part of its graph that `documents` documents state.

    Raises SettingsError where no set holds a question with an entity.
    """
    with_labels, with_pseudo = [one for one in sets if one.labelled], [one for one in sets if one.pseudo]
    if not with_labels and not with_pseudo:
        names = ", ".join(one.name for one in sets)
        raise SettingsError(f"no question of {names} names an entity of its graph: train on other --sets")
    use_labels = bool(with_labels) and (rng.random() < labelled or not with_pseudo)
    candidates = with_labels if use_labels else with_pseudo
    chances = np.array([len(one.labelled if use_labels else one.pseudo) for one in candidates], dtype=np.float64)
    chosen = candidates[int(rng.choice(len(candidates), p=chances / chances.sum()))]
    pool = chosen.labelled if use_labels else chosen.pseudo
    drawn = rng.choice(len(pool), min(batch, len(pool)), replace=False)
    questions = [_drop_entities(pool[at], dropout, rng) for at in drawn]
    picked = pick_documents(chosen.kg, questions, documents, rng)
    part = part_of(chosen.kg, picked, chosen.inverse, chosen.config.toward)
    start, targets, wanted = part.rows(questions)
    vectors = np.stack([one.vector for one in questions])
    return GFMExample(chosen.name, part.graph, vectors, start, targets, None, _shares(part), wanted)


def completion_example(
    sets: Sequence[GFMSet], batch: int, documents: int, negatives: int, rng: np.random.Generator
) -> GFMExample:
    """Draw facts to complete: the relation is the question, one end the start, the other the target.

    The loss reads the target and `negatives` other entities, none of which completes the same fact. The facts are taken
    out of the graph, in both directions; what else it states of the same two entities stays.
    Raises SettingsError for a set without any fact.
    """
    if without := [one.name for one in sets if not one.kg.manifest.facts]:
        raise SettingsError(
            f"{', '.join(without)}: no fact to complete; leave the set out, or train without --completion"
        )
    chosen = sets[int(rng.integers(len(sets)))]
    graph = _graph_of(chosen, rng.permutation(len(chosen.kg.documents))[:documents])
    if not graph.messages:
        # the documents drawn state nothing: draw again, among those that state something
        stating = np.unique(chosen.kg.arrays.sources["document"])
        graph = _graph_of(chosen, rng.permutation(stating)[:documents])
    relations = len(graph.vectors) // 2
    forward = np.flatnonzero(graph.relation < relations)
    picked = rng.choice(forward, min(batch, len(forward)), replace=False)
    target, source, relation = graph.target[picked], graph.source[picked], graph.relation[picked]
    # half of the facts are asked for from their other end, by the inverse relation
    turned = rng.random(len(picked)) < 0.5
    start = np.zeros((len(picked), graph.entities), dtype=np.float32)
    targets = np.zeros_like(start)
    rows = np.arange(len(picked))
    begins, wanted = np.where(turned, source, target), np.where(turned, target, source)
    start[rows, begins] = 1
    targets[rows, wanted] = 1
    asked = np.where(turned, relation + relations, relation)
    others = [_others(graph, begin, kind, negatives, rng) for begin, kind in zip(begins, asked, strict=True)]
    read = np.concatenate((wanted[:, None], np.stack(others)), axis=1)
    left = _without(graph, target, source, relation, relations)
    return GFMExample(chosen.name, left, graph.vectors[asked], start, targets, read)


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Holds the graph of some documents alone, numbered anew: entities 0..N-1 and documents 0..D-1.

    entities: (N,) and documents: (D,), their numbers in the whole graph, ascending. mentions: D x N.
    """

    graph: GFMGraph
    entities: Ints
    documents: Ints
    mentions: SparseRows

    def rows(self, questions: Sequence[LinkedQuestion]) -> tuple[Floats, Floats, Floats]:
        """Return questions' start (B, N), target entities (B, N) and target documents (B, D).

        A question's targets are all entities of its supporting documents.
        """
        start, targets = np.zeros((2, len(questions), len(self.entities)), dtype=np.float32)
        wanted = np.zeros((len(questions), len(self.documents)), dtype=np.float32)
        for row, question in enumerate(questions):
            inside = np.isin(question.entities, self.entities)
            start[row, np.searchsorted(self.entities, question.entities[inside])] = question.weights[inside]
            for document in np.flatnonzero(np.isin(self.documents, question.supporting)):
                wanted[row, document] = 1
                targets[row, self.mentions.row(int(document))] = 1
        return start, targets, wanted


def pick_documents(kg: KGIndex, questions: Sequence[LinkedQuestion], size: int, rng: np.random.Generator) -> Ints:
    """Pick `size` documents for questions, ascending.

    First all that support the questions; then, for half of the places left, documents that name the questions'
    entities; then others at random.
    """
    needed = np.unique(np.concatenate([question.supporting for question in questions]))
    rows = [kg.mentions.row(int(entity)) for question in questions for entity in question.entities]
    near = np.setdiff1d(np.concatenate(rows) if rows else [], needed).astype(np.int64)
    near = rng.permutation(near)[: max(0, (size - len(needed)) // 2)]
    known = np.union1d(needed, near)
    rest = np.setdiff1d(np.arange(len(kg.documents)), known)
    return np.union1d(known, rng.permutation(rest)[: max(0, size - len(known))])


def part_of(kg: KGIndex, documents: Ints, inverse: Floats, toward: str = "head") -> GraphPart:
    """Return the part of `kg` that `documents`, ascending, state, with what no document states of its entities.

    inverse: (R, text width), the vectors of the inverse relations. Raises ValueError for a graph without vectors.
    """
    if kg.relation_vectors is None:
        raise ValueError("the knowledge graph holds no vectors: build it with an embedder")
    chosen = np.zeros(len(kg.documents), dtype=bool)
    chosen[documents] = True
    sources = chosen[kg.arrays.sources["document"]]
    stated = np.zeros(len(kg.edges), dtype=bool)
    sizes = np.diff(kg.arrays.source_starts)
    stated[np.repeat(np.arange(len(kg.edges)), sizes)[sources]] = True
    by_document = kg.documents_to_entities
    named = np.concatenate([by_document.row(int(document)) for document in documents])
    entities = np.unique(named).astype(np.int64)
    inside = np.zeros(len(kg.entities), dtype=bool)
    inside[entities] = True
    # no document states an equivalence, nor some imported facts
    alone, ends = sizes == 0, np.asarray(kg.edges)
    stated[alone] = inside[ends[alone, 0]] & inside[ends[alone, 2]]
    edges = np.asarray(kg.edges)[stated].astype(np.int64)
    relations, edges[:, 1] = np.unique(edges[:, 1], return_inverse=True)
    edges[:, [0, 2]] = np.searchsorted(entities, edges[:, [0, 2]])
    vectors = np.asarray(kg.relation_vectors, dtype=np.float32)[relations]
    graph = GFMGraph.from_edges(len(entities), edges, vectors, inverse[relations], toward)
    sizes = by_document.row_sizes()[documents]
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    columns = np.searchsorted(entities, named).astype(np.int32)
    ones = np.ones(len(columns), dtype=np.int32)
    return GraphPart(graph, entities, np.asarray(documents), SparseRows(starts, columns, ones, len(entities)))


def _graph_of(chosen: GFMSet, documents: Ints) -> GFMGraph:
    """Return the graph that some of a set's documents state."""
    return part_of(chosen.kg, np.sort(documents).astype(np.int64), chosen.inverse, chosen.config.toward).graph


def _others(graph: GFMGraph, begin: int, relation: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw `count` entities that no fact joins to `begin` by `relation`; any where there is none."""
    messages = slice(graph.indptr[begin], graph.indptr[begin + 1])
    true = np.unique(graph.source[messages][graph.relation[messages] == relation])
    if len(true) == graph.entities:
        return rng.integers(0, graph.entities, count)
    drawn = rng.integers(0, graph.entities - len(true), count)
    # the drawn-th entity of those that are not among `true`
    return drawn + np.searchsorted(true - np.arange(len(true)), drawn, side="right")


def _without(graph: GFMGraph, target: Ints, source: Ints, relation: Ints, relations: int) -> GFMGraph:
    """Return the graph without the messages of some facts (F,), and without those of their inverses."""

    def key(target: Ints, source: Ints, relation: Ints) -> Ints:
        return (relation * graph.entities + target) * graph.entities + source

    gone = np.concatenate((key(target, source, relation), key(source, target, relation + relations)))
    left = ~np.isin(key(graph.target, graph.source, graph.relation), gone)
    indptr = np.concatenate(([0], np.cumsum(left)))[graph.indptr]
    return replace(graph, indptr=indptr, source=graph.source[left], relation=graph.relation[left])


def _drop_entities(question: LinkedQuestion, dropout: float, rng: np.random.Generator) -> LinkedQuestion:
    left = rng.random(len(question.entities)) >= dropout
    if not left.any():
        left[rng.integers(len(left))] = True
    return replace(question, entities=question.entities[left], weights=question.weights[left])


def _shares(part: GraphPart) -> Tensor:
    """Return sparse (D, N): what an entity's probability adds to each document that names it, by PACKAGED."""
    import torch

    columns, sizes = part.mentions.columns.astype(np.int64), part.mentions.row_sizes()
    rows = np.repeat(np.arange(len(part.documents)), sizes)
    frequency = np.bincount(columns, minlength=len(part.entities)).astype(np.float32)
    shares = frequency[columns] ** -PACKAGED.power / np.repeat(sizes, sizes) ** PACKAGED.length
    values = torch.from_numpy(shares.astype(np.float32))
    shape = (len(part.documents), len(part.entities))
    return torch.sparse_coo_tensor(torch.from_numpy(np.stack((rows, columns))), values, shape, check_invariants=False)
