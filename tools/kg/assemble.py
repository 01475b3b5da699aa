"""Builds a graph's arrays from the facts of passages. The result depends on the facts, and not on their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.arrays import SOURCE, KGArrays, SparseRows, StringTable
from ras_agent.tools.kg.notes import note_of
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge

EQUIVALENT = "equivalent"
"""The name of the relation between entities whose names have nearly the same vector."""


class Occurrences:
    """Holds facts as they were read, with names and documents replaced by numbers.

    Args:
        names: distinct names; the facts, mentions and edges refer to them by number.
        documents: the ids of the documents.
        facts: (F, 7), document, subject, predicate, object, start, end, note.
        mentions: (M, 3), document, name, count.
        edges: (U, 3), subject, predicate and object of edges that no document states.
        similarities: (U,), the cosine of each of these edges that is an equivalence, NaN for facts.
        keys: the canonical key of each name; by default computed, which takes as long as all other steps. Names in
            the order of their keys are processed fastest.
        notes: notes about where facts were read; the first is "", for facts without a note.
    """

    def __init__(
        self,
        names: StringTable,
        documents: StringTable,
        facts: Ints,
        mentions: Ints,
        edges: Ints,
        similarities: npt.NDArray[np.float32],
        keys: StringTable | None = None,
        notes: StringTable | None = None,
    ) -> None:
        self.names = names
        self.documents = documents
        self.keys = keys
        self.facts = facts.reshape(-1, 7)
        self.mentions = mentions.reshape(-1, 3)
        self.edges = edges.reshape(-1, 3)
        self.similarities = similarities
        if notes is None:
            notes = StringTable.of([""])
        self.notes = notes

    def entity_keys(self, *, exact: bool = False) -> StringTable:
        """Return the key of each name. Names with the same key are one entity: the canonical keys, or the names if
        `exact`.
        """
        if exact:
            return self.names
        if self.keys is None:
            return StringTable.of(map(canonical_key, self.names))
        return self.keys


def occurrences_of(
    passages: Iterable[PassageFacts], edges: Iterable[UnstatedEdge] = ()
) -> Occurrences:
    """Number the names and documents in the facts of passages, and in edges that no passage states.

    A fact that a passage states twice occurs twice.
    """
    names: dict[str, int] = {}
    documents: dict[str, int] = {}
    notes = {"": 0}
    facts: list[tuple[int, ...]] = []
    mentions: list[tuple[int, ...]] = []

    def name(surface: str) -> int:
        return names.setdefault(surface, len(names))

    for passage in passages:
        document = documents.setdefault(passage.passage_id, len(documents))
        for triple in passage.triples:
            numbers = name(triple.subject), name(triple.predicate), name(triple.object)
            for at in passage.places(triple):
                note = note_of(triple, at)
                number = notes.setdefault(note, len(notes))
                row = (document, *numbers, at.start, at.end, number)
                facts.append(row)
        mentions += [(document, name(entity), 1) for entity in passage.entities]
    known = list(edges)
    unstated = [
        (name(edge.subject), name(edge.relation), name(edge.target)) for edge in known
    ]
    similarities = [
        np.nan if edge.similarity is None else edge.similarity for edge in known
    ]
    return Occurrences(
        StringTable.of(names),
        StringTable.of(documents),
        np.array(facts, np.int64),
        np.array(mentions, np.int64),
        np.array(unstated, np.int64),
        np.array(similarities, np.float32),
        notes=StringTable.of(notes),
    )


class Assembled(NamedTuple):
    """Holds a graph without vectors, and the numbers that its names and documents have in the Occurrences."""

    graph: KGArrays
    entities: Ints
    """(E,), the number of each entity's name."""
    relations: Ints
    """(R,), the number of each relation's name; -1 for the last one, equivalence."""
    documents: Ints
    """(D,), the number of each document."""


