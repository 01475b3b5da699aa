"""Paths as a retriever and as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_answerer, offline_extractor
from ras_agent.tools.retrieve.paths import PathRetriever
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.roles import RoleOptions

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
QUESTION = "Which river flows through the birthplace of Alexander Graham Bell?"


def built(folder: Path, embedder: Any = None) -> PassageIndex:
    index = PassageIndex.create(folder, embedder)
    index.add(PASSAGES)
    with open_writer(folder, embedder) as writer:
        writer.read(
            index.passages, read_each(offline_extractor()), "offline", whole=True
        )
        writer.write()
    return index


@pytest.fixture(params=[None, "hash"])
def retriever(
    request: pytest.FixtureRequest, tmp_path: Path, hash_embedder: Any
) -> PathRetriever:
    built(tmp_path / "i", hash_embedder if request.param else None)
    index = PassageIndex.open(tmp_path / "i", hash_embedder if request.param else None)
    graph = KGIndex.open(tmp_path / "i", hash_embedder if request.param else None)
    found = retriever_over(index, "paths", graph=graph)
    assert isinstance(found, PathRetriever)
    return found


def test_a_path_leads_to_the_passage_of_the_second_hop(
    retriever: PathRetriever,
) -> None:
    hits = retriever.retrieve(QUESTION, 5)
    assert {hit.passage.id for hit in hits} == {"bell", "leith"}
    assert hits[0].passage.text in {passage.text for passage in PASSAGES}


def test_paths_are_evidence_with_their_passages(retriever: PathRetriever) -> None:
    found = retriever.paths(QUESTION)
    graph = QuestionGraph().merge(found.triples)
    assert {source.passage_id for fact in graph.facts for source in fact.sources} == {
        "bell",
        "leith",
    }
    passages = [hit.passage for hit in retriever.retrieve(QUESTION, 5)]
    answer = offline_answerer(options=RoleOptions(least_confidence=0.0)).answer(
        QUESTION, graph, passages, ()
    )
    assert answer.text == "Water of Leith"
    assert {citation.passage_id for citation in answer.citations} <= {"bell", "leith"}


def test_the_agent_takes_it_by_name(tmp_path: Path) -> None:
    built(tmp_path / "i")
    agent = create_ras_agent(index=str(tmp_path / "i"), retriever="paths")
    out = agent.invoke({"question": "Which river flows through Edinburgh?"})
    assert out["answer"] == "Water of Leith"
    assert out["steps"][0]["hits"][0]["passage_id"] == "leith"


def test_a_composition_and_its_models_can_be_chosen(tmp_path: Path) -> None:
    found = retriever_over(
        built(tmp_path / "i"), "paths", composition="ego+bm25>complete>bm25"
    )
    assert isinstance(found, PathRetriever)
    assert str(found.finder.composition) == "ego+bm25>complete>bm25"
    assert found.retrieve(QUESTION, 1)[0].passage.id in {"bell", "leith"}


def test_a_graph_without_text_gives_its_paths_written_out(hash_embedder: Any) -> None:
    facts = (
        Triple("frederica", "spouse", "ernest_augustus", (Source("kb"),)),
        Triple("ernest_augustus", "nationality", "united_kingdom", (Source("kb"),)),
    )
    graph = KGIndex.in_memory([PassageFacts("kb", facts)], hash_embedder)
    retriever = retriever_over(
        PassageIndex.in_memory([], hash_embedder), "paths", graph=graph
    )
    hits = retriever.retrieve("what nationality has frederica 's spouse ?", 3)
    texts = {hit.passage.text: hit.passage for hit in hits}
    both = texts[
        "frederica spouse ernest augustus. ernest augustus nationality united kingdom."
    ]
    assert (
        both.metadata["path"]
        == "frederica → spouse → ernest_augustus → nationality → united_kingdom"
    )
    assert stated_facts(both) == (
        Triple(
            "frederica",
            "spouse",
            "ernest augustus",
            (Source(both.id, 0, 33, extractor="stated: kb"),),
        ),
        Triple(
            "ernest augustus",
            "nationality",
            "united kingdom",
            (Source(both.id, 34, 77, extractor="stated: kb"),),
        ),
    )
    assert (
        both.id
        == retriever.retrieve("what nationality has frederica 's spouse ?", 3)[
            hits.index(next(hit for hit in hits if hit.passage is both))
        ].passage.id
    )


def test_an_index_without_a_graph_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match="ras-agent kg build"):
        retriever_over(PassageIndex.create(tmp_path / "i"), "paths")
