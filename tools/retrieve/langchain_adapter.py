"""Adapts LangChain's retrievers to this package, and this package's retrievers to LangChain."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ras_agent.config.filters import OWN_FIELDS, Filter
from ras_agent.contracts.errors import FilterError, RasError, SettingsError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.protocols import Retriever
from ras_agent.text.lines import shown_name
from ras_agent.tools.index.given import passage_of_document, text_id
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.retrieve.search import Search

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

_WITH_OPERATORS = frozenset(("Chroma", "PGVector", "PineconeVectorStore"))
"""LangChain's vector stores that accept filters such as {"key": {"$in": [...]}}, and "$and" of several."""


def named_object(path: str) -> BaseRetriever | BaseTool:
    """Import a LangChain vector store, retriever or tool by its path `module:attribute`. A vector store is returned as
    a retriever.

    If the attribute is a function, it is called without arguments and returns the object. The module may be a file
    in the working directory, but does not replace an installed module. Raises SettingsError if there is no such
    object.
    """
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool
    from langchain_core.vectorstores import VectorStore

    name = f"langchain:{path}"
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise SettingsError(
            f"expected 'langchain:module:attribute', such as langchain:my_store:store, got {name!r}"
        )
    try:
        thing: Any = getattr(_module(module), attribute)
        if not isinstance(thing, BaseRetriever | BaseTool | VectorStore) and callable(
            thing
        ):
            thing = thing()
    except RasError:
        raise
    except AttributeError as error:
        raise SettingsError(
            f"{name!r}: {error}: name a vector store, a retriever, or a function that makes one"
        ) from error
    except Exception as error:
        raise SettingsError(
            f"{name!r} could not be imported or called ({type(error).__name__}: {error}): correct its module"
        ) from error
    thing = langchain_retriever(thing) or thing
    if not isinstance(thing, BaseRetriever | BaseTool):
        raise SettingsError(
            f"{name!r} is {thing!r:.80}: name a LangChain vector store, a retriever, a tool, or a function that "
            "returns one of them"
        )
    return thing


