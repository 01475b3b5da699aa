"""The rows of a graph: its state, the edits of persons, the files of its triples, and which names its facts use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import edit_rows, facts, graph_state, vector_rows
from ras_agent.tools.kg.graph_state import GraphSettings, GraphState
from ras_agent.tools.kg.other_nodes import OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction
from tests.messages import says


@pytest.fixture
def index(tmp_path: Path) -> PassageIndex:
    index = PassageIndex.create(tmp_path / "i")
    index.add(
        [Passage("bell", "He patented the telephone."), Passage("leith", "A river.")]
    )
    return index


@pytest.fixture
def database(index: PassageIndex) -> Database:
    return index.database


def state_of(connection: Transaction, database: Database) -> GraphState:
    state = graph_state.read_graph_state(connection, database)
    assert state is not None
    return state


def revision(connection: Transaction) -> int:
    return int(connection.execute("SELECT revision FROM index_state").fetchone()[0])


def test_a_graph_begins_unpublished_and_of_no_changes_that_were_made(
    database: Database,
) -> None:
    with database.writing() as connection:
        assert graph_state.read_graph_state(connection, database) is None
        connection.graph.begin(GraphSettings().to_json())
        state = state_of(connection, database)
        assert state == GraphState(0, state.stamp, 0, -1, 0, GraphSettings())
        connection.graph.begin(GraphSettings().to_json())
        assert state_of(connection, database) == state


def test_publishing_gives_a_stamp_and_a_revision_and_makes_all_changes(
    database: Database,
) -> None:
    settings = GraphSettings(exact=True)
    with database.writing() as connection:
        connection.graph.begin(GraphSettings().to_json())
        before, earlier = revision(connection), state_of(connection, database).stamp
        stamp = connection.graph.publish(settings.to_json())
        assert state_of(connection, database) == GraphState(1, stamp, 1, 1, 0, settings)
        assert stamp != earlier
        assert revision(connection) == before + 1


@pytest.mark.parametrize(
    ("visible", "published", "made", "revisions"),
    [
        (True, True, 2, 1),
        (True, False, -1, 1),
        (False, True, 1, 0),
        (False, False, -1, 0),
    ],
)
def test_a_change_that_readers_see_keeps_a_made_graph_made(
    database: Database, visible: bool, published: bool, made: int, revisions: int
) -> None:
    with database.writing() as connection:
        connection.graph.begin(GraphSettings().to_json())
        if published:
            connection.graph.publish(GraphSettings().to_json())
        before, earlier = revision(connection), state_of(connection, database)
        graph = connection.graph
        graph.change_visibly() if visible else graph.change()
        now = state_of(connection, database)
        assert (now.changes, now.made) == (earlier.changes + 1, made)
        assert (now.stamp != earlier.stamp) is visible
        assert revision(connection) == before + revisions


def erasures(connection: Transaction) -> int:
    (count,) = connection.execute("SELECT erasures FROM index_state").fetchone()
    return int(count)


def test_edits_that_are_replaced_are_to_be_compacted(database: Database) -> None:
    with database.writing() as connection:
        before = erasures(connection)
        edit_rows.write_edits(connection, ())
        assert erasures(connection) == before + 1


def test_the_places_of_files_that_are_gone_are_forgotten(index: PassageIndex) -> None:
    index.add([Passage("two#1", "A fact.", document_id="two")])
    with index.database.writing() as connection:
        origins = {"one": "/data/one.tsv", "two": "/data/two.tsv"}
        connection.edits.put_origins(origins)
        connection.edits.forget_origins()
        assert [connection.edits.origin_of(name) for name in ("one", "two")] == [
            "",
            "/data/two.tsv",
        ]


def test_names_are_used_by_facts_and_mentions_and_not_by_how_often_they_are_mentioned(
    index: PassageIndex,
) -> None:
    with open_writer(index) as writer:
        bell = Triple("Bell", "patented", "telephone", (Source("bell"),))
        writer.put(
            [PassageFacts("bell", (bell,)), PassageFacts("leith", (), ("Leith",))]
        )
        writer.write()
    with index.database.reading() as connection:
        names = dict(connection.execute("SELECT number, name FROM kg_names"))
        named = {names[number] for number in facts._named(connection, set(names))}
        reading = facts.read_facts(connection, index.database)
    assert named == {"Bell", "telephone", "Leith"}
    assert {names[number] for number in reading.unused_names()} <= {"equivalent"}


@pytest.mark.parametrize("numbers", [[0, 3], [-1, 2], [1]])
def test_a_fact_of_a_name_that_is_not_there_is_damage(
    database: Database, numbers: list[int]
) -> None:
    name_at = facts._Places(np.array([2, 0]), database)
    with pytest.raises(
        IndexMismatch, match=says("states facts of names that are not there")
    ):
        name_at[np.array(numbers)]
    assert name_at[np.array([0, 2])].tolist() == [1, 0]
    assert name_at[np.array([], dtype=np.int64)].tolist() == []


@pytest.mark.parametrize("cell", ["no JSON", "[1]", 7])
def test_a_cell_of_a_damaged_page_that_holds_something_else_is_damage(
    database: Database, cell: str | int
) -> None:
    with database.writing() as connection:
        facts.put_others(connection, OtherNodes(about={"bell": {"kind": "person"}}))
        assert facts.read_others(connection, database).about == {
            "bell": {"kind": "person"}
        }
        connection.execute("UPDATE kg_others SET data = ?", (cell,))
        with pytest.raises(IndexMismatch, match=says("is damaged")):
            facts.read_others(connection, database)


def test_a_row_of_another_table_among_edges_is_damage(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(
            "INSERT INTO kg_edges VALUES (0, 0, 0, 'docs/bell.txt', NULL, 0)"
        )
        with pytest.raises(IndexMismatch, match=says("is damaged", "its graph")):
            facts.read_facts(connection, database)


@pytest.mark.parametrize(
    "data",
    [
        b"nine byte",
        np.array([[7, 1]], "<i4").tobytes(),
        np.array([[-1, 1]], "<i4").tobytes(),
    ],
    ids=["no whole list", "a name that is not there", "no name"],
)
def test_a_row_of_another_table_in_the_place_of_a_list_of_near_names_is_damage(
    database: Database, data: bytes
) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO kg_names VALUES (3, 'Bell', 'bell')")
        connection.execute("INSERT INTO kg_near VALUES (3, ?)", (data,))
        with pytest.raises(IndexMismatch, match=says("is damaged")):
            vector_rows.read_near(connection, database)


@pytest.mark.parametrize("data", ["no JSON", "[]", "{}"])
def test_an_edit_that_is_no_edit_is_damage(database: Database, data: str) -> None:
    with database.writing() as connection:
        connection.execute("INSERT INTO kg_edits VALUES (3, ?)", (data,))
        with pytest.raises(IndexMismatch, match=says("is damaged", "edit 3")):
            edit_rows.read_edits(connection, database)
