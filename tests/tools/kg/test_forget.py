"""The facts that a graph forgets with the passages of its index, and those that it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ras_agent.contracts.records import Passage
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


def names_of(index: PassageIndex) -> list[str]:
    query = "SELECT name FROM kg_names WHERE name <> 'equivalent' ORDER BY name"
    with index.database.reading() as connection:
        return [name for (name,) in connection.execute(query)]


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


@pytest.mark.parametrize("table", ["kg_passages", "kg_facts", "kg_mentions"])
def test_all_that_was_read_of_a_deleted_passage_is_deleted(
    index: PassageIndex, table: str
) -> None:
    build(index)
    before = rows_of(table, index)
    index.delete_document("leith.txt")
    assert 0 < rows_of(table, index) < before
    index.delete_document("bell.txt")
    assert rows_of(table, index) == 0
    assert names_of(index) == []


def test_a_name_that_another_passage_has_too_stays(index: PassageIndex) -> None:
    build(index)
    index.delete_document("leith.txt")
    assert "Edinburgh" in names_of(index)
    assert "Water of Leith" not in names_of(index)


def test_the_number_of_a_deleted_name_is_not_given_again(index: PassageIndex) -> None:
    build(index)
    with index.database.reading() as connection:
        (last,) = connection.execute("SELECT MAX(number) FROM kg_names").fetchone()
    index.delete_documents(["bell.txt", "leith.txt"])
    with open_writer(index) as writer:
        writer.put([PassageFacts("imported", (), ("Paris",))])
    with index.database.reading() as connection:
        query = "SELECT number FROM kg_names WHERE name = 'Paris'"
        (number,) = connection.execute(query).fetchone()
    assert number > last
