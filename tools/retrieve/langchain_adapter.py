"""Adapters between LangChain's retrievers and ours, both ways."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ras_agent.errors import FilterError, RasError, SettingsError
from ras_agent.filters import OWN_FIELDS, Filter
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.text.lines import shown_name
from ras_agent.tools.index.given import passage_of_document, text_id
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.retrieve.search import Search

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

_WITH_OPERATORS = frozenset(("Chroma", "PGVector", "PineconeVectorStore"))
"""LangChain's vector stores that take {"key": {"$in": [...]}}, and "$and" of several"""


def named_object(path: str) -> BaseRetriever | BaseTool:
    """Import the LangChain vector store, retriever or tool at `module:attribute`.

    A function is called without arguments and makes it. The module may be in the working directory, from which nothing
    that is installed is replaced. Raises SettingsError where nothing of that kind is there.
    """
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool
    from langchain_core.vectorstores import VectorStore

    name = f"langchain:{path}"
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise SettingsError(f"expected 'langchain:module:attribute', such as langchain:my_store:store, got {name!r}")
    try:
        thing: Any = getattr(_module(module), attribute)
        if not isinstance(thing, BaseRetriever | BaseTool | VectorStore) and callable(thing):
            thing = thing()
    except RasError:
        raise
    except AttributeError as error:
        raise SettingsError(
            f"{name!r}: {error}: name a vector store, a retriever, or a function that makes one"
        ) from error
    except Exception as error:
        raise SettingsError(f"{name!r} could not be made ({type(error).__name__}: {error}): mend the module") from error
    thing = langchain_retriever(thing) or thing
    if not isinstance(thing, BaseRetriever | BaseTool):
        raise SettingsError(
            f"{name!r} is {thing!r:.80}: name a LangChain vector store, a retriever, a tool or a function making one"
        )
    return thing


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
    # at the end, and only for this import, so that a file here is nobody else's module
    here = os.getcwd()
    sys.path.append(here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise SettingsError(
            f"there is no module {name!r}: install it, or start where its file {name.partition('.')[0]}.py is"
        ) from error
    finally:
        sys.path.remove(here)


def langchain_retriever(thing: Any) -> BaseRetriever | None:
    """Return a LangChain retriever, or that of a vector store, and None for anything else.

    Nothing is one of them while LangChain is not loaded.
    """
    stores, retrievers = (sys.modules.get(f"langchain_core.{name}") for name in ("vectorstores", "retrievers"))
    if stores is not None and isinstance(thing, stores.VectorStore):
        return cast("BaseRetriever", thing.as_retriever())
    return (
        cast("BaseRetriever", thing) if retrievers is not None and isinstance(thing, retrievers.BaseRetriever) else None
    )


class LangChainRetriever:
    """Retriever around any LangChain BaseRetriever.

    A document's `id`, else `metadata["id"]`, else a hash of its text is the passage's id; what `metadata` gives is in
    ras_agent.tools.index.given. Scores are `metadata["score"]` where every document has one and
    they descend, else 1 / rank, since a BaseRetriever promises an order but no scores.
    """

    def __init__(self, retriever: BaseRetriever) -> None:
        from langchain_core.vectorstores import VectorStoreRetriever

        self.name = type(retriever).__name__
        self._retriever = retriever
        self._takes_k = isinstance(retriever, VectorStoreRetriever)  # others return as many as they were configured to

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, in the retriever's order.

        Raises ValueError for a blank query or k < 1, and FilterError where the store cannot be given the filter.
        """
        check_query(query, k)
        return _hits(self._retriever.invoke(query, **self._options(k, Filter.of(filter))), k)

    async def aretrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Do what `retrieve` does without blocking the event loop."""
        check_query(query, k)
        return _hits(await self._retriever.ainvoke(query, **self._options(k, Filter.of(filter))), k)

    def _options(self, k: int, filter: Filter) -> dict[str, Any]:
        options: dict[str, Any] = {"k": k} if self._takes_k else {}
        return options | {"filter": self._store_filter(filter)} if filter else options

    def _store_filter(self, filter: Filter) -> object:
        """Return the filter in the store's own language, together with the one that the retriever was made with."""
        if getattr(self._retriever, "takes_filters", False):
            return filter
        kinds = {kind.__name__ for kind in type(getattr(self._retriever, "vectorstore", None)).__mro__}
        store_filter: Any = getattr(self._retriever, "search_kwargs", {}).get("filter")
        if "InMemoryVectorStore" in kinds and (store_filter is None or callable(store_filter)):
            return lambda document: (
                filter.matches(_passage(document)) and (store_filter is None or store_filter(document))
            )
        keys = {condition.key for condition in filter.conditions}
        if kinds & _WITH_OPERATORS and store_filter is None and not keys & set(OWN_FIELDS):
            parts = [{condition.key: {"$in": list(condition.values)}} for condition in filter.conditions]
            return parts[0] if len(parts) == 1 else {"$and": parts}
        raise FilterError(
            f"{self.name} cannot be given the filter ({filter}): write a retriever around the store, with a method "
            "retrieve(query, k, filter=None) that asks the store in its own language"
        )


def as_langchain(retriever: Retriever, k: int = 5) -> BaseRetriever:
    """Wrap `retriever` as a LangChain BaseRetriever that returns at most `k` documents.

    Documents carry the passage's id and text; their metadata is the passage's, with title, document_id and score.
    `invoke(query, filter={"team": "x"})` finds only what the filter admits, if `retriever` can.
    """
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.retrievers import BaseRetriever

    class PassageRetriever(BaseRetriever):
        """LangChain retriever around one of ours."""

        takes_filters: ClassVar[bool] = True

        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun, filter: object = None
        ) -> list[Document]:
            return [_document(hit) for hit in Search(retriever, Filter.of(filter)).retrieve(query, k)]

        async def _aget_relevant_documents(
            self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, filter: object = None
        ) -> list[Document]:
            return [_document(hit) for hit in await Search(retriever, Filter.of(filter)).aretrieve(query, k)]

    return PassageRetriever()


def _document(hit: Hit) -> Document:
    from langchain_core.documents import Document

    passage = hit.passage
    about = {"title": shown_name(passage.title), "document_id": passage.document_id, "score": hit.score}
    return Document(page_content=passage.text, id=passage.id, metadata={**passage.metadata, **about})


def _hits(documents: Iterable[Document], k: int) -> list[Hit]:
    best = list(documents)[:k]
    scores: list[Any] = [document.metadata.get("score") for document in best]
    if not _descend(scores):
        scores = [1 / rank for rank in range(1, len(best) + 1)]
    return [Hit(_passage(document), float(score)) for document, score in zip(best, scores, strict=True)]


def _descend(scores: list[Any]) -> bool:
    numbers = all(isinstance(score, int | float) and isfinite(score) for score in scores)
    return numbers and all(before >= after for before, after in pairwise(scores))


def _passage(document: Document) -> Passage:
    passage = passage_of_document(document)
    return passage if passage.id else replace(passage, id=text_id(passage.text))
