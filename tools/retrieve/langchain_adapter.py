"""Adapters between LangChain's retrievers and ours, both ways."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

from ras_agent.calling import acall
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.retrieve.ranking import check_query

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


def is_langchain_retriever(thing: object) -> bool:
    """Tell whether `thing` is a LangChain BaseRetriever; nothing is one while LangChain is not loaded."""
    module = sys.modules.get("langchain_core.retrievers")
    return module is not None and isinstance(thing, module.BaseRetriever)


class LangChainRetriever:
    """Wraps any LangChain BaseRetriever as a Retriever.

    A document's `id`, else `metadata["id"]`, else a hash of its text is the passage's id; `metadata` also gives title
    and document_id ("source" where there is none). Scores are `metadata["score"]` where every document has one and
    they descend, else 1 / rank, since a BaseRetriever promises an order but no scores.
    """

    def __init__(self, retriever: BaseRetriever) -> None:
        from langchain_core.vectorstores import VectorStoreRetriever

        self.name = type(retriever).__name__
        self._retriever = retriever
        self._takes_k = isinstance(retriever, VectorStoreRetriever)  # others return as many as they were configured to

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits, in the retriever's order. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        return _hits(self._retriever.invoke(query, **self._options(k)), k)

    async def aretrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Do what `retrieve` does without blocking the event loop."""
        check_query(query, k)
        return _hits(await self._retriever.ainvoke(query, **self._options(k)), k)

    def _options(self, k: int) -> dict[str, Any]:
        return {"k": k} if self._takes_k else {}


def as_langchain(retriever: Retriever, k: int = 5) -> BaseRetriever:
    """Wrap `retriever` as a LangChain BaseRetriever that returns at most `k` documents.

    Documents carry the passage's id and text; their metadata is the passage's, with title, document_id and score.
    """
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.retrievers import BaseRetriever

    class PassageRetriever(BaseRetriever):
        """Offers a ras_agent retriever through LangChain's interface."""

        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
            return [_document(hit) for hit in retriever.retrieve(query, k)]

        async def _aget_relevant_documents(
            self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
        ) -> list[Document]:
            return [_document(hit) for hit in await acall(retriever, "retrieve", query, k)]

    return PassageRetriever()


def _document(hit: Hit) -> Document:
    from langchain_core.documents import Document

    passage = hit.passage
    about = {"title": passage.title, "document_id": passage.document_id, "score": hit.score}
    return Document(page_content=passage.text, id=passage.id, metadata={**passage.metadata, **about})


def _hits(documents: Iterable[Document], k: int) -> list[Hit]:
    found = list(documents)[:k]
    scores: list[Any] = [document.metadata.get("score") for document in found]
    if not _descend(scores):
        scores = [1 / rank for rank in range(1, len(found) + 1)]
    return [Hit(_passage(document), float(score)) for document, score in zip(found, scores, strict=True)]


def _descend(scores: list[Any]) -> bool:
    numbers = all(isinstance(score, int | float) and isfinite(score) for score in scores)
    return numbers and all(before >= after for before, after in pairwise(scores))


def _passage(document: Document) -> Passage:
    about = dict(document.metadata)
    about.pop("score", None)
    named = document.id or about.get("id")
    text_hash = hashlib.blake2b(document.page_content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return Passage(
        id=str(named or text_hash),
        text=document.page_content,
        title=str(about.pop("title", "")),
        document_id=str(about.pop("document_id", about.get("source", ""))),
        metadata=about,
    )
