"""The graph of an index in PostgreSQL: it does all that a folder's graph does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import make
from ras_agent.tools.kg.build import add_triples, delete_documents
from ras_agent.tools.kg.edit import edits_of, merge_entities, remove_fact, undo_edit
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.stats import about
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.structure.build_graph import build_graph
from tests.messages import says

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh.",
        "Alexander Graham Bell",
        "bell.txt",
    ),
    Passage(
        "leith",
        "The Water of Leith flows through Edinburgh.",
        "Water of Leith",
        "leith.txt",
    ),
]
BORN = ("Alexander Graham Bell", "was born in", "Edinburgh")


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | Address:
    """An index of two passages, in either driver."""
    where = (
        tmp_path / "i"
        if request.param == "folder"
        else request.getfixturevalue("address")
    )
    PassageIndex.create(where).add(PASSAGES)
    return where


def facts(graph: KGIndex) -> list[str]:
    return [str(graph.triple(edge)) for edge in graph.facts]


def opened_anew(place: Path | Address, monkeypatch: pytest.MonkeyPatch) -> KGIndex:
    """Open the graph as another process does, without this one's arrays."""
    monkeypatch.setattr(make, "_held", {})
    return KGIndex.open(place)


def test_both_drivers_hold_the_same_graph(
    address: Address, tmp_path: Path, hash_embedder: Any
) -> None:
    graphs = []
    for where in (address, tmp_path / "i"):
        PassageIndex.create(where).add(PASSAGES)
        graphs.append(build_graph(where, embedder=hash_embedder).graph)
    assert graphs[0].manifest == graphs[1].manifest
    assert np.array_equal(graphs[0].entity_vectors, graphs[1].entity_vectors)  # type: ignore[arg-type]


def test_a_graph_is_built_edited_and_shrunk(
    place: Path | Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build_graph(place).read == 2
    built = opened_anew(place, monkeypatch)
    assert len(facts(built)) == 2
    remove_fact(place, BORN, by="Ada")
    assert len(facts(opened_anew(place, monkeypatch))) == 1
    merge_entities(place, "Edinburgh", "Edina")
    graph = opened_anew(place, monkeypatch)
    assert graph.entity_id("Edinburgh") == graph.entity_id("Edina") is not None
    assert about(graph, graph.entity_id("Edina") or 0)["passages"] == ["leith"]
    undo_edit(place)
    undo_edit(place)
    assert edits_of(place) == ()
    assert opened_anew(place, monkeypatch).fingerprint == built.fingerprint
    assert delete_documents(place, "leith.txt").erased == 1
    assert facts(opened_anew(place, monkeypatch)) == [
        f"(S> {BORN[0]} | P> {BORN[1]} | O> {BORN[2]})"
    ]


def test_what_is_made_again_is_neither_embedded_nor_compared(
    place: Path | Address, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build_graph(place, embedder=hash_embedder).graph
    embedded = len(hash_embedder.texts)
    monkeypatch.setattr(make, "near_lists", None)
    if isinstance(place, Path):
        for path in (place / "cache" / "graph").iterdir():
            path.unlink()
    again = opened_anew(place, monkeypatch)
    assert again.manifest == built.manifest
    assert np.array_equal(again.entity_vectors, built.entity_vectors)  # type: ignore[arg-type]
    assert len(hash_embedder.texts) == embedded


def test_triples_join_the_graph(place: Path | Address, tmp_path: Path) -> None:
    (tmp_path / "rivers.tsv").write_text("Water of Leith\tlength\t35 km\n")
    build_graph(place)
    assert add_triples(place, tmp_path / "rivers.tsv").imported == 1
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "rivers.tsv").write_text("Tay\tlength\t193 km\n")
    with pytest.raises(
        IngestError, match=says("already has a file rivers.tsv", "ras-agent kg delete")
    ):
        add_triples(place, tmp_path / "b" / "rivers.tsv")
    delete_documents(place, "rivers.tsv")
    assert KGIndex.open(place).entity_id("35 km") is None


def test_a_retriever_that_is_open_follows_the_graph(place: Path | Address) -> None:
    pytest.importorskip("scipy")
    build_graph(place)
    retriever = resolve_retriever("ppr", place)

    def found() -> Sequence[str]:
        return [
            hit.passage.id
            for hit in retriever.retrieve("Where was Alexander Graham Bell born?", 2)
        ]

    assert found()[0] == "bell"
    delete_documents(place, "bell.txt")
    assert "bell" not in found()


def test_one_process_at_a_time_writes_the_graph(place: Path | Address) -> None:
    with (
        open_writer(place),
        pytest.raises(IngestError, match="another run is writing this graph"),
    ):
        build_graph(place)
    with open_writer(place):
        # passages may be added meanwhile
        PassageIndex.open(place).add([Passage("tay", "The Tay flows through Perth.")])
    assert build_graph(place).read == 3


_KILLED = """
import os, signal, sys
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.tools.offline.roles import offline_extractor

class Killed:
    name, inner = "offline", offline_extractor()
    def extract(self, passages, subquery=""):
        if passages[0].id == "leith":
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner.extract(passages, subquery)

build_graph(sys.argv[1], extractor=Killed())
"""


def test_a_killed_build_reads_nothing_twice(place: Path | Address) -> None:
    where = (
        str(place) if isinstance(place, Path) else f"{place.url}?schema={place.schema}"
    )
    killed = subprocess.run(
        [sys.executable, "-P", "-c", _KILLED, where], capture_output=True, text=True
    )
    assert killed.returncode < 0, killed.stderr
    assert not KGIndex.exists(place)

    class Counted:
        name, read = "offline", list[str]()

        def extract(self, passages: Sequence[Passage], subquery: str = "") -> Any:
            from ras_agent.tools.offline.roles import offline_extractor

            self.read.extend(passage.id for passage in passages)
            return offline_extractor().extract(passages, subquery)

    counted = Counted()
    assert len(facts(build_graph(place, extractor=counted).graph)) == 2
    assert counted.read == ["leith"]
