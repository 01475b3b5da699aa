"""What differs between two graphs is counted part by part."""

from __future__ import annotations

from pathlib import Path

from lab.graph_differences import content_differences, score_difference
from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.structure.build_graph import build_graph

BELL = Triple("Bell", "was born in", "Edinburgh", (Source("p", 0, 20),))
NONE = {"entities": 0, "relations": 0, "documents": 0, "facts": 0, "mentions": 0, "equivalences": 0}


def test_a_graph_does_not_differ_from_itself() -> None:
    graph = KGIndex.in_memory([PassageFacts("p", (BELL,), ("Bell",))])
    assert content_differences(graph, graph) == NONE


def test_each_part_counts_what_is_on_one_side_alone() -> None:
    graph = KGIndex.in_memory([PassageFacts("p", (BELL,))])
    moved = Triple("Bell", "was born in", "Edinburgh", (Source("p", 30, 40),))
    assert content_differences(graph, KGIndex.in_memory([PassageFacts("p", (moved,))])) == NONE | {"facts": 2}
    named = KGIndex.in_memory([PassageFacts("p", (BELL,), ("Bell", "Leith"))])
    # Leith is one more, and Bell is named twice instead of once
    assert content_differences(graph, named) == NONE | {"entities": 1, "mentions": 3}


def test_scores_differ_where_the_graphs_do(tmp_path: Path) -> None:
    passages = [
        Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"),
        Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    ]
    for name, some in (("both", passages), ("again", passages[::-1]), ("one", passages[:1])):
        PassageIndex.create(tmp_path / name).add(some)
        build_graph(tmp_path / name)
    query = ["Where was Alexander Graham Bell born?"]
    assert score_difference(tmp_path / "both", tmp_path / "again", query) < 1e-6
    assert score_difference(tmp_path / "both", tmp_path / "one", query) > 0.01
