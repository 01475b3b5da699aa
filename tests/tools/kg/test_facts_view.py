"""The view `facts` of an index's database: what passages state, in plain columns that any program reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer

ABOUT = {
    "said": "She worked for him.",
    "subject_type": "person",
    "valid_from": "1833",
    "valid_until": "1843-09",
}
WORKED = Triple(
    "Ada",
    "worked for",
    "Babbage",
    (
        Source("ada", 3, 21, unchecked=True, attributes={"page": 4}),
        Source("ada", 30, 48),
    ),
    ABOUT,
)
BORN = Triple("Ada", "was born in", "London", (Source("ada", 50, 60),))


@pytest.fixture(params=["a folder", "postgres"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> PassageIndex:
    place: Path | Address = tmp_path / "i"
    if request.param == "postgres":
        place = request.getfixturevalue("address")
    return PassageIndex.create(place)


def write(index: PassageIndex, *facts: PassageFacts) -> None:
    with open_writer(index) as writer:
        writer.put(facts)
        writer.write()


def rows(index: PassageIndex, columns: str, where: str = "1 = 1") -> list[Any]:
    query = f"SELECT {columns} FROM facts WHERE {where} ORDER BY start"
    with index.database.reading() as connection:
        return [tuple(row) for row in connection.execute(query).fetchall()]


def test_facts_are_rows_with_their_names_and_places(index: PassageIndex) -> None:
    write(index, PassageFacts("ada", (WORKED, BORN)))
    columns = 'subject, predicate, object, passage, start, "end", extractor'
    assert rows(index, columns, "subject = 'Ada'") == [
        ("Ada", "worked for", "Babbage", "ada", 3, 21, "given"),
        ("Ada", "worked for", "Babbage", "ada", 30, 48, "given"),
        ("Ada", "was born in", "London", "ada", 50, 60, "given"),
    ]


def test_attributes_are_json_and_dates_are_columns(index: PassageIndex) -> None:
    write(index, PassageFacts("ada", (WORKED, BORN)))
    worked, again, born = rows(index, "attributes, valid_from, valid_until, source")
    of_fact = {"said": "She worked for him.", "subject_type": "person"}
    assert json.loads(worked[0]) == json.loads(again[0]) == of_fact
    assert worked[1:3] == again[1:3] == ("1833", "1843-09")
    assert json.loads(worked[3]) == {"unchecked": True, "attributes": {"page": 4}}
    assert again[3] is None
    assert born == (None, None, None, None)


def test_a_date_that_is_no_text_stays_in_the_attributes(index: PassageIndex) -> None:
    fact = Triple("Ada", "met", "Mary", (), {"valid_from": 1833})
    write(index, PassageFacts("ada", (fact,)))
    assert rows(index, "attributes, valid_from") == [('{"valid_from": 1833}', None)]


def test_the_graph_has_what_the_rows_have(index: PassageIndex) -> None:
    write(index, PassageFacts("ada", (WORKED,)))
    with open_writer(index) as writer:
        graph = writer.write()
    triple = graph.triple(graph.facts[0])
    assert triple.attributes == ABOUT
    assert [(one.unchecked, one.attributes) for one in triple.sources] == [
        (True, {"page": 4}),
        (False, {}),
    ]


def test_a_reading_counts_once_its_graph_is_written(index: PassageIndex) -> None:
    write(index, PassageFacts("ada", (WORKED,)))
    with open_writer(index) as writer:
        writer.put([PassageFacts("ada", (BORN,)), PassageFacts("mary", (BORN,))])
        assert set(rows(index, "object")) == {("Babbage",)}
        writer.write()
    now = {("London", "ada"), ("London", "mary")}
    assert set(rows(index, "object, passage")) == now


def test_halves_of_characters_are_replaced_when_they_come(index: PassageIndex) -> None:
    fact = Triple("Ada\ud800", "met", "M\0ary", (Source("a\ud800"),))
    write(index, PassageFacts("a\ud800", (fact,)))
    assert rows(index, "subject, object, passage") == [
        ("Ada\ufffd", "M\ufffdary", "a\ufffd")
    ]


def test_facts_have_the_document_of_their_passage_and_go_with_it(
    index: PassageIndex,
) -> None:
    index.add([Passage("ada", "Ada worked for Babbage.", document_id="ada.txt")])
    write(index, PassageFacts("ada", (BORN,)), PassageFacts("elsewhere", (BORN,)))
    assert set(rows(index, "passage, document")) == {
        ("ada", "ada.txt"),
        ("elsewhere", None),
    }
    index.delete_document("ada.txt")
    assert rows(index, "passage") == []
