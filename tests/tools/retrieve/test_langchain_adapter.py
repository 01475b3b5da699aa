"""LangChain's retrievers as ours, ours as LangChain's."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.resolve import resolve_retriever

CORPUS = [
    Passage(
        "bell",
        "Bell patented the telephone.",
        "Alexander Graham Bell",
        "people",
        {"page": 3},
    ),
    Passage("telephone", "The telephone carries the voice.", "Telephone"),
]


class Fixed(BaseRetriever):
    """Returns its input."""

    documents: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.documents


def hits_of(*documents: Document, k: int = 5) -> list[Hit]:
    return LangChainRetriever(Fixed(documents=list(documents))).retrieve("query", k)


def test_ours_gives_documents_with_id_text_title_and_score() -> None:
    (document, _) = as_langchain(BM25Retriever.from_passages(CORPUS)).invoke(
        "Bell telephone"
    )
    assert (document.id, document.page_content) == (
        "bell",
        "Bell patented the telephone.",
    )
    assert document.metadata["title"] == "Alexander Graham Bell"
    assert document.metadata["document_id"] == "people"
    assert document.metadata["page"] == 3
    assert document.metadata["score"] > 0


def test_ours_gives_at_most_k_documents_also_asynchronously() -> None:
    retriever = as_langchain(BM25Retriever.from_passages(CORPUS), k=1)
    assert [document.id for document in retriever.invoke("telephone")] == ["telephone"]
    assert [
        document.id for document in asyncio.run(retriever.ainvoke("telephone"))
    ] == ["telephone"]


def test_there_and_back_hits_are_the_same() -> None:
    retriever = BM25Retriever.from_passages(CORPUS)
    assert LangChainRetriever(as_langchain(retriever)).retrieve(
        "Bell telephone"
    ) == retriever.retrieve("Bell telephone")


def test_documents_become_passages() -> None:
    (hit,) = hits_of(
        Document("text", id="a", metadata={"title": "T", "source": "a.txt", "page": 1})
    )
    assert hit.passage == Passage(
        "a", "text", "T", "a.txt", {"source": "a.txt", "page": 1}
    )


def test_a_document_without_id_is_named_by_its_metadata_or_its_text() -> None:
    first, second, third = hits_of(
        Document("a", metadata={"id": 7}), Document("b"), Document("b")
    )
    assert first.passage.id == "7"
    assert second.passage.id == third.passage.id != ""


def test_without_scores_the_order_counts() -> None:
    assert [
        hit.score for hit in hits_of(Document("a"), Document("b"), Document("c"))
    ] == [1, 1 / 2, 1 / 3]


@pytest.mark.parametrize(
    "scores",
    [[0.1, 0.9], [0.9, None], ["0.9", "0.1"], [float("nan"), 0.1], [float("inf"), 0.1]],
)
def test_scores_that_are_no_descending_numbers_are_not_believed(
    scores: list[Any],
) -> None:
    documents = [Document(str(score), metadata={"score": score}) for score in scores]
    assert [hit.score for hit in hits_of(*documents)] == [1, 1 / 2]


def test_a_vector_store_is_asked_for_k() -> None:
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts([f"text {number}" for number in range(20)])
    assert len(LangChainRetriever(store.as_retriever()).retrieve("text 3", 12)) == 12


# ---- a store by its place in a module


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module that has a vector store in memory."""
    (tmp_path / "my_store_of_texts.py").write_text(
        "from langchain_core.embeddings import DeterministicFakeEmbedding\n"
        "from langchain_core.vectorstores import InMemoryVectorStore\n"
        "store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))\n"
        "store.add_texts(['The Water of Leith.', 'A telephone.'], [{'team': 'x'}, {'team': 'y'}])\n"
        "def make():\n    return store.as_retriever()\n"
        "from langchain_core.tools import tool\n"
        "@tool\ndef look_up(query: str) -> str:\n    'Searches.'\n    return 'found for ' + query\n"
        "def fail():\n    raise OSError('no such server')\n"
        "number = 7\n"
    )
    (tmp_path / "json.py").write_text(
        "raise AssertionError('a file of the working directory was imported')\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("attribute", ["store", "make"])
def test_a_vector_store_is_found_by_its_name_in_a_module(
    modules: Path, attribute: str
) -> None:
    retriever: Any = resolve_retriever(f"langchain:my_store_of_texts:{attribute}")
    assert (
        retriever.retrieve("The Water of Leith.", 1)[0].passage.text
        == "The Water of Leith."
    )
    assert [
        hit.passage.text for hit in retriever.retrieve("Water", 5, filter={"team": "y"})
    ] == ["A telephone."]
    assert str(modules) not in sys.path


def test_a_tool_is_found_by_its_name_in_a_module(modules: Path) -> None:
    (hit,) = resolve_retriever("langchain:my_store_of_texts:look_up").retrieve("Leith")
    assert hit.passage.text == "found for Leith"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("langchain:my_store_of_texts", "expected 'langchain:module:attribute'"),
        ("langchain:no_such_module:store", "there is no module 'no_such_module'"),
        ("langchain:my_store_of_texts:other", "has no attribute 'other'"),
        ("langchain:my_store_of_texts:number", "is 7: name a LangChain vector store"),
        (
            "langchain:my_store_of_texts:fail",
            r"could not be imported or called \(OSError: no such server\)",
        ),
    ],
)
def test_what_names_no_vector_store_says_so(
    modules: Path, name: str, problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        resolve_retriever(name)


def test_the_command_line_needs_no_index_for_a_vector_store(modules: Path) -> None:
    asked = [
        "ask",
        "What river is there?",
        "--json",
        "--retriever",
        "langchain:my_store_of_texts:store",
    ]
    assert "The Water of Leith." in CliRunner().invoke(build_program(), asked).stdout
