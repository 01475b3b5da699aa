"""Makes a plain function a retriever: `create_ras_agent(retriever=my_search)`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from ras_agent.contracts.records import Hit
from ras_agent.running.calling import run_apart
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.retrieve.tool_adapter import hits_in


class FunctionRetriever:
    """Wraps a function, which takes the query and perhaps `k`, as a retriever. The function may be asynchronous.

    It returns, best first, hits, passages, LangChain documents, dictionaries with a text, or texts. Unless it
    returns hits, their scores are 1 / rank.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._takes_k = "k" in inspect.signature(function).parameters
        self._is_async = inspect.iscoroutinefunction(function)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits. Raises ValueError for a blank query or k < 1, TypeError if the function returns
        None, and the function's own errors.
        """
        check_query(query, k)
        found = self._call(query, k)
        if self._is_async:
            found = run_apart(found)
        return self._hits(found, k)

    async def aretrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return the same as `retrieve`, without blocking the event loop."""
        if not self._is_async:
            return await asyncio.to_thread(self.retrieve, query, k)
        check_query(query, k)
        return self._hits(await self._call(query, k), k)

    def _call(self, query: str, k: int) -> Any:
        if self._takes_k:
            return self._function(query, k=k)
        return self._function(query)

    def _hits(self, found: Any, k: int) -> list[Hit]:
        if found is None:
            raise TypeError(
                f"the retriever {self.name} returned None: let it return a list, an empty one if it finds nothing"
            )
        if isinstance(found, list) and isinstance(next(iter(found), None), Hit):
            return found[:k]
        return hits_in(found, k)
