"""Retrievers that are mixed over one graph share its linker and the memory of queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("torch")

from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.dense import dense
from ras_agent.tools.retrieve.document_ranker import DocumentRanker
from ras_agent.tools.retrieve.mix import MixedRetriever
from ras_agent.tools.retrieve.ranker import Ranker
from ras_agent.tools.retrieve.registered import retriever_over

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
FACTS = [
    PassageFacts("paris", (Triple("Paris", "capital of", "France"),)),
    PassageFacts("leith", (Triple("Water of Leith", "flows through", "Edinburgh"),)),
    PassageFacts("bell", (Triple("Alexander Graham Bell", "born in", "Edinburgh"),)),
]
QUESTION = "Which river flows through the birthplace of Alexander Bell?"
PARTS = {
    "graph": ("gfm", "ppr", "dense"),
    "gfm+dense": ("gfm", "dense"),
    "ppr+dense": ("ppr", "dense"),
}


@pytest.fixture
def made(
    hash_embedder: Any, gfm_folder: Callable[[int], Path]
) -> Callable[[str], Ranker]:
    """A retriever by name, over an index and a graph of its own."""

    def make(name: str) -> Ranker:
        index = PassageIndex.in_memory(PASSAGES, hash_embedder)
        options: dict[str, Any] = (
            {}
            if name == "dense"
            else {"graph": KGIndex.in_memory(FACTS, hash_embedder)}
        )
        if name in PARTS:
            options["rerank"] = False
        if name.startswith(("gfm", "graph")):
            options |= {
                "weights": gfm_folder(hash_embedder.dimension),
                "ranker": DocumentRanker(20, "score-rarity"),
            }
        return cast(Ranker, retriever_over(index, name, **options))

    return make


@pytest.mark.parametrize("name", PARTS)
def test_a_question_and_its_names_are_embedded_once(
    name: str, made: Callable[[str], Ranker], hash_embedder: Any
) -> None:
    retriever = made(name)
    read = len(hash_embedder.texts)
    assert len(retriever.rank(QUESTION, 3).rows) == 3
    assert sorted(hash_embedder.texts[read:]) == ["Alexander Bell", QUESTION]


@pytest.mark.parametrize("name", PARTS)
def test_scores_are_those_of_retrievers_that_share_nothing_bit_for_bit(
    name: str, made: Callable[[str], Ranker]
) -> None:
    parts = [made(part) for part in PARTS[name]]
    apart = MixedRetriever(parts)
    for question in (QUESTION, "capital of France", "Leith"):
        one, other = made(name).rank(question, 3), apart.rank(question, 3)
        assert (one.rows.tobytes(), one.scores.tobytes()) == (
            other.rows.tobytes(),
            other.scores.tobytes(),
        )


def test_dense_search_of_other_vectors_keeps_its_own_embedder(
    hash_embedder: Any,
) -> None:
    graph = KGIndex.in_memory(FACTS)  # has none
    index = PassageIndex.in_memory(PASSAGES, hash_embedder)
    linked = LinkedGraph.of(index, graph)
    assert (linked.embedder, linked.queries) == (None, None)
    assert dense(index, queries=linked.queries).rank(
        "capital of France", 1
    ).rows.tolist() == [0]
    assert LinkedGraph.of(index, linked) is linked