def assemble(
    found: Occurrences, *, exact: bool = False, equivalences: bool = False
) -> Assembled:
    """Build the graph of the occurrences. Names that no fact, mention or edge uses are left out.

    A document without facts and mentions is kept, since it was read.

    Args:
        exact: whether names are one entity only if they are equal; by default, if their canonical keys are equal.
        equivalences: whether to include the imported equivalences; otherwise the graph has no equivalences.
    """
    facts = found.facts
    mentions = found.mentions
    of_facts = np.isnan(found.similarities)
    alone = found.edges[of_facts]
    alike = found.edges[~of_facts & equivalences]
    names = _Names(found.names, found.entity_keys(exact=exact))
    ends = [
        facts[:, 1],
        facts[:, 3],
        mentions[:, 1],
        alone[:, 0],
        alone[:, 2],
        alike[:, 0],
        alike[:, 2],
    ]
    entities = names.numbered(np.concatenate(ends))
    relations = names.numbered(np.concatenate([facts[:, 2], alone[:, 1]]))
    order = _ascending(found.documents.encoded())
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    every = np.concatenate([facts[:, 1:4], alone])
    heads = entities.of[every[:, 0]]
    predicates = relations.of[every[:, 1]]
    tails = entities.of[every[:, 2]]
    first, edge_of = _distinct(heads, predicates, tails)
    edges = np.stack([heads[first], predicates[first], tails[first]], axis=1)
    edge_of = edge_of[: len(facts)]
    sources = np.empty(len(facts), dtype=SOURCE)
    notes, note_of_fact = _numbered_notes(found.notes, facts[:, 6])
    sources["document"] = place[facts[:, 0]]
    sources["start"] = facts[:, 4]
    sources["end"] = facts[:, 5]
    sources["note"] = note_of_fact
    sort_keys = [edge_of]
    for name in SOURCE.names or ():
        column = sources[name]
        sort_keys.append(column)
    sort_keys.reverse()  # `lexsort` sorts by its last key first
    by_edge = np.lexsort(sort_keys)
    starts = offsets_of(np.bincount(edge_of, minlength=len(edges)))

    # a fact whose two ends are the same entity counts as one mention of it
    is_loop = entities.of[facts[:, 1]] == entities.of[facts[:, 3]]
    with_object = facts[~is_loop]
    naming = [
        facts[:, [1, 0]],
        with_object[:, [3, 0]],
        mentions[:, [1, 0]],
    ]
    name, document = np.concatenate(naming).T
    rows = entities.of[name]
    columns = place[document]
    counts = np.ones(len(rows), np.int64)
    counts[len(rows) - len(mentions) :] = mentions[:, 2]
    graph = KGArrays(
        entities=entities.names,
        keys=entities.keys,
        relations=relations.names.joined(StringTable.of([EQUIVALENT])),
        relation_keys=relations.keys,
        edges=edges.astype(np.int32),
        similarities=np.empty(0, dtype=np.float32),
        mentions=SparseRows.counted(
            rows, columns, (len(entities.names), len(order)), counts
        ),
        source_starts=starts,
        sources=sources[by_edge],
        documents=found.documents.take(order),
        notes=notes,
    )
    pairs = entities.of[alike[:, [0, 2]]].reshape(-1, 2)
    first, _ = _distinct(pairs[:, 0], pairs[:, 1])
    first = first[pairs[first, 0] != pairs[first, 1]]
    graph = with_equivalences(
        graph, pairs[first], found.similarities[~of_facts & equivalences][first]
    )
    return Assembled(graph, entities.chosen, np.append(relations.chosen, -1), order)


def _numbered_notes(notes: StringTable, used: Ints) -> tuple[StringTable, Ints]:
    """Return the notes that are used, "" first and the rest ascending, and the number of the note of each place."""
    strings = notes.encoded()
    numbers = set(used.tolist())
    numbers.add(0)
    chosen = sorted(numbers, key=strings.__getitem__)
    taken = notes.take(np.array(chosen))
    number_of = np.zeros(len(strings), np.int64)
    number_of[chosen] = np.arange(len(chosen))
    return taken, number_of[used]


