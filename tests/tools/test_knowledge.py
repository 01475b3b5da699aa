"""An index and the graph beside it, kept in step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ras_agent import create_ras_agent
from ras_agent.errors import IngestError
from ras_agent.records import Passage
from ras_agent.tools.index.kg.index import KGIndex
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.knowledge import add_triples, build_graph, delete_documents

PASSAGES = [
    Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell", "bell.txt"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith", "leith.txt"),
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "i"
    PassageIndex.create(path).add(PASSAGES)
    return path


def test_a_build_follows_the_index(index: Path) -> None:
    assert build_graph(index).read == 2
    store = PassageIndex.open(index)
    store.delete_document("leith.txt")
    store.add([Passage("paris", "Paris is the capital of France.", "Paris", "paris.txt")])
    report = build_graph(index)
    assert (report.read, report.unchanged, report.erased) == (1, 1, 1)
    assert list(report.graph.documents) == ["bell", "paris"]


def test_a_deleted_document_is_gone_from_both(index: Path) -> None:
    build_graph(index)
    report = delete_documents(index, ["leith.txt"])
    assert report.erased == 1
    assert report.graph.entity_id("Water of Leith") is None
    assert [passage.id for passage in PassageIndex.open(index).passages] == ["bell"]
    with pytest.raises(IngestError, match=r"no document 'leith\.txt'"):
        delete_documents(index, ["leith.txt"])


def test_ready_openie_makes_an_index_and_is_not_read_again(tmp_path: Path) -> None:
    record = {"id": "bell", "title": "Bell", "text": PASSAGES[0].text, "triples": [["Bell", "invented", "telephone"]]}
    (tmp_path / "openie.jsonl").write_text(json.dumps(record) + "\n")
    report = build_graph(tmp_path / "i", openie=tmp_path / "openie.jsonl")
    assert (report.imported, report.read) == (1, 0)
    assert list(report.graph.entities) == ["Bell", "telephone"]
    assert build_graph(tmp_path / "i").graph.fingerprint == report.graph.fingerprint


def test_ready_facts_of_passages_that_are_not_there_are_told(index: Path, tmp_path: Path) -> None:
    record = {"id": "x", "title": "X", "text": "X.", "triples": [["a", "b", "c"]]}
    (tmp_path / "openie.jsonl").write_text(json.dumps(record) + "\n")
    report = build_graph(index, openie=tmp_path / "openie.jsonl")
    assert [item.reason for item in report.skipped] == ["facts of 'x', which is no passage of the index"]


def test_a_graph_that_is_there_stands_beside_the_texts(index: Path, tmp_path: Path) -> None:
    build_graph(index)
    (tmp_path / "rivers.tsv").write_text("Water of Leith\tlength\t35 km\nWater of Leith\tmouth\tFirth of Forth\n")
    report = add_triples(index, [tmp_path / "rivers.tsv"])
    assert report.imported == 1
    graph = report.graph
    assert graph.neighbours(graph.entity_id("Water of Leith") or 0).tolist() == sorted(
        graph.entity_id(name) or 0 for name in ("35 km", "Edinburgh", "Firth of Forth")
    )
    (edge,) = (edge for edge in graph.facts if graph.triple(edge).predicate == "mouth")
    assert [source.passage_id for source in graph.triple(edge).sources] == ["rivers.tsv#water of leith"]
    assert build_graph(index).graph.fingerprint == graph.fingerprint


def test_a_file_of_triples_that_is_added_again_is_replaced(index: Path, tmp_path: Path) -> None:
    file = tmp_path / "rivers.tsv"
    file.write_text("Tay\tmouth\tNorth Sea\nWater of Leith\tlength\t35 km\n")
    add_triples(index, [file])
    file.write_text("Water of Leith\tlength\t36 km\n")
    report = add_triples(index, [file])
    assert report.erased == 1
    assert list(report.graph.entities) == ["36 km", "Water of Leith"]
    assert PassageIndex.open(index).get("rivers.tsv#tay") is None


def test_a_file_without_triples_changes_nothing(index: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("only one field\n")
    with pytest.raises(IngestError, match=r"bad\.tsv holds no triple: bad\.tsv line 1"):
        add_triples(index, [tmp_path / "bad.tsv"])
    assert not KGIndex.exists(index)
    assert len(PassageIndex.open(index)) == 2


def test_a_graph_instead_of_texts_answers_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bell.nt").write_text(
        "<http://x/Alexander_Graham_Bell> <http://x/was_born_in> <http://x/Edinburgh> .\n"
        "<http://x/Paris> <http://x/is_capital_of> <http://x/France> .\n"
    )
    add_triples(tmp_path / "i", [tmp_path / "bell.nt"])
    agent = create_ras_agent(index=tmp_path / "i", retriever="ppr")
    out = agent.invoke({"question": "Where was Alexander Graham Bell born?"})
    assert out["answer"] == "Edinburgh"
    (fact,) = out["graph"].facts if hasattr(out["graph"], "facts") else out["graph"]["facts"]
    assert "bell.nt line 1" in str(fact)
