"""The facts that a graph forgets with the passages of its index, and those that it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ras_agent.records import Passage
from ras_agent.tools.index import store
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.structure.build_graph import build_graph

BELL = Passage(
    "bell",
    "Alexander Graham Bell was born in Edinburgh.",
    "Alexander Graham Bell",
    "bell.txt",
)
LEITH = Passage(
    "leith",
    "The Water of Leith flows through Edinburgh.",
    "Water of Leith",
    "leith.txt",
)


@pytest.fixture
def index(tmp_path: Path) -> PassageIndex:
    index = PassageIndex.create(tmp_path / "i")
    index.add([BELL, LEITH])
    return index


def build(index: PassageIndex) -> None:
    assert index.path
    build_graph(index.path)


def documents(index: PassageIndex) -> list[str]:
    return list(KGIndex.open(index).documents)


def rows_of(table: str, index: PassageIndex) -> int:
    with index.database.reading() as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


@pytest.mark.parametrize("passage", [BELL, LEITH])
def test_a_passage_that_is_written_again_with_its_text_keeps_its_facts(
    index: PassageIndex, passage: Passage
) -> None:
    build(index)
    index.upsert([replace(passage, metadata={"year": 1847})])
    assert documents(index) == ["bell", "leith"]


def test_one_with_another_text_loses_them(index: PassageIndex) -> None:
    build(index)
    index.upsert([replace(BELL, text="Alexander Graham Bell moved to Canada.")])
    assert documents(index) == ["leith"]


def test_facts_that_came_without_their_text_stay_while_a_passage_of_that_id_is_there(
    index: PassageIndex,
) -> None:
    assert index.path
    with open_writer(index.path) as writer:
        writer.put(
            [PassageFacts("bell", (), ("Bell",)), PassageFacts("leith", (), ("Leith",))]
        )
        writer.write()
    index.delete_document("leith.txt")
    assert documents(index) == ["bell"]


def test_rows_that_were_erased_are_taken_out_once_they_are_many(
    index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(index)
    index.delete_document("leith.txt")
    assert rows_of("kg_documents", index) == 2  # one of them overwritten
    monkeypatch.setattr(store, "_COMPACT_FROM", 0)
    index.delete_document("bell.txt")
    assert [rows_of(table, index) for table in ("kg_documents", "kg_texts")] == [0, 0]
    assert documents(index) == []