def with_equivalences(
    graph: KGArrays,
    pairs: npt.NDArray[np.integer[Any]],
    similarities: npt.NDArray[np.float32],
) -> KGArrays:
    """Return `graph` with its equivalences replaced.

    Args:
        pairs: (P, 2), head and tail of each equivalence, each pair once.
        similarities: (P,), their cosines.
    """
    pairs = pairs.reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    added = np.empty((len(pairs), 3), dtype=np.int32)
    added[:, [0, 2]] = pairs[order]
    added[:, 1] = len(graph.relations) - 1
    facts = graph.edges[: graph.facts]
    starts = graph.source_starts[: graph.facts + 1]
    no_sources = np.full(len(pairs), starts[-1])
    return replace(
        graph,
        edges=np.concatenate([facts, added]),
        similarities=np.asarray(similarities, dtype=np.float32)[order],
        source_starts=np.concatenate([starts, no_sources]),
    )


def without_documents(
    graph: KGArrays,
    gone: npt.NDArray[np.bool_],
    left_out: npt.NDArray[np.bool_] | None = None,
) -> KGArrays:
    """Return `graph` without the facts and mentions that only certain documents have.

    Entities, relations and documents keep their numbers.

    Args:
        gone: (D,), True for these documents.
        left_out: (S,), True for sources that are left out, too; their documents still mention the same names.
    """
    edges = graph.source_edges()
    stated = ~gone[graph.sources["document"]]
    if left_out is not None:
        stated &= ~left_out
    left = np.bincount(edges[stated], minlength=len(graph.edges))
    # equivalences and some imported facts have no source in any document
    stays = (left > 0) | (np.diff(graph.source_starts) == 0)
    mentions = graph.mentions
    named = ~gone[mentions.columns]
    rows = mentions.entry_rows()[named]
    columns = mentions.columns[named]
    counts = mentions.values[named]
    return replace(
        graph,
        edges=graph.edges[stays],
        mentions=SparseRows.sorted(rows, columns, counts, mentions.shape),
        source_starts=offsets_of(left[stays]),
        sources=graph.sources[stated],
    )


def part_of(
    graph: KGArrays,
    admitted: npt.NDArray[np.bool_],
    *,
    imported: bool = False,
    left_out: npt.NDArray[np.bool_] | None = None,
) -> KGArrays:
    """Return a smaller graph with only the admitted documents, the facts that they state, and the names in these.

    Names keep their order, but get new numbers. An equivalence stays if both of its names do.

    Args:
        admitted: (D,), True for these documents.
        imported: whether the equivalences were imported; then they are left out.
        left_out: (S,), True for sources whose facts are left out, though their documents are admitted.
    """
    left = without_documents(graph, ~admitted, left_out)
    source_counts = np.diff(left.source_starts)
    stays = source_counts > 0
    named = left.mentions.row_sizes() > 0
    ends = left.edges[:, [0, 2]]
    named[ends[stays]] = True
    if not imported:
        stays[left.facts :] = named[ends[left.facts :]].all(axis=1)
    similarities = left.similarities[stays[left.facts :]]
    used = np.zeros(len(left.relations), dtype=np.bool_)
    used[left.edges[stays, 1]] = True
    used[-1] = True  # the equivalence relation is always kept, as the last one
    of_entity = np.cumsum(named) - 1
    of_relation = np.cumsum(used) - 1
    of_document = np.cumsum(admitted) - 1
    edges = left.edges[stays]
    edges[:, [0, 2]] = of_entity[edges[:, [0, 2]]]
    edges[:, 1] = of_relation[edges[:, 1]]
    rows = of_entity[left.mentions.entry_rows()]
    columns = of_document[left.mentions.columns]
    shape = int(named.sum()), int(admitted.sum())
    mentions = SparseRows.sorted(rows, columns, left.mentions.values, shape)
    sources = left.sources.copy()
    sources["document"] = of_document[sources["document"]]
    notes, note_of_source = _numbered_notes(left.notes, sources["note"])
    sources["note"] = note_of_source
    entity_vectors = left.entity_vectors
    if entity_vectors is not None:
        entity_vectors = np.asarray(entity_vectors)[named]
    relation_vectors = left.relation_vectors
    if relation_vectors is not None:
        relation_vectors = np.asarray(relation_vectors)[used]
    texts = left.texts
    if texts is not None:
        texts = np.asarray(texts)[admitted]
    return replace(
        left,
        entities=left.entities.take(np.flatnonzero(named)),
        keys=left.keys.take(np.flatnonzero(named)),
        relations=left.relations.take(np.flatnonzero(used)),
        relation_keys=left.relation_keys.take(np.flatnonzero(used[:-1])),
        edges=edges,
        similarities=similarities,
        mentions=mentions,
        source_starts=offsets_of(source_counts[stays]),
        sources=sources,
        documents=left.documents.take(np.flatnonzero(admitted)),
        notes=notes,
        entity_vectors=entity_vectors,
        relation_vectors=relation_vectors,
        near=None,
        texts=texts,
    )


