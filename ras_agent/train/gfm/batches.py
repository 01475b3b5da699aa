"""Draws the input of training steps: questions of a set, and the part of its graph that some of its documents
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints, offsets_of
from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.train.gfm.sets import GFMSet, LinkedQuestion

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class GFMExample:
    """Holds B questions over a graph of N entities and D documents."""

    name: str
    """The name of the set."""
    graph: GFMGraph
    vectors: Floats
    """The vectors of the questions, (B, text width)."""
    start: Floats
    """The weights of the entities at which the questions start, (B, N)."""
    targets: Floats
    """1 for each target entity, else 0, (B, N)."""
    candidates: Ints | None = None
    """The entities that the loss reads, (B, C); None for all."""
    shares: Tensor | None = None
    """The factor of each entity in each document, sparse (D, N), for the loss over documents."""
    document_targets: Floats | None = None
    """1 for each supporting document, else 0, (B, D), for the loss over documents."""


def draw_questions(
    pools: Sequence[Sequence[LinkedQuestion]], batch: int, rng: np.random.Generator
) -> tuple[int, list[LinkedQuestion]]:
    """Draw a pool, with a probability proportional to its size, and `batch` questions from it.

    Returns:
        The index of the pool, and the questions.
    """
    sizes = np.array([len(pool) for pool in pools], dtype=np.float64)
    chosen = int(rng.choice(len(pools), p=sizes / sizes.sum()))
    pool = pools[chosen]
    places = rng.choice(len(pool), min(batch, len(pool)), replace=False)
    return chosen, [pool[place] for place in places]


def retrieval_example(
    sets: Sequence[GFMSet],
    batch: int,
    documents: int,
    labelled: float,
    dropout: float,
    rng: np.random.Generator,
) -> GFMExample:
    """Draw questions of one set, and the part of its graph that `documents` documents state.

    Args:
        sets: The training sets.
        batch: The number of questions.
        documents: The number of documents that state the graph; 0 for the whole graph.
        labelled: The probability of drawing labelled questions, if the set has them.
        dropout: The share of a question's entities that is left out.
        rng: The source of all draws.

    Raises:
        SettingsError: If no set has a question with an entity.
    """
    with_labels = [gfm_set for gfm_set in sets if gfm_set.labelled]
    with_pseudo = [gfm_set for gfm_set in sets if gfm_set.pseudo]
    if not with_labels and not with_pseudo:
        names = ", ".join(gfm_set.name for gfm_set in sets)
        raise SettingsError(
            f"no question of {names} names an entity of its graph: train on other --sets"
        )
    if with_labels and (rng.random() < labelled or not with_pseudo):
        candidates = with_labels
        pools = [gfm_set.labelled for gfm_set in candidates]
    else:
        candidates = with_pseudo
        pools = [gfm_set.pseudo for gfm_set in candidates]
    chosen, drawn = draw_questions(pools, batch, rng)
    gfm_set = candidates[chosen]
    questions = [_drop_entities(question, dropout, rng) for question in drawn]
    picked = None
    if documents:
        picked = pick_documents(gfm_set.kg, questions, documents, rng)
    part = _part(gfm_set, picked)
    start, targets, document_targets = part.rows(questions)
    return GFMExample(
        name=gfm_set.name,
        graph=part.graph,
        vectors=np.stack([question.vector for question in questions]),
        start=start,
        targets=targets,
        shares=_shares(part),
        document_targets=document_targets,
    )


def completion_example(
    sets: Sequence[GFMSet],
    batch: int,
    documents: int,
    negatives: int,
    rng: np.random.Generator,
) -> GFMExample:
    """Draw facts to complete: the relation is the question, one end of the fact the start, and the other end the
    target.

    The loss reads the target and `negatives` other entities that do not complete the same fact. The facts are removed
    from the graph in both directions; other facts about the same two entities stay.

    Args:
        sets: The training sets.
        batch: The number of facts.
        documents: How many documents state the graph; 0 for the whole graph of the set.
        negatives: The number of other entities.
        rng: The source of all draws.

    Raises:
        SettingsError: If a set has no fact.
    """
    without = [gfm_set.name for gfm_set in sets if not gfm_set.kg.manifest.facts]
    if without:
        raise SettingsError(
            f"the graph of {', '.join(without)} has no facts to complete: leave it out of --sets, or leave out "
            "--completion"
        )
    gfm_set = sets[int(rng.integers(len(sets)))]
    graph = _drawn_graph(gfm_set, documents, rng)
    relations = graph.relations // 2
    forward = np.flatnonzero(graph.relation < relations)
    facts = rng.choice(forward, min(batch, len(forward)), replace=False)
    target = graph.target[facts]
    source = graph.source[facts]
    relation = graph.relation[facts]
    # half of the facts start from their other end, with the inverse relation
    inverted = rng.random(len(facts)) < 0.5
    begins = np.where(inverted, source, target)
    ends = np.where(inverted, target, source)
    kinds = np.where(inverted, relation + relations, relation)
    rows = np.arange(len(facts))
    start = np.zeros((len(facts), graph.entities), dtype=np.float32)
    start[rows, begins] = 1
    targets = np.zeros_like(start)
    targets[rows, ends] = 1
    others = []
    for begin, kind in zip(begins, kinds, strict=True):
        others.append(_others(graph, begin, kind, negatives, rng))
    return GFMExample(
        name=gfm_set.name,
        graph=_without(graph, target, source, relation),
        vectors=graph.vectors_of(kinds),
        start=start,
        targets=targets,
        candidates=np.column_stack((ends, *np.transpose(others))),
    )


def _drawn_graph(gfm_set: GFMSet, documents: int, rng: np.random.Generator) -> GFMGraph:
    """Return the part of a set's graph that `documents` documents state; the whole graph for 0. At least one
    fact is drawn.
    """
    if not documents:
        return _part(gfm_set, None).graph
    drawn = rng.permutation(len(gfm_set.kg.documents))[:documents]
    graph = _part(gfm_set, np.sort(drawn)).graph
    if graph.messages:
        return graph
    stating = np.unique(gfm_set.kg.arrays.sources["document"])
    drawn = rng.permutation(stating)[:documents]
    return _part(gfm_set, np.sort(drawn)).graph


@dataclass(frozen=True, slots=True)
class GraphPart:
    """Holds the part of a graph that some documents state, with entities numbered 0..N-1 and documents 0..D-1."""

    graph: GFMGraph
    entities: Ints
    """The numbers of the entities in the whole graph, (N,), ascending."""
    documents: Ints
    """The numbers of the documents in the whole graph, (D,), ascending."""
    mentions: SparseRows
    """The entities that each document names, D x N."""

    def rows(
        self, questions: Sequence[LinkedQuestion]
    ) -> tuple[Floats, Floats, Floats]:
        """Return questions as rows: start weights (B, N), target entities (B, N) and target documents (B, D),
        all float32.

        The targets of a question are its supporting documents and all entities that these name.
        """
        shape = (len(questions), len(self.entities))
        start = np.zeros(shape, dtype=np.float32)
        targets = np.zeros(shape, dtype=np.float32)
        document_targets = np.zeros(
            (len(questions), len(self.documents)), dtype=np.float32
        )
        for row, question in enumerate(questions):
            inside = np.isin(question.entities, self.entities)
            columns = np.searchsorted(self.entities, question.entities[inside])
            start[row, columns] = question.weights[inside]
            supporting = np.isin(self.documents, question.supporting)
            for document in np.flatnonzero(supporting):
                document_targets[row, document] = 1
                targets[row, self.mentions.row(int(document))] = 1
        return start, targets, document_targets


def pick_documents(
    kg: KGIndex,
    questions: Sequence[LinkedQuestion],
    size: int,
    rng: np.random.Generator,
) -> Ints:
    """Return the numbers of `size` documents for questions, in ascending order.

    All documents that support the questions are included. Half of the remaining places go to documents that name the
    questions' entities, and the rest to random documents.
    """
    needed = np.unique(np.concatenate([question.supporting for question in questions]))
    rows: list[npt.NDArray[np.integer]] = [np.empty(0, dtype=np.int64)]
    for question in questions:
        for entity in question.entities:
            rows.append(kg.mentions.row(int(entity)))
    near = np.setdiff1d(np.concatenate(rows), needed).astype(np.int64)
    room = max(0, (size - len(needed)) // 2)
    first = np.union1d(needed, rng.permutation(near)[:room])
    rest = np.setdiff1d(np.arange(len(kg.documents)), first)
    room = max(0, size - len(first))
    return np.union1d(first, rng.permutation(rest)[:room])


def part_of(
    kg: KGIndex, documents: Ints, inverse: Floats | None, message_target: str = "head"
) -> GraphPart:
    """Return the part of the graph `kg` that some documents state.

    It includes facts about these entities that no document states, such as equivalences.

    Args:
        kg: The whole graph.
        documents: The numbers of the documents, (D,), ascending.
        inverse: The vectors (R, text width) of the inverse relations; see GFMGraph.from_edges.
        message_target: The end of a fact that receives its message; see GFMGraph.from_edges.
    """
    mentions = _mentions_of(kg, documents)
    entities = np.unique(mentions.columns).astype(np.int64)
    edges = _edges_of(kg, documents, entities)
    relations, edges[:, 1] = np.unique(edges[:, 1], return_inverse=True)
    edges[:, [0, 2]] = np.searchsorted(entities, edges[:, [0, 2]])
    if inverse is not None:
        inverse = inverse[relations]
    graph = GFMGraph.from_edges(
        len(entities),
        edges,
        np.asarray(kg.relation_vectors, dtype=np.float32)[relations],
        inverse,
        message_target,
    )
    columns = np.searchsorted(entities, mentions.columns).astype(np.int32)
    return GraphPart(
        graph=graph,
        entities=entities,
        documents=np.asarray(documents),
        mentions=replace(mentions, columns=columns, width=len(entities)),
    )


def _mentions_of(kg: KGIndex, documents: Ints) -> SparseRows:
    """Return the entities that each document names, by their numbers in the whole graph."""
    by_document = kg.documents_to_entities
    columns = np.concatenate([by_document.row(int(document)) for document in documents])
    sizes = by_document.row_sizes()[documents]
    starts = offsets_of(sizes)
    ones = np.ones(len(columns), dtype=np.int32)
    return SparseRows(starts, columns, ones, len(kg.entities))


def _edges_of(kg: KGIndex, documents: Ints, entities: Ints) -> Ints:
    """Return the facts (E, 3) that the documents state, and those between `entities` that no document states."""
    inside_documents = np.zeros(len(kg.documents), dtype=bool)
    inside_documents[documents] = True
    inside = np.zeros(len(kg.entities), dtype=bool)
    inside[entities] = True
    edges = np.asarray(kg.edges)
    stated = inside_documents[kg.arrays.sources["document"]]
    mask = np.zeros(len(edges), dtype=bool)
    mask[kg.arrays.source_edges()[stated]] = True
    # no document states an equivalence, nor some imported facts
    sourceless = np.diff(kg.arrays.source_starts) == 0
    ends = edges[sourceless]
    mask[sourceless] = inside[ends[:, 0]] & inside[ends[:, 2]]
    return edges[mask].astype(np.int64)


def _part(gfm_set: GFMSet, documents: Ints | None) -> GraphPart:
    """Return the part of a set's graph that some documents, ascending, state; None for the whole graph."""
    kg = gfm_set.kg
    target = gfm_set.config.message_target
    if documents is not None:
        return part_of(kg, documents.astype(np.int64), gfm_set.inverse, target)
    graph = GFMGraph.from_edges(
        len(kg.entities),
        np.asarray(kg.edges),
        np.asarray(kg.relation_vectors, dtype=np.float32),
        gfm_set.inverse,
        target,
    )
    return GraphPart(
        graph=graph,
        entities=np.arange(len(kg.entities)),
        documents=np.arange(len(kg.documents)),
        mentions=kg.documents_to_entities,
    )


