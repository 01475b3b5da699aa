"""A knowledge graph: the content of its arrays, whatever the order of its facts."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import (
    IndexMismatch,
    IndexNotFound,
    RasError,
    UnknownName,
)
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import make
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.disk import SavedGraph, digest_of, write_graph
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.stats import counts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.store.array_file import read_arrays, write_arrays
from tests.messages import says
from tests.tools.kg.test_build import Letters


def fact(
    passage: str,
    subject: str,
    predicate: str,
    object_: str,
    start: int = 0,
    end: int = 0,
) -> Triple:
    return Triple(subject, predicate, object_, (Source(passage, start, end),))


BELL = PassageFacts(
    "bell",
    (
        fact("bell", "Alexander Graham Bell", "was born in", "Edinburgh", 0, 20),
        fact("bell", "Alexander Graham Bell", "patented", "the telephone", 21, 40),
    ),
)
LEITH = PassageFacts(
    "leith",
    (fact("leith", "Water of Leith", "flows through", "Edinburgh", 3, 9),),
    ("Scotland",),
)
AGAIN = PassageFacts(
    "again", (fact("again", "alexander graham bell", "was born in", "Edinburgh", 5, 6),)
)


@pytest.fixture
def graph() -> KGIndex:
    return KGIndex.in_memory([BELL, LEITH, AGAIN], extractor="offline")


def test_entities_are_the_commonest_surface_forms_in_the_order_of_their_keys(
    graph: KGIndex,
) -> None:
    assert list(graph.entities) == [
        "Alexander Graham Bell",
        "Edinburgh",
        "Scotland",
        "the telephone",
        "Water of Leith",
    ]
    assert list(graph.keys) == [
        "alexander graham bell",
        "edinburgh",
        "scotland",
        "telephone",
        "water of leith",
    ]


def test_the_last_relation_is_equivalence(graph: KGIndex) -> None:
    assert list(graph.relations) == [
        "flows through",
        "patented",
        "was born in",
        "equivalent",
    ]
    assert graph.equivalence_relation == 3
    assert graph.relation_id("equivalent") is None


def test_a_fact_stated_twice_is_one_edge_with_two_sources(graph: KGIndex) -> None:
    assert graph.edges.tolist() == [[0, 1, 3], [0, 2, 1], [4, 0, 1]]
    assert graph.edges.dtype == np.int32
    assert graph.triple(1) == Triple(
        "Alexander Graham Bell",
        "was born in",
        "Edinburgh",
        (
            Source("again", 5, 6, extractor="offline"),
            Source("bell", 0, 20, extractor="offline"),
        ),
    )


def test_mentions_count_where_an_entity_is_named(graph: KGIndex) -> None:
    assert list(graph.documents) == ["again", "bell", "leith"]
    assert graph.mentions.to_scipy().toarray().tolist() == [
        [1, 2, 0],
        [1, 1, 1],
        [0, 0, 1],
        [0, 1, 0],
        [0, 0, 1],
    ]
    assert graph.document_frequency.tolist() == [2, 3, 1, 1, 1]
    assert graph.documents_to_entities.row(2).tolist() == [1, 2, 4]


def test_names_are_looked_up_by_their_canonical_key(graph: KGIndex) -> None:
    assert graph.entity_id("The  TELEPHONE") == 3
    assert graph.entity_id("Bell") is None
    assert (graph.document_id("leith"), graph.document_id("paris")) == (2, None)


@pytest.mark.parametrize("number", [None, -1, 5, "0", 0.0])
def test_a_number_of_no_entity_is_reported(number: Any, graph: KGIndex) -> None:
    for look_up in (graph.edges_of, graph.neighbours):
        with pytest.raises(
            UnknownName,
            match=says("unknown entity", "numbers from 0 to 4", "entity_id()"),
        ):
            look_up(number)


@pytest.mark.parametrize("number", [None, -1, 3])
def test_a_number_of_no_edge_is_reported(number: Any, graph: KGIndex) -> None:
    with pytest.raises(
        UnknownName, match=says("unknown edge", "numbers from 0 to 2", "edges_of()")
    ):
        graph.triple(number)
    with pytest.raises(UnknownName, match="known: none"):
        KGIndex.in_memory([]).triple(number)


@pytest.mark.parametrize("kind", ["entity", "relation", "document"])
def test_what_is_no_name_is_reported(kind: str, graph: KGIndex) -> None:
    with pytest.raises(
        UnknownName, match=f"unknown {kind} 7; known: names, which are texts"
    ):
        getattr(graph, f"{kind}_id")(7)


def test_neighbours_are_one_edge_away_in_either_direction(graph: KGIndex) -> None:
    assert graph.neighbours(1).tolist() == [0, 4]
    assert graph.edges_of(0).tolist() == [0, 1]
    assert graph.neighbours(2).tolist() == []


def test_the_order_of_passages_does_not_matter(graph: KGIndex) -> None:
    other = KGIndex.in_memory([AGAIN, LEITH, BELL], extractor="offline")
    assert other.fingerprint == graph.fingerprint


def test_a_passage_that_states_nothing_is_a_document() -> None:
    graph = KGIndex.in_memory([PassageFacts("empty")])
    assert (list(graph.documents), graph.edges.shape, graph.mentions.shape) == (
        ["empty"],
        (0, 3),
        (0, 1),
    )


def test_equivalences_are_the_last_edges_each_pair_once(hash_embedder: Any) -> None:
    names = ["Graham Bell", "Bell Graham", "Leith"]
    facts = [PassageFacts("p", tuple(fact("p", name, "is", "x") for name in names))]
    graph = KGIndex.in_memory(facts, hash_embedder, equivalence=Equivalence(0.9))
    assert [graph.triple(edge).subject for edge in graph.equivalences] == [
        "Bell Graham"
    ]
    assert [graph.triple(edge).object for edge in graph.equivalences] == ["Graham Bell"]
    assert graph.edges[graph.equivalences[0], 1] == graph.equivalence_relation
    assert graph.similarities.tolist() == pytest.approx([1.0])
    assert graph.entity_vectors is not None
    assert graph.entity_vectors.shape == (4, 64)
    assert graph.relation_vectors is not None
    assert graph.relation_vectors.shape == (2, 64)


def test_what_is_written_is_opened_memory_mapped(
    graph: KGIndex, tmp_path: Path
) -> None:
    file = written(tmp_path / "graph", graph)
    opened = KGIndex.of_file(file, "write it anew")
    assert opened.fingerprint == graph.fingerprint
    assert digest_of(opened.arrays) == digest_of(graph.arrays)
    assert not opened.edges.flags.writeable
    assert opened.database is None


def test_an_index_without_a_graph_names_the_remedy(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "i")
    with pytest.raises(
        IndexNotFound, match=says("no knowledge graph", "ras-agent kg build")
    ):
        KGIndex.open(tmp_path / "i")
    assert not KGIndex.exists(tmp_path / "i")


def test_a_graph_of_no_index_names_the_index_first(tmp_path: Path) -> None:
    with pytest.raises(
        IndexNotFound,
        match=says("no index at", "`ras-agent index`, then `ras-agent kg build`"),
    ):
        KGIndex.open(tmp_path / "none")
    assert not KGIndex.exists(tmp_path / "none")


def test_an_index_in_memory_has_a_graph_too(hash_embedder: Any) -> None:
    index = PassageIndex.in_memory(
        [Passage("bell", "Bell patented the telephone."), Passage("leith", "Leith.")]
    )
    assert not KGIndex.exists(index)
    with open_writer(index, hash_embedder) as writer:
        writer.put([BELL, LEITH])
        written = writer.write()
    assert KGIndex.open(index).fingerprint == written.fingerprint
    index.delete_documents(["none"])
    index.upsert([Passage("leith", "Another text.")])
    # nobody knows of which text the facts were
    assert list(KGIndex.open(index).documents) == [
        "bell",
        "leith",
    ]


def test_a_part_has_the_equivalences_of_its_own_names_alone() -> None:
    facts = [
        PassageFacts(at, (Triple(name, "makes", f"{name}s", (Source(at),)),))
        for at, name in (("a", "Ring"), ("b", "Wing"))
    ]
    graph, alone = (
        KGIndex.in_memory(facts, Letters()),
        KGIndex.in_memory(facts[:1], Letters()),
    )
    part = graph.within(np.array([True, False]))
    assert (list(part.entities), part.manifest.equivalences) == (["Ring", "Rings"], 1)
    assert digest_of(part.arrays) == digest_of(alone.arrays)


def test_a_graph_in_memory_is_made_by_who_writes_and_not_by_who_opens_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = PassageIndex.in_memory(
        [Passage("bell", "Bell.", document_id="b"), Passage("leith", "Leith.")]
    )
    with open_writer(index) as writer:
        writer.put([BELL, LEITH])
        writer.write()
    index.delete_document("b")
    monkeypatch.delattr(make, "make_graph")
    assert list(KGIndex.open(index).documents) == ["leith"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("edges", lambda array: array * 99),
        ("edges", lambda array: array - [0, 1, 0]),
        ("sources", lambda array: array[:2]),
        ("sources", lambda array: array + 9),
        ("source_starts", lambda array: array[::-1]),
        ("mention_columns", lambda array: array + 100),
        ("mention_values", lambda array: array[1:]),
        ("entities_starts", lambda array: array + 3),
        ("documents_text", lambda array: array[:-1]),
        ("relation_keys_starts", lambda array: array[:0]),
        ("entity_vectors", lambda array: array[1:]),
    ],
)
def test_a_damaged_graph_says_so(
    name: str, change: Callable[[Any], Any], tmp_path: Path, hash_embedder: Any
) -> None:
    alike = PassageFacts("alike", (fact("alike", "Graham Bell", "is", "Bell Graham"),))
    whole = KGIndex.in_memory(
        [BELL, LEITH, AGAIN, alike], hash_embedder, equivalence=Equivalence(0.9)
    )
    file = written(tmp_path / "graph", whole)
    arrays, about = read_arrays(file)
    changed = file.with_name("changed")
    write_arrays(changed, {**arrays, name: change(arrays[name])}, about)
    with pytest.raises(
        IndexMismatch, match=says(str(changed), "damaged", "write it anew")
    ):
        KGIndex.of_file(changed, "write it anew")


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\2\0\0\0\0\0\0\0{}"])
def test_what_is_no_file_of_a_graph_is_reported(
    content: bytes, graph: KGIndex, tmp_path: Path
) -> None:
    file = written(tmp_path / "graph", graph)
    file.write_bytes(content)
    with pytest.raises(
        IndexMismatch, match=says(str(file), "damaged", "write it anew")
    ):
        KGIndex.of_file(file, "write it anew")


def test_a_vector_that_is_gone_and_that_nobody_can_make_is_named(
    tmp_path: Path, hash_embedder: Any
) -> None:
    with open_writer(tmp_path / "g", hash_embedder) as writer:
        writer.put([BELL])
        writer.write()
    shutil.rmtree(tmp_path / "g" / "cache" / "graph")
    with closing(sqlite3.connect(tmp_path / "g" / "index.sqlite")) as file, file:
        file.execute("DELETE FROM kg_texts")
    with pytest.raises(RasError, match=says(hash_embedder.name)):
        KGIndex.open(tmp_path / "g")
    assert KGIndex.open(tmp_path / "g", hash_embedder).entity_vectors is not None


def test_another_embedder_is_refused(tmp_path: Path, hash_embedder: Any) -> None:
    with open_writer(tmp_path / "i") as writer:
        writer.put([BELL])
        writer.write()
    with pytest.raises(IndexMismatch, match="no embedder"):
        KGIndex.open(tmp_path / "i", hash_embedder)


@given(st.lists(st.text(st.characters())))
def test_a_string_table_holds_any_strings(strings: list[str]) -> None:
    table = StringTable.of(strings)
    assert list(table) == strings
    ordered = StringTable.of(sorted(set(strings)))
    assert [ordered.find(string) for string in sorted(set(strings))] == list(
        range(len(set(strings)))
    )
    assert ordered.find("not among them, surely") is None


@given(st.lists(st.text(), min_size=1), st.data())
def test_strings_are_taken_by_their_numbers_and_joined(
    strings: list[str], data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(strings) - 1)))
    table = StringTable.of(strings)
    assert list(table.take(np.array(numbers, np.int64))) == [
        strings[number] for number in numbers
    ]
    assert list(table.joined(StringTable.of(["é", ""]))) == [*strings, "é", ""]


def test_many_strings_are_taken() -> None:
    table = StringTable.of(map(str, range(70_000)))
    assert list(table.take(np.arange(69_999, -1, -1))) == [
        str(number) for number in range(69_999, -1, -1)
    ]


def written(path: Path, graph: KGIndex) -> Path:
    write_graph(path, SavedGraph(graph.arrays, graph.manifest))
    return path


def test_without_a_document_others_keep_what_they_state_and_every_number(
    graph: KGIndex,
) -> None:
    less = graph.without(np.array([False, True, False]))
    assert (list(less.entities), list(less.documents)) == (
        list(graph.entities),
        ["again", "bell", "leith"],
    )
    assert less.edges.tolist() == [[0, 2, 1], [4, 0, 1]]
    assert less.triple(0).sources == (Source("again", 5, 6, extractor="offline"),)
    assert less.mentions.to_scipy().toarray().tolist() == [
        [1, 0, 0],
        [1, 0, 1],
        [0, 0, 1],
        [0, 0, 0],
        [0, 0, 1],
    ]
    assert (less.manifest.facts, less.fingerprint == graph.fingerprint) == (2, False)
    assert (
        graph.without(np.array([False, False, False])).fingerprint == graph.fingerprint
    )


def test_the_best_connected_are_no_dates_and_no_figures() -> None:
    shared = [
        fact("lamp", "Lamp", "costs", "£5"),
        fact("lamp", "Lantern", "costs", "£5"),
        fact("lamp", "Lamp", "is sold by", "Ada Crane"),
        fact("lamp", "Wick", "costs", "£5"),
    ]
    graph = KGIndex.in_memory(
        [PassageFacts("lamp", tuple(shared))], extractor="offline"
    )
    assert counts(graph, best=2)["best connected"] == ["Lamp (2)", "Ada Crane (1)"]
    assert len(counts(graph)["best connected"]) == 4
