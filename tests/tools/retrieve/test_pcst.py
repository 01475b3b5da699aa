"""PCST subgraphs as a retriever: whose passages come, why, and the result where no passage states the facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.running.protocols import Scored
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.graph_retriever import subgraph_passage
from ras_agent.tools.retrieve.pcst import PCSTRetriever, pcst
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.tools.subgraph.pcst import PCSTSettings

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
STATED = {
    "paris": [("Paris", "is the capital of", "France")],
    "leith": [("Water of Leith", "flows through", "Edinburgh")],
    "bell": [
        ("Alexander Graham Bell", "was born in", "Edinburgh"),
        ("Alexander Graham Bell", "was", "inventor"),
    ],
}
NEAR = PCSTSettings(nodes=2, edges=0, cost=0.25, named_prize=5)
QUESTION = "Which river flows through the birthplace of Alexander Graham Bell?"


def facts_of(name: str) -> PassageFacts:
    return PassageFacts(
        name, tuple(Triple(*fact, (Source(name),)) for fact in STATED[name])
    )


def retriever(
    embedder: Any, passages: list[Passage], settings: PCSTSettings
) -> PCSTRetriever:
    graph = KGIndex.in_memory(map(facts_of, STATED), embedder)
    found = retriever_over(
        PassageIndex.in_memory(passages, embedder),
        "pcst",
        graph=graph,
        settings=settings,
    )
    assert isinstance(found, PCSTRetriever)
    return found


def test_the_passages_of_the_connected_facts_come_with_these_facts_as_reasons(
    hash_embedder: Any,
) -> None:
    hits = retriever(hash_embedder, PASSAGES, NEAR).retrieve(QUESTION, 2)
    assert {hit.passage.id: hit.why for hit in hits} == {
        "bell": ("Alexander Graham Bell → was born in → Edinburgh",),
        "leith": ("Water of Leith → flows through → Edinburgh",),
    }


def test_where_there_is_room_the_subgraph_itself_comes_last(hash_embedder: Any) -> None:
    hits = retriever(hash_embedder, PASSAGES, NEAR).retrieve(QUESTION, 5)
    passage = hits[-1].passage
    assert len(hits) == 3
    assert (
        passage.text
        == "Alexander Graham Bell was born in Edinburgh. Water of Leith flows through Edinburgh."
    )
    assert passage.metadata["subgraph"] == (
        "node_id,node_attr\n0,Alexander Graham Bell\n1,Edinburgh\n2,Water of Leith\n\n"
        "src,edge_attr,dst\n0,was born in,1\n2,flows through,1\n"
    )
    # its facts need no extractor, and say which passage stated them
    facts = stated_facts(passage) or ()
    assert [(fact.subject, fact.sources[0].extractor) for fact in facts] == [
        ("Alexander Graham Bell", "stated: bell"),
        ("Water of Leith", "stated: leith"),
    ]


def test_equivalences_connect_a_subgraph_but_are_no_facts_of_its_text() -> None:
    stated = Triple("bell", "born in", "Edinburgh", (Source("bell"),))
    graph = Graph.from_triples(
        [stated, Triple("Edinburgh", "equivalent", "City of Edinburgh")]
    )
    passage = subgraph_passage(Subgraph.full(graph))
    assert passage.text == "bell born in Edinburgh."
    assert "1,equivalent,2" in passage.metadata["subgraph"]


def test_a_graph_without_text_gives_the_subgraph_alone(hash_embedder: Any) -> None:
    hits = retriever(hash_embedder, [], NEAR).retrieve(QUESTION, 5)
    assert [hit.passage.title for hit in hits] == ["Edinburgh"]


def test_a_passage_scores_as_what_its_facts_win(hash_embedder: Any) -> None:
    hits = retriever(hash_embedder, PASSAGES, NEAR).retrieve(QUESTION, 2)
    # Bell is the best node (2) and named (5), Water of Leith shares "of" with the question and is second best (1)
    assert {hit.passage.id: hit.score for hit in hits} == {"bell": 7.0, "leith": 1.0}


def test_of_a_node_that_nothing_is_worth_connecting_to_its_own_facts_count(
    hash_embedder: Any,
) -> None:
    alone = PCSTSettings(nodes=1, edges=0, named_prize=5)
    assert (
        len(retriever(hash_embedder, PASSAGES, alone).subgraph(QUESTION).subgraph.edges)
        == 0
    )
    (hit, written) = retriever(hash_embedder, PASSAGES, alone).retrieve(QUESTION, 5)
    assert (hit.passage.id, len(hit.why)) == ("bell", 2)
    assert written.passage.title == "Alexander Graham Bell"


@pytest.mark.parametrize("graph", ["ras", "ircot"])
def test_both_loops_take_it_by_name(tmp_path: Path, graph: str) -> None:
    from ras_agent import create_ircot_agent

    index = PassageIndex.create(tmp_path / "i")
    index.add(PASSAGES)
    with open_writer(tmp_path / "i", None) as writer:
        writer.put(map(facts_of, STATED))
        writer.write()
    agent = (create_ras_agent if graph == "ras" else create_ircot_agent)(
        index=str(tmp_path / "i"), retriever="pcst"
    )
    out = agent.invoke({"question": "Which river flows through Edinburgh?"})
    assert out["answer"] == "Water of Leith"
    assert "leith" in {hit["passage_id"] for hit in out["steps"][0]["hits"]}


def test_an_index_without_a_graph_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match="ras-agent kg build"):
        retriever_over(PassageIndex.create(tmp_path / "i"), "pcst")


class HallsAlone:
    """Scorer to which halls are all that a question is about."""

    name = "halls"

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        return Scored(np.array([float(text.startswith("Hall")) for text in texts]))


def test_what_is_asked_of_a_hub_is_found_though_a_tree_joins_other_facts() -> None:
    facts = [("Mira Holt", "visited", f"Hall {number}") for number in range(120)]
    facts.append(("Mira Holt", "was born in", "Lindow"))
    passages: list[Passage] = []
    stated: list[PassageFacts] = []
    for number, fact in enumerate(facts):
        name = f"p{number}"
        passages.append(Passage(name, f"{' '.join(fact)}."))
        triple = Triple(*fact, (Source(name),))
        stated.append(PassageFacts(name, (triple,)))
    index = PassageIndex.in_memory(passages)
    found = pcst(index, graph=KGIndex.in_memory(stated), scorer=HallsAlone())
    hits = found.retrieve("Where was Mira Holt born?", 5)
    assert hits[0].passage.id == "p120"
    assert {hit.passage.text.split()[2] for hit in hits[1:]} == {"visited"}