class _Numbered(NamedTuple):
    """Holds K names that are used, in ascending order of their distinct keys."""

    chosen: Ints
    """(K,) the number of each among all names."""
    names: StringTable
    keys: StringTable
    of: Ints
    """(all names,) the number of a name's key, or -1 if no name with that key is used."""


class _Names:
    """Holds names and the keys that tell them apart, sorted once."""

    def __init__(self, names: StringTable, keys: StringTable) -> None:
        self._names = names
        self._keys = keys
        strings = keys.encoded()
        order = _ascending(strings)
        ascending = [strings[number] for number in order.tolist()]
        other = np.fromiter(map(ne, ascending, ascending[1:]), np.int64)
        # for each name, the rank of its key among the distinct keys
        self._key_of = np.zeros(len(order), dtype=np.int64)
        self._key_of[order[1:]] = np.cumsum(other)

    def numbered(self, used: Ints) -> _Numbered:
        """Number the keys of the `used` names. The most frequent name with a key stands for it; ties go to the first in
        order."""
        counts = np.bincount(used, minlength=len(self._names))
        named = np.flatnonzero(counts)
        order = np.lexsort((-counts[named], self._key_of[named]))
        named = named[order]
        keys, first, group = np.unique(
            self._key_of[named], return_index=True, return_inverse=True
        )
        best = named[first]
        rivals = counts[named] == counts[best][group]
        rivals[first] = False
        for at in np.flatnonzero(rivals).tolist():
            key = group[at]
            both = (int(named[at]), int(best[key]))
            best[key] = min(both, key=self._names.__getitem__)
        of_key = np.full(len(self._key_of), -1, dtype=np.int64)
        of_key[keys] = np.arange(len(keys))
        names = self._names.take(best)
        return _Numbered(best, names, self._keys.take(best), of_key[self._key_of])


def _ascending(strings: list[bytes]) -> Ints:
    """Return the numbers of the strings, in the order in which the strings ascend."""
    order = sorted(range(len(strings)), key=strings.__getitem__)
    return np.array(order, dtype=np.int64)


def _distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """Return where each distinct row of some columns (F,) first occurs, in sorted order, and for each row (F,) its
    number.

    The columns are combined two at a time, so that one number stands for a row, which sorts ten times as fast as rows.
    """
    joined, *others = columns
    _, first, number = np.unique(joined, return_index=True, return_inverse=True)
    for column in others:
        size = int(column.max(initial=0)) + 1
        joined = number * size + column
        _, first, number = np.unique(joined, return_index=True, return_inverse=True)
    return first, number
