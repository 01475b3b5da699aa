"""Every store of an index: two that are built in, and DuckDB as an example of a driver that a plug-in adds.

The same passages, files and facts are written to each, changed, and read again by another opening.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config import registry
from ras_agent.config.address import Address, place_of
from ras_agent.contracts.errors import IndexExists, IngestError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.registered import retriever_over

BELL = Passage("bell", "Bell was born in Edinburgh.", "Bell", "bell.md", {"page": 1})
LEITH = Passage("leith", "The Leith flows through Edinburgh.", "Leith", "leith.md")
TAY = Passage("tay", "The Tay flows through Perth.", "Tay", "tay.md", {"page": 2})


@pytest.fixture(params=["sqlite", "postgresql", "duckdb"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | Address:
    """The place of an index that does not exist yet."""
    if request.param == "postgresql":
        address: Address = request.getfixturevalue("address")
        return address
    if request.param == "sqlite":
        return tmp_path / "my.index"
    pytest.importorskip("duckdb")
    driver = "tests.conformance.duckdb_store:DRIVER"
    monkeypatch.setitem(registry.PLUGINS["store"], "duckdb", driver)
    return place_of(f"duckdb://{tmp_path}/my.duckdb")


@pytest.fixture
def index(place: Path | Address, hash_embedder: Any) -> Iterator[PassageIndex]:
    """An index of three passages with vectors."""
    made = PassageIndex.create(place, hash_embedder)
    made.add([BELL, LEITH, TAY])
    yield made
    made.close()


def _hits(index: PassageIndex, name: str) -> list[tuple[str, float]]:
    hits = retriever_over(index, name).retrieve("Which river flows through Perth?", 3)
    return [(hit.passage.id, round(hit.score, 5)) for hit in hits]


@pytest.mark.parametrize("name", ["bm25", "dense"])
def test_hits_are_those_of_an_index_in_memory(
    index: PassageIndex, place: Path | Address, hash_embedder: Any, name: str
) -> None:
    expected = PassageIndex.in_memory([BELL, LEITH, TAY], hash_embedder)
    assert _hits(PassageIndex.open(place, hash_embedder), name) == _hits(expected, name)


def test_a_change_and_a_deletion_are_seen_by_another_opening(
    index: PassageIndex, place: Path | Address, hash_embedder: Any
) -> None:
    other = PassageIndex.open(place, hash_embedder)
    moved = Passage("leith", "The Leith ends in the Forth.", "Leith", "leith.md")
    changes = index.upsert([moved, BELL])
    assert (changes.replaced, changes.unchanged) == (1, 1)
    index.delete_document("bell.md")
    other.refresh()
    assert list(other.passages) == [moved, TAY]
    assert [one.id for one in other.within({"page": 2}).passages] == ["tay"]
    assert index.is_finished()


def test_a_write_that_fails_is_taken_back_whole(index: PassageIndex) -> None:
    def write() -> None:
        with index.database.writing() as transaction:
            transaction.passages.forget([0], 9)
            raise KeyError("mine")

    with pytest.raises(KeyError):
        write()
    assert index.database.rollbacks == 1
    index.refresh()
    assert list(index.passages) == [BELL, LEITH, TAY]


def test_a_place_is_taken_once(index: PassageIndex, place: Path | Address) -> None:
    with pytest.raises(IndexExists):
        PassageIndex.create(place)


def test_one_run_at_a_time_indexes_files(index: PassageIndex) -> None:
    with (
        index.database.alone(),
        pytest.raises(IngestError, match="another run is writing this index"),
        index.database.alone(),
    ):
        raise AssertionError


def test_files_are_indexed_once_and_forgotten(
    place: Path | Address, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.txt").write_text(f"The mill of {name} stands in Orvena.")
    assert ingest([docs], place).documents_written == 2
    assert ingest([docs], place).files_unchanged == 2
    (docs / "b.txt").write_text("The mill of b is gone.")
    assert ingest([docs], place).documents_written == 1
    delete_documents(place, "docs/a.txt")
    assert [one.text for one in PassageIndex.open(place).passages] == [
        "The mill of b is gone."
    ]


def test_a_graph_is_written_and_forgets_what_is_deleted(
    index: PassageIndex, place: Path | Address, hash_embedder: Any
) -> None:
    born = Triple("Bell", "was born in", "Edinburgh", (Source("bell"),))
    flows = Triple("Leith", "flows through", "Edinburgh", (Source("leith"),))
    texts = {"bell": BELL, "leith": LEITH}
    with open_writer(index, hash_embedder) as writer:
        facts = [PassageFacts("bell", (born,)), PassageFacts("leith", (flows,))]
        writer.put(facts, texts)
        assert sorted(writer.write().entities) == ["Bell", "Edinburgh", "Leith"]
    index.delete_document("bell.md")
    graph = KGIndex.open(PassageIndex.open(place, hash_embedder), hash_embedder)
    assert sorted(graph.entities) == ["Edinburgh", "Leith"]
    with index.database.reading() as transaction:
        names = transaction.names.numbers_of(["Bell", "Leith", "was born in"])
        assert list(names) == ["Leith"]
        vectors = transaction.vectors.near()
    assert len(vectors) == 2
