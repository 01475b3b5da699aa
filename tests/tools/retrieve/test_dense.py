"""Dense retrieval."""

import sys
from typing import Any

import pytest

from ras_agent.contracts.errors import MissingExtra
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

CORPUS = [
    Passage("bell", "patented the telephone", "Alexander Graham Bell"),
    Passage("sea", "deep blue sea"),
]


def test_scores_are_cosines_of_title_and_text(hash_embedder: Any) -> None:
    index = PassageIndex.in_memory(CORPUS, hash_embedder)
    best, other = retriever_over(index, "dense").retrieve(
        "Alexander Graham Bell. patented the telephone", 2
    )
    assert (best.passage.id, best.score) == ("bell", pytest.approx(1.0))
    assert other.passage.id == "sea"
    assert hash_embedder.texts[0] == "Alexander Graham Bell. patented the telephone"


def test_a_query_is_embedded_once_and_remembered(hash_embedder: Any) -> None:
    retriever = retriever_over(
        PassageIndex.in_memory(CORPUS, hash_embedder), "dense", cache_size=2
    )
    hash_embedder.texts.clear()
    for query in ("sea", "sea", "bell", "sea", "telephone", "bell"):
        retriever.retrieve(query)
    # the oldest of three was forgotten
    assert hash_embedder.texts == [
        "sea",
        "bell",
        "telephone",
        "bell",
    ]


def test_an_embedder_with_a_method_for_queries_is_asked_by_it(
    hash_embedder: Any,
) -> None:
    asked = []

    def embed_query(text: str) -> Any:
        asked.append(text)
        return hash_embedder.embed([text])[0]

    hash_embedder.embed_query = embed_query
    retriever_over(PassageIndex.in_memory(CORPUS, hash_embedder), "dense").retrieve(
        "blue sea"
    )
    assert asked == ["blue sea"]


def test_without_faiss_nothing_is_embedded_and_the_install_line_is_named(
    hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ras-agent\[faiss\]'"):
        PassageIndex.in_memory(CORPUS, hash_embedder)
    assert hash_embedder.texts == []
