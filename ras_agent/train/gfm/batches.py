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
    """B questions over a graph of N entities: vectors (B, text width), start and targets (B, N).

    candidates: (B, C), the entities that the loss reads; None for all.
    shares: sparse (D, N), and document_targets: (B, D), for the loss over documents.
    """

    name: str
    graph: GFMGraph
    vectors: Floats
    start: Floats
    targets: Floats
    candidates: Ints | None = None
    shares: Tensor | None = None
    document_targets: Floats | None = None


def retrieval_example(
    sets: Sequence[GFMSet], batch: int, documents: int, labelled: float, dropout: float, rng: np.random.Generator
) -> GFMExample:
    """Draw questions of one set, and the part of its graph that `documents` documents state; 0 for the whole graph.

    labelled: how often labelled questions are drawn where the set has them. dropout: the share of a question's entities
        that is left out. Raises SettingsError where no set holds a question with an entity.
    """
    with_labels, with_pseudo = [set_ for set_ in sets if set_.labelled], [set_ for set_ in sets if set_.pseudo]
    if not with_labels and not with_pseudo:
        names = ", ".join(set_.name for set_ in sets)
        raise SettingsError(f"no question of {names} names an entity of its graph: train on other --sets")
    use_labels = bool(with_labels) and (rng.random() < labelled or not with_pseudo)
    candidates = with_labels if use_labels else with_pseudo
    chances = np.array([len(set_.labelled if use_labels else set_.pseudo) for set_ in candidates], dtype=np.float64)
    gfm_set = candidates[int(rng.choice(len(candidates), p=chances / chances.sum()))]
    pool = gfm_set.labelled if use_labels else gfm_set.pseudo
    places = rng.choice(len(pool), min(batch, len(pool)), replace=False)
    questions = [_drop_entities(pool[place], dropout, rng) for place in places]
    part = _part(gfm_set, pick_documents(gfm_set.kg, questions, documents, rng) if documents else None)
    start, targets, document_targets = part.rows(questions)
    vectors = np.stack([question.vector for question in questions])
    return GFMExample(gfm_set.name, part.graph, vectors, start, targets, None, _shares(part), document_targets)


def completion_example(
    sets: Sequence[GFMSet], batch: int, documents: int, negatives: int, rng: np.random.Generator
) -> GFMExample:
    """Draw facts to complete: the relation is the question, one end the start, the other the target.

    The loss reads the target and `negatives` other entities, none of which completes the same fact. The facts are taken
    out of the graph, in both directions; what else it states of the same two entities stays. documents: the number of
    those that state the graph; 0 for the whole graph of the set.
    Raises SettingsError for a set without any fact.
    """
    if without := [set_.name for set_ in sets if not set_.kg.manifest.facts]:
        raise SettingsError(
            f"{', '.join(without)}: no fact to complete; leave the set out, or train without --completion"
        )
    gfm_set = sets[int(rng.integers(len(sets)))]
    drawn = np.sort(rng.permutation(len(gfm_set.kg.documents))[:documents]) if documents else None
    graph = _part(gfm_set, drawn).graph
    if not graph.messages:
        # the documents drawn state nothing: draw again, among those that state something
        stating = np.unique(gfm_set.kg.arrays.sources["document"])
        graph = _part(gfm_set, np.sort(rng.permutation(stating)[:documents])).graph
    relations = graph.relations // 2
    forward = np.flatnonzero(graph.relation < relations)
    facts = rng.choice(forward, min(batch, len(forward)), replace=False)
    target, source, relation = graph.target[facts], graph.source[facts], graph.relation[facts]
    # half of the facts are asked for from their other end, by the inverse relation
    inverted = rng.random(len(facts)) < 0.5
    start = np.zeros((len(facts), graph.entities), dtype=np.float32)
    targets = np.zeros_like(start)
    rows = np.arange(len(facts))
    begins, ends = np.where(inverted, source, target), np.where(inverted, target, source)
    start[rows, begins] = 1
    targets[rows, ends] = 1
    kinds = np.where(inverted, relation + relations, relation)
    others = [_others(graph, begin, kind, negatives, rng) for begin, kind in zip(begins, kinds, strict=True)]
    candidates = np.concatenate((ends[:, None], np.stack(others)), axis=1)
    rest = _without(graph, target, source, relation, relations)
    return GFMExample(gfm_set.name, rest, graph.vectors_of(kinds), start, targets, candidates)


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Part of a graph that some documents state, with numbers of its own: entities 0..N-1 and documents 0..D-1.

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
        document_targets = np.zeros((len(questions), len(self.documents)), dtype=np.float32)
        for row, question in enumerate(questions):
            inside = np.isin(question.entities, self.entities)
            start[row, np.searchsorted(self.entities, question.entities[inside])] = question.weights[inside]
            for document in np.flatnonzero(np.isin(self.documents, question.supporting)):
                document_targets[row, document] = 1
                targets[row, self.mentions.row(int(document))] = 1
        return start, targets, document_targets


