"""Assembling against the same written plainly: loops over facts, dictionaries of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.arrays import SOURCE, KGArrays, StringTable
from ras_agent.tools.kg.assemble import Occurrences, assemble, occurrences_of
from ras_agent.tools.kg.disk import digest_of
from ras_agent.tools.kg.notes import note_of
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge

# several forms of one key, keys of one letter more, bytes of every length, half of a surrogate pair, no letter at all
NAMES = st.sampled_from(
    [
        "Bell",
        "bell",
        "The Bell",
        "BELL’s",
        "𝔅ell",
        "bells",
        "be",
        "Élan",
        "e\u0301lan",
        "\ud800",
        "a\0",
        "a",
        "!",
        "",
    ]
)
PLACES = st.integers(0, 3)
TRIPLES = st.builds(
    lambda subject, predicate, object_, places: Triple(
        subject,
        predicate,
        object_,
        tuple(
            Source("here", start, end, unchecked=marked, attributes=more)
            for start, end, marked, more in places
        ),
    ),
    NAMES,
    NAMES,
    NAMES,
    st.lists(
        st.tuples(
            PLACES, PLACES, st.booleans(), st.sampled_from([{}, {"said": "\ud800"}])
        ),
        max_size=3,
    ),
)
PASSAGES = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "p2", "ü", ""]),
        st.lists(TRIPLES, max_size=6),
        st.lists(NAMES, max_size=4),
    ),
    max_size=4,
    unique_by=lambda passage: passage[0],
).map(
    lambda passages: [
        PassageFacts(name, moved(triples, name), tuple(named))
        for name, triples, named in passages
    ]
)
EDGES = st.lists(
    st.builds(
        UnstatedEdge, NAMES, NAMES, NAMES, st.sampled_from([None, None, 0.5, 0.75])
    ),
    max_size=6,
)


def moved(triples: Sequence[Triple], passage_id: str) -> tuple[Triple, ...]:
    return tuple(
        Triple(
            one.subject,
            one.predicate,
            one.object,
            tuple(replace(at, passage_id=passage_id) for at in one.sources),
        )
        for one in triples
    )


def assembled_plainly(
    passages: Sequence[PassageFacts],
    edges: Sequence[UnstatedEdge],
    exact: bool,
    equivalences: bool,
) -> dict[str, Any]:
    """Return every array of the graph as a list."""
    documents = sorted(passage.passage_id for passage in passages)
    facts = [
        (
            documents.index(passage.passage_id),
            triple.subject,
            triple.predicate,
            triple.object,
            at.start,
            at.end,
            note_of(triple, at),
        )
        for passage in passages
        for triple in passage.triples
        for at in passage.places(triple)
    ]
    mentions = [
        (documents.index(passage.passage_id), name)
        for passage in passages
        for name in passage.entities
    ]
    alone = [edge for edge in edges if edge.similarity is None]
    alike = [edge for edge in edges if edge.similarity is not None and equivalences]
    key = str if exact else canonical_key
    ends = Counter(
        [name for fact in facts for name in (fact[1], fact[3])]
        + [name for _, name in mentions]
        + [name for edge in (*alone, *alike) for name in (edge.subject, edge.target)]
    )
    predicates = Counter(
        [fact[2] for fact in facts] + [edge.relation for edge in alone]
    )
    keys, relation_keys = (
        sorted({key(name) for name in ends}),
        sorted({key(name) for name in predicates}),
    )

    def commonest(of: str, names: Counter[str]) -> str:
        return min((-count, name) for name, count in names.items() if key(name) == of)[
            1
        ]

    def edge_of(subject: str, predicate: str, object_: str) -> tuple[int, int, int]:
        return (
            keys.index(key(subject)),
            relation_keys.index(key(predicate)),
            keys.index(key(object_)),
        )

    sources: dict[tuple[int, int, int], list[tuple[int, int, int, str]]] = {
        edge_of(*edge[:3]): [] for edge in alone
    }
    cells: Counter[tuple[int, int]] = Counter()
    for document, subject, predicate, object_, start, end, note in facts:
        edge = edge_of(subject, predicate, object_)
        sources.setdefault(edge, []).append((document, start, end, note))
        cells.update((entity, document) for entity in {edge[0], edge[2]})
    cells.update((keys.index(key(name)), document) for document, name in mentions)
    pairs: dict[tuple[int, int], float] = {}
    for one in alike:
        pair = keys.index(key(one.subject)), keys.index(key(one.target))
        if pair[0] != pair[1]:
            pairs.setdefault(pair, one.similarity or 0)
    stated = [sorted(sources[edge]) for edge in sorted(sources)] + [[] for _ in pairs]
    return {
        "entities": [commonest(one, ends) for one in keys],
        "keys": keys,
        "relations": [
            *(commonest(one, predicates) for one in relation_keys),
            "equivalent",
        ],
        "relation_keys": relation_keys,
        "edges": [[*edge] for edge in sorted(sources)]
        + [[head, len(relation_keys), tail] for head, tail in sorted(pairs)],
        "similarities": [pairs[pair] for pair in sorted(pairs)],
        "mentions": [
            [
                (document, cells[entity, document])
                for document in range(len(documents))
                if cells[entity, document]
            ]
            for entity in range(len(keys))
        ],
        "sources": stated,
        "documents": documents,
    }


def as_lists(graph: KGArrays) -> dict[str, Any]:
    starts: list[int] = graph.source_starts.tolist()
    sources = [(*place, graph.notes[note]) for *place, note in graph.sources.tolist()]
    rows = range(graph.mentions.shape[0])
    return {
        "entities": list(graph.entities),
        "keys": list(graph.keys),
        "relations": list(graph.relations),
        "relation_keys": list(graph.relation_keys),
        "edges": graph.edges.tolist(),
        "similarities": graph.similarities.tolist(),
        "mentions": [
            list(
                zip(
                    graph.mentions.row(row).tolist(),
                    graph.mentions.row_values(row).tolist(),
                    strict=True,
                )
            )
            for row in rows
        ],
        "sources": [sources[start:end] for start, end in pairwise(starts)],
        "documents": list(graph.documents),
    }


@given(PASSAGES, EDGES, st.booleans(), st.booleans())
def test_a_graph_is_that_of_plain_loops(
    passages: list[PassageFacts],
    edges: list[UnstatedEdge],
    exact: bool,
    equivalences: bool,
) -> None:
    graph = assemble(
        occurrences_of(passages, edges), exact=exact, equivalences=equivalences
    ).graph
    assert as_lists(graph) == assembled_plainly(passages, edges, exact, equivalences)


@given(PASSAGES, EDGES, st.randoms(use_true_random=False), st.booleans())
def test_the_numbers_of_names_and_keys_that_are_given_change_no_byte(
    passages: list[PassageFacts], edges: list[UnstatedEdge], random: Any, exact: bool
) -> None:
    occurrences = occurrences_of(passages, edges)
    order = random.sample(range(len(occurrences.names)), len(occurrences.names))
    place = np.argsort(order)
    facts, mentions, others = (
        occurrences.facts.copy(),
        occurrences.mentions.copy(),
        place[occurrences.edges],
    )
    facts[:, 1:4], mentions[:, 1] = place[facts[:, 1:4]], place[mentions[:, 1]]
    names = occurrences.names.take(np.array(order, np.int64))
    keys = StringTable.of(map(canonical_key, names))
    renumbered = Occurrences(
        names,
        occurrences.documents,
        facts,
        mentions,
        others,
        occurrences.similarities,
        keys,
        occurrences.notes,
    )
    as_read, by_number = (
        assemble(given, exact=exact, equivalences=True).graph
        for given in (occurrences, renumbered)
    )
    assert digest_of(as_read) == digest_of(by_number)


def test_arrays_have_the_types_that_they_are_stored_with() -> None:
    for passages in (
        [],
        [PassageFacts("p", (Triple("Bell", "was born in", "Edinburgh"),))],
    ):
        graph = assemble(occurrences_of(passages)).graph
        assert (graph.edges.dtype, graph.edges.shape) == (np.int32, (len(passages), 3))
        assert (
            graph.similarities.dtype,
            graph.sources.dtype,
            graph.source_starts.dtype,
        ) == (
            np.float32,
            SOURCE,
            np.int64,
        )
        assert (
            graph.mentions.starts.dtype,
            graph.mentions.columns.dtype,
            graph.mentions.values.dtype,
        ) == (
            np.int64,
            np.int32,
            np.int32,
        )
        assert (graph.keys.text.dtype, graph.keys.starts.dtype) == (np.uint8, np.int64)
