"""Makes a graph's arrays from the facts of passages: a pure function of the set of facts, whatever their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.arrays import SOURCE, KGArrays, SparseRows, StringTable
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge

EQUIVALENT = "equivalent"
"""The name of the relation between entities whose names look the same to an embedder."""


class Occurrences:
    """Holds facts as they were read, with names and documents numbered.

    facts: (F, 6) document, subject, predicate, object, start, end; mentions: (M, 3) document, name, count.
    edges: (U, 3) subject, predicate, object, which no document states; similarities: (U,), NaN for facts.
    """

    def __init__(
        self,
        names: Sequence[str],
        documents: Sequence[str],
        facts: Ints,
        mentions: Ints,
        edges: Ints | None = None,
        similarities: npt.NDArray[np.float32] | None = None,
    ) -> None:
        self.names, self.documents = names, documents
        self.facts, self.mentions = facts.reshape(-1, 6), mentions.reshape(-1, 3)
        self.edges = np.empty((0, 3), np.int64) if edges is None else edges.reshape(-1, 3)
        self.similarities = np.empty(0, np.float32) if similarities is None else similarities


def occurrences_of(passages: Iterable[PassageFacts], edges: Iterable[UnstatedEdge] = ()) -> Occurrences:
    """Number the names in what passages state, and in edges that none states.

    A fact that a passage states twice occurs twice.
    """
    names: dict[str, int] = {}
    documents: dict[str, int] = {}
    facts: list[tuple[int, ...]] = []
    mentions: list[tuple[int, ...]] = []

    def name(surface: str) -> int:
        return names.setdefault(surface, len(names))

    for passage in passages:
        document = documents.setdefault(passage.passage_id, len(documents))
        for triple in passage.triples:
            numbers = name(triple.subject), name(triple.predicate), name(triple.object)
            facts += [(document, *numbers, start, end) for start, end in passage.spans(triple)]
        mentions += [(document, name(entity), 1) for entity in passage.entities]
    known = list(edges)
    unstated = [(name(edge.subject), name(edge.relation), name(edge.target)) for edge in known]
    similarities = [np.nan if edge.similarity is None else edge.similarity for edge in known]
    return Occurrences(
        list(names),
        list(documents),
        np.array(facts, np.int64),
        np.array(mentions, np.int64),
        np.array(unstated, np.int64),
        np.array(similarities, np.float32),
    )


def assemble(found: Occurrences, *, exact: bool = False, equivalences: bool = False) -> KGArrays:
    """Return the graph without vectors. Names that no fact and no mention uses leave no trace.

    A document without facts and mentions stays: it was read, and states nothing.
    exact: names are one entity only if they are equal, instead of by their canonical keys.
    equivalences: take those that were imported; else the graph has none.
    """
    facts, mentions = found.facts, found.mentions
    of_facts = np.isnan(found.similarities)
    alone, alike = found.edges[of_facts], found.edges[~of_facts & equivalences]
    keys = list(found.names) if exact else [canonical_key(name) for name in found.names]
    ends = [facts[:, 1], facts[:, 3], mentions[:, 1], alone[:, 0], alone[:, 2], alike[:, 0], alike[:, 2]]
    entities = _Numbering(found.names, keys, np.concatenate(ends))
    relations = _Numbering(found.names, keys, np.concatenate([facts[:, 2], alone[:, 1]]))
    order = sorted(range(len(found.documents)), key=found.documents.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    every = np.concatenate([facts[:, 1:4], alone])
    triples = np.stack([entities.of[every[:, 0]], relations.of[every[:, 1]], entities.of[every[:, 2]]], axis=1)
    edges, edge_of = np.unique(triples, axis=0, return_inverse=True)
    edge_of = edge_of.reshape(-1)[: len(facts)]
    sources = np.empty(len(facts), dtype=SOURCE)
    sources["document"], sources["start"], sources["end"] = place[facts[:, 0]], facts[:, 4], facts[:, 5]
    by_edge = np.lexsort((sources["end"], sources["start"], sources["document"], edge_of))
    starts = np.zeros(len(edges) + 1, dtype=np.int64)
    np.cumsum(np.bincount(edge_of, minlength=len(edges)), out=starts[1:])

    # a loop names its entity once
    loops = entities.of[facts[:, 1]] == entities.of[facts[:, 3]]
    rows = np.concatenate([entities.of[facts[:, 1]], entities.of[facts[~loops, 3]], entities.of[mentions[:, 1]]])
    columns = np.concatenate([place[facts[:, 0]], place[facts[~loops, 0]], place[mentions[:, 0]]])
    counts = np.concatenate([np.ones(len(facts) + np.count_nonzero(~loops), np.int64), mentions[:, 2]])
    graph = KGArrays(
        entities=StringTable.of(entities.names),
        keys=StringTable.of(entities.keys),
        relations=StringTable.of([*relations.names, EQUIVALENT]),
        relation_keys=StringTable.of(relations.keys),
        edges=edges.astype(np.int32).reshape(-1, 3),
        similarities=np.empty(0, dtype=np.float32),
        mentions=SparseRows.counted(rows, columns, (len(entities.names), len(order)), counts),
        source_starts=starts,
        sources=sources[by_edge],
        documents=StringTable.of(found.documents[number] for number in order),
    )
    pairs, first = np.unique(entities.of[alike[:, [0, 2]]].reshape(-1, 2), axis=0, return_index=True)
    apart = pairs[:, 0] != pairs[:, 1]
    return with_equivalences(graph, pairs[apart], found.similarities[~of_facts & equivalences][first[apart]])


def with_equivalences(
    graph: KGArrays, pairs: npt.NDArray[np.integer[Any]], similarities: npt.NDArray[np.float32]
) -> KGArrays:
    """Return `graph` with `pairs` (P, 2) of head and tail, each given once, as its equivalences, its last edges."""
    pairs = pairs.reshape(-1, 2)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    relation = np.full(len(pairs), len(graph.relations) - 1, dtype=np.int32)
    added = np.stack([pairs[order, 0], relation, pairs[order, 1]], axis=1).astype(np.int32)
    facts, starts = graph.edges[: graph.facts], graph.source_starts[: graph.facts + 1]
    return replace(
        graph,
        edges=np.concatenate([facts, added]),
        similarities=np.asarray(similarities, dtype=np.float32)[order],
        source_starts=np.concatenate([starts, np.full(len(pairs), starts[-1])]),
    )


def without_documents(graph: KGArrays, gone: npt.NDArray[np.bool_]) -> KGArrays:
    """Return `graph` without facts and mentions that only the documents `gone` (D,) hold; all else keeps its number."""
    edges = np.repeat(np.arange(len(graph.edges)), np.diff(graph.source_starts))
    stated = ~gone[graph.sources["document"]]
    left = np.bincount(edges[stated], minlength=len(graph.edges))
    # no document states an equivalence, nor some facts that were imported
    stays = (left > 0) | (np.diff(graph.source_starts) == 0)
    named = ~gone[graph.mentions.columns]
    rows = np.repeat(np.arange(graph.mentions.shape[0]), graph.mentions.row_sizes())[named]
    columns, counts = graph.mentions.columns[named], graph.mentions.values[named]
    return replace(
        graph,
        edges=graph.edges[stays],
        mentions=SparseRows.sorted(rows, columns, counts, graph.mentions.shape),
        source_starts=np.concatenate([[0], np.cumsum(left[stays])]),
        sources=graph.sources[stated],
    )


def part_of(graph: KGArrays, admitted: npt.NDArray[np.bool_], *, imported: bool = False) -> KGArrays:
    """Return what the `admitted` documents (D,) state, as a graph of its own: no name of any other is left.

    Names are numbered anew, in their order. Facts that no document states are left out, and of equivalences those of a
    name that is. imported: whether the equivalences were, and so are facts that no document states.
    """
    left = without_documents(graph, ~admitted)
    stated = np.diff(left.source_starts) > 0
    alike = np.arange(len(left.edges)) >= left.facts
    named = left.mentions.row_sizes() > 0
    named[left.edges[stated][:, [0, 2]].ravel()] = True
    stays = stated | (alike & named[left.edges[:, 0]] & named[left.edges[:, 2]] & (not imported))
    edges, similarities = left.edges[stays], left.similarities[stays[left.facts :]]
    used = np.zeros(len(left.relations), dtype=np.bool_)
    used[edges[:, 1]] = True
    used[-1] = True  # the equivalence relation has the last number, also where nothing is equivalent
    of_entity, of_relation, of_document = (np.cumsum(kept) - 1 for kept in (named, used, admitted))
    rows = np.repeat(np.arange(left.mentions.shape[0]), left.mentions.row_sizes())
    sources = left.sources.copy()
    sources["document"] = of_document[sources["document"]]
    shape = int(named.sum()), int(admitted.sum())
    return replace(
        left,
        entities=_those(left.entities, named),
        keys=_those(left.keys, named),
        relations=_those(left.relations, used),
        relation_keys=_those(left.relation_keys, used[:-1]),
        edges=np.stack([of_entity[edges[:, 0]], of_relation[edges[:, 1]], of_entity[edges[:, 2]]], axis=1).astype(
            np.int32
        ),
        similarities=similarities,
        mentions=SparseRows.sorted(of_entity[rows], of_document[left.mentions.columns], left.mentions.values, shape),
        source_starts=np.concatenate([[0], np.cumsum(np.diff(left.source_starts)[stays])]),
        sources=sources,
        documents=_those(left.documents, admitted),
        entity_vectors=None if left.entity_vectors is None else np.asarray(left.entity_vectors)[named],
        relation_vectors=None if left.relation_vectors is None else np.asarray(left.relation_vectors)[used],
        near=None,
        texts=None if left.texts is None else np.asarray(left.texts)[admitted],
    )


def _those(table: StringTable, kept: npt.NDArray[np.bool_]) -> StringTable:
    return StringTable.of(table[number] for number in np.flatnonzero(kept).tolist())


class _Numbering:
    """Numbers the distinct keys among `used` names, ascending, each with its most frequent name (ties: the first).

    of: (all names,) the number of a name's key, -1 if it is not used.
    """

    def __init__(self, names: Sequence[str], keys: Sequence[str], used: Ints) -> None:
        best: dict[str, tuple[int, str]] = {}
        counts: Counter[int] = Counter(used.tolist())
        for number, count in counts.items():
            candidate = (-count, names[number])
            best[keys[number]] = min(best.get(keys[number], candidate), candidate)
        self.keys = sorted(best)
        self.names = [best[key][1] for key in self.keys]
        place = {key: number for number, key in enumerate(self.keys)}
        self.of = np.array([place.get(key, -1) for key in keys], dtype=np.int64)