def _others(
    graph: GFMGraph, begin: int, relation: int, count: int, rng: np.random.Generator
) -> Ints:
    """Draw `count` entities that have no fact with `begin` by `relation`; if every entity has one, draw any
    entities.
    """
    messages = slice(graph.indptr[begin], graph.indptr[begin + 1])
    sources = graph.source[messages]
    true = np.unique(sources[graph.relation[messages] == relation])
    if len(true) == graph.entities:
        return rng.integers(0, graph.entities, count)
    places = rng.integers(0, graph.entities - len(true), count)
    # the entities at these places among those that are not in `true`
    return places + np.searchsorted(true - np.arange(len(true)), places, side="right")


def _without(graph: GFMGraph, target: Ints, source: Ints, relation: Ints) -> GFMGraph:
    """Return the graph without the messages of F facts and of their inverses.

    `target`, `source` and `relation` have shape (F,).
    """

    def key(target: Ints, source: Ints, relation: Ints) -> Ints:
        return (relation * graph.entities + target) * graph.entities + source

    inverse = relation + graph.relations // 2
    excluded = np.union1d(key(target, source, relation), key(source, target, inverse))
    mask = ~np.isin(key(graph.target, graph.source, graph.relation), excluded)
    kept_before = offsets_of(mask)
    return replace(
        graph,
        indptr=kept_before[graph.indptr],
        source=graph.source[mask],
        relation=graph.relation[mask],
    )


def _drop_entities(
    question: LinkedQuestion, dropout: float, rng: np.random.Generator
) -> LinkedQuestion:
    mask = rng.random(len(question.entities)) >= dropout
    if not mask.any():
        mask[rng.integers(len(mask))] = True
    return replace(
        question, entities=question.entities[mask], weights=question.weights[mask]
    )


def _shares(part: GraphPart) -> Tensor:
    """Return the factor by which an entity's probability adds to the score of each document that names it, sparse (D,
    N).

    The factors are those of the packaged ranker, PACKAGED.
    """
    import torch

    columns = part.mentions.columns.astype(np.int64)
    sizes = part.mentions.row_sizes()
    rows = part.mentions.entry_rows()
    frequency = np.bincount(columns).astype(np.float32)
    lengths = np.repeat(sizes, sizes)
    shares = frequency[columns] ** -PACKAGED.power / lengths**PACKAGED.length
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.stack((rows, columns))),
        torch.from_numpy(shares.astype(np.float32)),
        (len(part.documents), len(part.entities)),
        check_invariants=False,
    )
