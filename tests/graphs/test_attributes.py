"""The attributes that an extractor, a retriever or a record adds to a fact's words is found wherever the fact goes."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent import Trace
from ras_agent.contracts.events import Triples, event_from_dict
from ras_agent.contracts.records import Extraction, Hit, Passage, Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.export import to_graphml
from ras_agent.tools.index.stated_facts import read_facts, stated_facts
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.formats.export import write_jsonl, write_node_link
from ras_agent.tools.kg.formats.gfm_csv import read_gfm_files, write_gfm_csv
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.structure.cache import CachedFacts, TripleCache

BELL = Passage(
    "bell", "Bell works for Acme since 1990.", "Bell", metadata={"shelf": "A7"}
)
OF_FACT = {"subject_type": "person", "valid_from": "1990-01-01", "weights": [1, 2.5]}
OF_PLACE = {"said": "works for Acme", "page_of": {"scan": 4}}
PLACE = Source("bell", 0, 31, extractor="planting", unchecked=True, attributes=OF_PLACE)
FACT = Triple("Bell", "works for", "Acme", (PLACE,), OF_FACT)


@dataclass(frozen=True)
class DatedTriple(Triple):
    """A fact of somebody's own class."""

    valid_until: str = ""


DATED = DatedTriple("Acme", "employs", "Bell", (PLACE,), OF_FACT, "1999-12-31")


class Planting:
    """An extractor that says more than the words of its facts."""

    name = "planting"
    fingerprint = "planting 1"

    def extract(self, passages: Any, subquery: str = "") -> Extraction:
        return Extraction((FACT, DATED))


class Shelf:
    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [Hit(BELL, 1.0)]


def planted(fact: dict[str, Any], *, dated: bool = False) -> None:
    """Assert that the JSON of a fact has all that was planted."""
    until = {"valid_until": "1999-12-31"} if dated else {}
    assert fact["attributes"] == OF_FACT | until
    (source,) = fact["sources"]
    assert source["attributes"] == OF_PLACE
    assert source["unchecked"] is True


def test_a_run_keeps_them_in_its_state_its_trace_and_their_files(
    ras: Any, fakes: Any
) -> None:
    agent = ras(
        planner=fakes.ScriptedPlanner("Who employs Bell?", fakes.SUFFICIENT),
        retriever=Shelf(),
        extractor=Planting(),
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "1"}}
    out = agent.invoke({"question": "Who employs Bell?"}, config)
    kept = agent.get_state(config).values
    trace = Trace.from_json(Trace.from_state(out).to_json())
    again = QuestionGraph.from_dict(json.loads(json.dumps(trace.graph.to_dict())))
    for graph in (out["graph"], kept["graph"], again.to_dict()):
        employs, works_for = graph["facts"]
        planted(employs, dated=True)
        planted(works_for)
    event = Triples(1, again.facts)
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert trace.passages["bell"].metadata == {"shelf": "A7"}
    drawn = to_graphml(again)
    assert "valid_until" in drawn
    assert "page_of" in drawn


def test_readings_that_differ_in_attributes_are_both_kept_and_show_what_they_share() -> (
    None
):
    other_place = Source("dale", 0, 4)
    other = replace(
        FACT,
        sources=(other_place,),
        attributes={"subject_type": "person", "valid_from": "1991", "rank": 1},
    )
    graphs = [
        QuestionGraph().merge([FACT]).merge([other]),
        QuestionGraph().merge([other, FACT]),
    ]
    hidden = replace(graphs[0], hidden_facts=frozenset({FACT.id}))
    for graph in (*graphs, hidden):
        read = QuestionGraph.from_dict(json.loads(json.dumps(graph.to_dict())))
        assert read == graph
        assert {str(one.attributes) for one in read.readings} == {
            str(one.attributes) for one in (FACT, other)
        }
    (fact,) = graphs[0].facts
    assert fact == graphs[1].facts[0]
    assert fact.attributes == {
        "subject_type": "person",
        "weights": [1, 2.5],
        "rank": 1,
    }