def _module(name: str) -> ModuleType:
    top = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != top:
            raise
    # appended, and only for this import, so that files here shadow no installed module
    here = os.getcwd()
    sys.path.append(here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != top:
            raise
        raise SettingsError(
            f"there is no module {name!r}: install it, or run the command in the folder of {top}.py"
        ) from error
    finally:
        sys.path.remove(here)


def langchain_retriever(thing: Any) -> BaseRetriever | None:
    """Return `thing` if it is a LangChain retriever, and its retriever if it is a vector store; otherwise None.

    LangChain is not imported for this: as long as it is not loaded, the result is None.
    """
    stores = sys.modules.get("langchain_core.vectorstores")
    if stores is not None and isinstance(thing, stores.VectorStore):
        thing = thing.as_retriever()
    retrievers = sys.modules.get("langchain_core.retrievers")
    if retrievers is None or not isinstance(thing, retrievers.BaseRetriever):
        return None
    return cast("BaseRetriever", thing)


class LangChainRetriever:
    """Wraps any LangChain BaseRetriever as a retriever of this package.

    A passage's id is the document's `id`, else `metadata["id"]`, else a hash of its text;
    ras_agent.tools.index.given lists the other keys of `metadata` that are read. Scores are `metadata["score"]` if
    every document has one and they descend, else 1 / rank, since a BaseRetriever promises an order but no scores.
    """

    reports_searches = True
    """True, since LangChain's retriever itself reports each search to the callbacks of the run."""

    def __init__(self, retriever: BaseRetriever) -> None:
        from langchain_core.vectorstores import VectorStoreRetriever

        self.name = type(retriever).__name__
        self._retriever = retriever
        # other retrievers return the number that they were configured for
        self._takes_k = isinstance(retriever, VectorStoreRetriever)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, in the LangChain retriever's order.

        Raises ValueError for a blank query or k < 1, and FilterError if the filter cannot be passed to the store.
        """
        check_query(query, k)
        options = self._options(k, Filter.of(filter))
        documents = self._retriever.invoke(query, **options)
        return _hits(documents, k)

    async def aretrieve(
        self, query: str, k: int = 5, filter: object = None
    ) -> list[Hit]:
        """Return the same as `retrieve`, without blocking the event loop."""
        check_query(query, k)
        options = self._options(k, Filter.of(filter))
        documents = await self._retriever.ainvoke(query, **options)
        return _hits(documents, k)

    def _options(self, k: int, filter: Filter) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._takes_k:
            options["k"] = k
        if filter:
            options["filter"] = self._store_filter(filter)
        return options

    def _store_filter(self, filter: Filter) -> object:
        """Return the filter in the store's form, combined with the filter that the retriever was made with.

        Raises FilterError if the store takes no filter of a known form.
        """
        if getattr(self._retriever, "takes_filters", False):
            return filter
        store = getattr(self._retriever, "vectorstore", None)
        kinds = {kind.__name__ for kind in type(store).__mro__}
        made_with: Any = getattr(self._retriever, "search_kwargs", {}).get("filter")
        if "InMemoryVectorStore" in kinds and made_with is None:
            return lambda document: filter.matches(_passage(document))
        if "InMemoryVectorStore" in kinds and callable(made_with):
            return lambda document: (
                filter.matches(_passage(document)) and made_with(document)
            )
        keys = {condition.key for condition in filter.conditions}
        tests = {condition.test for condition in filter.conditions}
        if (
            kinds & _WITH_OPERATORS
            and tests == {"in"}
            and made_with is None
            and keys.isdisjoint(OWN_FIELDS)
        ):
            parts = []
            for condition in filter.conditions:
                parts.append({condition.key: {"$in": list(condition.values)}})
            return parts[0] if len(parts) == 1 else {"$and": parts}
        raise FilterError(
            f"{self.name} cannot be given the filter ({filter}): write a retriever around the store, with a method "
            "retrieve(query, k, filter=None) that asks the store in its own language"
        )


def as_langchain(retriever: Retriever, k: int = 5) -> BaseRetriever:
    """Wrap `retriever` as a LangChain BaseRetriever that returns at most `k` documents.

    A document has the passage's id and text; its metadata is the passage's, with title, document_id and score.
    `invoke(query, filter={"team": "x"})` returns only passages that the filter admits, if `retriever` supports
    filters.
    """
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.retrievers import BaseRetriever

    class PassageRetriever(BaseRetriever):
        """Returns the hits of `retriever` as LangChain documents."""

        takes_filters: ClassVar[bool] = True

        def _get_relevant_documents(
            self,
            query: str,
            *,
            run_manager: CallbackManagerForRetrieverRun,
            filter: object = None,
        ) -> list[Document]:
            search = Search(retriever, Filter.of(filter))
            hits = search.retrieve(query, k)
            return list(map(_document, hits))

        async def _aget_relevant_documents(
            self,
            query: str,
            *,
            run_manager: AsyncCallbackManagerForRetrieverRun,
            filter: object = None,
        ) -> list[Document]:
            search = Search(retriever, Filter.of(filter))
            hits = await search.aretrieve(query, k)
            return list(map(_document, hits))

    return PassageRetriever()


def _document(hit: Hit) -> Document:
    from langchain_core.documents import Document

    passage = hit.passage
    metadata = {
        **passage.metadata,
        "title": shown_name(passage.title),
        "document_id": passage.document_id,
        "score": hit.score,
    }
    return Document(page_content=passage.text, id=passage.id, metadata=metadata)


def _hits(documents: Iterable[Document], k: int) -> list[Hit]:
    best = list(documents)[:k]
    scores: list[Any] = [document.metadata.get("score") for document in best]
    scored = _descend(scores)
    hits = []
    for rank, document in enumerate(best, start=1):
        score = float(scores[rank - 1]) if scored else 1 / rank
        hits.append(Hit(_passage(document), score))
    return hits


def _descend(scores: list[Any]) -> bool:
    for score in scores:
        if not isinstance(score, int | float) or not isfinite(score):
            return False
    return scores == sorted(scores, reverse=True)


def _passage(document: Document) -> Passage:
    passage = passage_of_document(document)
    if passage.id:
        return passage
    return replace(passage, id=text_id(passage.text))
