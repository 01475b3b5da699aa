"""Filters through LangChain: the query of a vector store, in its own language, and who is refused."""

import asyncio
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from ras_agent import create_ras_agent
from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

DOCUMENTS = [
    Document(
        f"text {number}",
        id=f"{team}-{number}",
        metadata={"team": team, "year": 2019 + number, "source": "a.md"},
    )
    for number in range(8)
    for team in "xy"
]


@pytest.fixture
def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    made.add_documents(DOCUMENTS)
    return made


def ids(hits: Any) -> list[str]:
    return sorted(hit.passage.id for hit in hits)


def test_a_store_in_memory_is_given_a_function(store: InMemoryVectorStore) -> None:
    found = LangChainRetriever(store.as_retriever())
    assert ids(found.retrieve("text", 100, {"team": "x"})) == [
        f"x-{number}" for number in range(8)
    ]
    assert ids(
        found.retrieve("text", 5, {"team": "y", "year": [2019, "2020"], "id": "y-*"})
    ) == ["y-0", "y-1"]
    assert ids(
        asyncio.run(found.aretrieve("text", 5, {"document_id": "a.md", "year": 2021}))
    ) == ["x-2", "y-2"]
    assert len(found.retrieve("text", 100)) == 16


def test_the_filter_that_a_retriever_was_made_with_holds_too(
    store: InMemoryVectorStore,
) -> None:
    own = store.as_retriever(
        search_kwargs={"filter": lambda document: document.metadata["team"] == "x"}
    )
    assert ids(LangChainRetriever(own).retrieve("text", 100, {"year": 2019})) == ["x-0"]
    assert LangChainRetriever(own).retrieve("text", 100, {"team": "y"}) == []
    named = store.as_retriever(search_kwargs={"filter": {"team": "x"}})
    with pytest.raises(
        FilterError,
        match=says(
            "VectorStoreRetriever",
            "cannot be given the filter (team = y)",
            "write a retriever",
        ),
    ):
        LangChainRetriever(named).retrieve("text", 5, {"team": "y"})


class Chroma(VectorStore):
    """Remembers its requests, as Chroma, PGVector and Pinecone are asked."""

    asked: ClassVar[list[Any]] = []

    def similarity_search(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[Document]:
        self.asked.append(kwargs)
        return [Document("text", id="a", metadata={"team": "x", "year": 2020})]

    @classmethod
    def from_texts(
        cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any
    ) -> "Chroma":
        return cls()


def test_stores_with_operators_are_given_them_with_the_values_as_they_came() -> None:
    store = Chroma()
    found = LangChainRetriever(store.as_retriever())
    found.retrieve("text", 3, {"team": "x"})
    found.retrieve("text", 3, {"year": [2020, 2019], "team": "x"})
    assert store.asked[-2:] == [
        {"filter": {"team": {"$in": ["x"]}}},
        {
            "filter": {
                "$and": [{"team": {"$in": ["x"]}}, {"year": {"$in": [2019, 2020]}}]
            }
        },
    ]
    with pytest.raises(FilterError, match="cannot be given the filter"):
        found.retrieve("text", 3, {"id": "a*"})


def test_a_store_of_an_unknown_kind_is_refused_not_asked_for_everything() -> None:
    class Unknown(VectorStore):
        similarity_search = Chroma.similarity_search
        from_texts = Chroma.from_texts

    found = LangChainRetriever(Unknown().as_retriever())
    with pytest.raises(
        FilterError, match=says("method retrieve(query, k, filter=None)", "store")
    ):
        found.retrieve("text", 3, {"team": "x"})


class Everything(BaseRetriever):
    """Finds all documents, whatever is asked."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return DOCUMENTS


def test_a_retriever_without_a_store_is_refused_by_the_agent_too() -> None:
    agent = create_ras_agent(retriever=Everything())
    with pytest.raises(FilterError, match="Everything cannot be given the filter"):
        agent.invoke({"question": "What?", "filter": {"team": "x"}})


def test_our_own_retrievers_take_filters_through_langchain() -> None:
    passages = [
        Passage(f"{team}", f"A river of {team}.", metadata={"team": team})
        for team in "xyz"
    ]
    wrapped = as_langchain(retriever_over(PassageIndex.in_memory(passages), "bm25"))
    assert [
        document.id for document in wrapped.invoke("river", filter={"team": ["x", "z"]})
    ] == ["x", "z"]
    found = asyncio.run(wrapped.ainvoke("river", filter=Filter.of({"team": "y"})))
    assert [document.id for document in found] == ["y"]
    assert ids(LangChainRetriever(wrapped).retrieve("river", 5, {"team": "z"})) == ["z"]
    assert [document.id for document in wrapped.invoke("river")] == ["x", "y", "z"]