@pytest.fixture
def stored(tmp_path: Path) -> KGIndex:
    """The graph of two passages that date one fact differently, as it is loaded from its rows."""
    dale = replace(BELL, id="dale")
    at_dale = Source("dale", 0, 4, extractor="planting")
    rival = replace(FACT, sources=(at_dale,), attributes={"valid_from": "1991"})
    with open_writer(tmp_path / "index") as writer:
        writer.read([BELL], read_each(Planting()), "planting")
        writer.put([PassageFacts("dale", (rival,))], {"dale": dale})
        writer.write()
    shutil.rmtree(tmp_path / "index" / "cache")
    return KGIndex.open(tmp_path / "index")


def test_a_stored_graph_keeps_them_and_what_places_say_differently(
    stored: KGIndex, tmp_path: Path
) -> None:
    facts = {fact.predicate: fact for fact in map(stored.triple, stored.facts)}
    planted(facts["employs"].to_dict(), dated=True)
    works = facts["works for"]
    assert works.attributes == {"subject_type": "person", "weights": [1, 2.5]}
    assert {at.passage_id: at.attributes for at in works.sources} == {
        "bell": {"valid_from": "1990-01-01", **OF_PLACE},
        "dale": {"valid_from": "1991"},
    }
    assert [at.unchecked for at in works.sources] == [True, False]

    write_jsonl(stored, tmp_path / "g.jsonl")
    write_node_link(stored, tmp_path / "g.json")
    for name in ("g.jsonl", "g.json"):
        written = (tmp_path / name).read_text()
        for word in ("valid_until", "page_of", "unchecked", "1991"):
            assert word in written, (name, word)

    write_gfm_csv(stored, tmp_path / "gfm")
    (tmp_path / "gfm" / "documents.json").write_text(json.dumps({"bell": BELL.text}))
    (read,) = [
        one
        for one in read_gfm_files(tmp_path / "gfm").facts
        if one.passage_id == "bell"
    ]
    assert {fact.predicate: fact.attributes for fact in read.triples} == {
        fact.predicate: fact.attributes for fact in facts.values()
    }


def test_a_part_of_a_graph_names_nothing_that_only_others_say(stored: KGIndex) -> None:
    admitted = [name == "dale" for name in stored.documents]
    part = stored.within(np.array(admitted))
    assert list(part.arrays.notes) == [
        "",
        '{"fact": {"valid_from": "1991"}}',
    ]


def test_the_cache_of_facts_keeps_them(tmp_path: Path) -> None:
    cache = TripleCache(tmp_path / "facts.sqlite")
    cache.put("key", "planting", "Bell", CachedFacts((FACT,)))
    found = cache.get("key")
    assert found is not None
    (fact,) = found.of(replace(BELL, id="twin"))
    assert fact == replace(FACT, sources=(replace(PLACE, passage_id="twin"),))


def test_a_record_states_attributes_of_its_facts() -> None:
    given = [
        {"head": "Bell", "relation": "knew", "tail": "Ada", "valid_from": "1990"},
        ["Bell", "knew", "Watson", "line 2", {"rank": 1}],
        ["Bell", "knew", "Mabel"],
        {"s": "Bell", "p": "knew", "o": "Gray", "attributes": 5, "rank": float("nan")},
    ]
    listed, problems = read_facts(given, "line 1")
    assert problems == []
    again, _ = read_facts(json.loads(json.dumps(listed)), "line 1")
    assert str(again) == str(listed)
    facts = stated_facts(replace(BELL, metadata={"facts": listed}))
    assert facts is not None
    assert [fact.attributes for fact in facts] == [
        {"valid_from": "1990"},
        {"rank": 1},
        {},
        {"rank": "NaN"},
    ]


@pytest.mark.parametrize(
    "attributes", [{"day": object()}, {"share": float("nan")}, {5: "a"}]
)
def test_attributes_that_are_no_json_are_refused_where_they_are_made(
    attributes: Any,
) -> None:
    with pytest.raises(ValueError, match="attributes must be"):
        Triple("Bell", "works for", "Acme", attributes=attributes)