def pick_documents(kg: KGIndex, questions: Sequence[LinkedQuestion], size: int, rng: np.random.Generator) -> Ints:
    """Pick `size` documents for questions, ascending.

    First all that support the questions; then, for half of the places left, documents that name the questions'
    entities; then others at random.
    """
    needed = np.unique(np.concatenate([question.supporting for question in questions]))
    rows = [kg.mentions.row(int(entity)) for question in questions for entity in question.entities]
    near = np.setdiff1d(np.concatenate(rows) if rows else [], needed).astype(np.int64)
    near = rng.permutation(near)[: max(0, (size - len(needed)) // 2)]
    first = np.union1d(needed, near)
    rest = np.setdiff1d(np.arange(len(kg.documents)), first)
    return np.union1d(first, rng.permutation(rest)[: max(0, size - len(first))])


def part_of(kg: KGIndex, documents: Ints, inverse: Floats | None, message_target: str = "head") -> GraphPart:
    """Return the part of `kg` that the documents `documents` (D,), ascending, state.

    Facts of these entities that no document states, such as equivalences, belong to it too.
    inverse: (R, text width), the vectors of the inverse relations; see GFMGraph.from_edges.
    Raises ValueError for a graph without vectors.
    """
    if kg.relation_vectors is None:
        raise ValueError("the knowledge graph holds no vectors: build it with an embedder")
    inside_documents = np.zeros(len(kg.documents), dtype=bool)
    inside_documents[documents] = True
    sources = inside_documents[kg.arrays.sources["document"]]
    edge_mask = np.zeros(len(kg.edges), dtype=bool)
    sizes = np.diff(kg.arrays.source_starts)
    edge_mask[np.repeat(np.arange(len(kg.edges)), sizes)[sources]] = True
    by_document = kg.documents_to_entities
    mentions = np.concatenate([by_document.row(int(document)) for document in documents])
    entities = np.unique(mentions).astype(np.int64)
    inside = np.zeros(len(kg.entities), dtype=bool)
    inside[entities] = True
    # no document states an equivalence, nor some imported facts
    sourceless, ends = sizes == 0, np.asarray(kg.edges)
    edge_mask[sourceless] = inside[ends[sourceless, 0]] & inside[ends[sourceless, 2]]
    edges = np.asarray(kg.edges)[edge_mask].astype(np.int64)
    relations, edges[:, 1] = np.unique(edges[:, 1], return_inverse=True)
    edges[:, [0, 2]] = np.searchsorted(entities, edges[:, [0, 2]])
    vectors = np.asarray(kg.relation_vectors[relations], dtype=np.float32)
    inverses = None if inverse is None else inverse[relations]
    graph = GFMGraph.from_edges(len(entities), edges, vectors, inverses, message_target)
    sizes = by_document.row_sizes()[documents]
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    columns = np.searchsorted(entities, mentions).astype(np.int32)
    ones = np.ones(len(columns), dtype=np.int32)
    return GraphPart(graph, entities, np.asarray(documents), SparseRows(starts, columns, ones, len(entities)))


def _part(gfm_set: GFMSet, documents: Ints | None) -> GraphPart:
    """Return the part of a set's graph that some documents state, ascending; None for the whole graph."""
    kg, target = gfm_set.kg, gfm_set.config.message_target
    if documents is not None:
        return part_of(kg, documents.astype(np.int64), gfm_set.inverse, target)
    vectors = np.asarray(kg.relation_vectors, dtype=np.float32)
    graph = GFMGraph.from_edges(len(kg.entities), np.asarray(kg.edges), vectors, gfm_set.inverse, target)
    return GraphPart(graph, np.arange(len(kg.entities)), np.arange(len(kg.documents)), kg.documents_to_entities)


def _others(graph: GFMGraph, begin: int, relation: int, count: int, rng: np.random.Generator) -> Ints:
    """Draw `count` entities that no fact joins to `begin` by `relation`; if there is none, any entities."""
    messages = slice(graph.indptr[begin], graph.indptr[begin + 1])
    true = np.unique(graph.source[messages][graph.relation[messages] == relation])
    if len(true) == graph.entities:
        return rng.integers(0, graph.entities, count)
    places = rng.integers(0, graph.entities - len(true), count)
    # the entities at these places of those that are not among `true`
    return places + np.searchsorted(true - np.arange(len(true)), places, side="right")


def _without(graph: GFMGraph, target: Ints, source: Ints, relation: Ints, relations: int) -> GFMGraph:
    """Return the graph without the messages of F facts and of their inverses. target, source, relation: (F,)."""

    def key(target: Ints, source: Ints, relation: Ints) -> Ints:
        return (relation * graph.entities + target) * graph.entities + source

    excluded = np.concatenate((key(target, source, relation), key(source, target, relation + relations)))
    mask = ~np.isin(key(graph.target, graph.source, graph.relation), excluded)
    indptr = np.concatenate(([0], np.cumsum(mask)))[graph.indptr]
    return replace(graph, indptr=indptr, source=graph.source[mask], relation=graph.relation[mask])


def _drop_entities(question: LinkedQuestion, dropout: float, rng: np.random.Generator) -> LinkedQuestion:
    mask = rng.random(len(question.entities)) >= dropout
    if not mask.any():
        mask[rng.integers(len(mask))] = True
    return replace(question, entities=question.entities[mask], weights=question.weights[mask])


def _shares(part: GraphPart) -> Tensor:
    """Return sparse (D, N): what an entity's probability adds to the score of each document that names it.

    The factors are those of the packaged ranker, PACKAGED.
    """
    import torch

    columns, sizes = part.mentions.columns.astype(np.int64), part.mentions.row_sizes()
    rows = np.repeat(np.arange(len(part.documents)), sizes)
    frequency = np.bincount(columns, minlength=len(part.entities)).astype(np.float32)
    shares = frequency[columns] ** -PACKAGED.power / np.repeat(sizes, sizes) ** PACKAGED.length
    values = torch.from_numpy(shares.astype(np.float32))
    shape = (len(part.documents), len(part.entities))
    return torch.sparse_coo_tensor(torch.from_numpy(np.stack((rows, columns))), values, shape, check_invariants=False)
