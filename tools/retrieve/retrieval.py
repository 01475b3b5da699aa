"""Holds one search on its way through its stages: candidates, filter, mix, reranker, reasons.

A Search keeps the record of each search in a context variable, as a run keeps its ledger. Retrievers by name and those
that rank rows read there which passages may be seen. So a wrapper around one of them, which knows nothing of filters,
commits and reasons, loses none of them. A thread that does not copy the context finds nothing there; then the filter
is not applied, and the search is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

from ras_agent.filters import ALL, Filter
from ras_agent.records import Failure, Hit, Passage
from ras_agent.scoped_value import ScopedValue
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex


@dataclass
class Retrieval:
    """One search: what it asks for, what it may see, and what its stages have found so far."""

    query: str = ""
    filter: Filter = ALL
    """Admits the passages that may be found."""
    commit: str = ""
    """The state of the index to search, "" for the last one; afterwards the state that was searched."""
    reasons: int = 0
    """How many reasons a hit carries at most."""
    hits: Sequence[Hit] = ()
    is_filtered: bool = False
    """Whether a retriever has applied the filter."""
    is_whole: bool = False
    """Whether a hit that was erased meanwhile is an ErasedPassage, so that the search can be made again, not left out."""
    views: list[PassageIndex] = field(default_factory=list)
    """Views that were searched, which hold only admitted passages."""
    failures: list[Failure] = field(default_factory=list)
    """Stages that failed, and were left out."""

    def saw(self, view: PassageIndex, commit: str) -> None:
        """Note that a view within the filter was searched."""
        self.is_filtered = True
        self.commit = commit
        self.views.append(view)

    def receive(self, inner: Retrieval) -> None:
        """Take over what a search inside this one has seen."""
        self.is_filtered = True
        self.commit = inner.commit
        self.views += inner.views
        self.failures += inner.failures

    def admits(self, passage: Passage) -> bool:
        """Tell whether the filter admits a passage, or all passages whose facts it writes out."""
        if self.filter.matches(passage):
            return True
        # a path or subgraph that is written out as a passage is made of facts that admitted passages state
        places: set[str] = set()
        for fact in stated_facts(passage) or ():
            for source in fact.sources:
                places.add(source.extractor.removeprefix("stated: "))
        return bool(places) and all(map(self._is_in_a_view, places))

    def _is_in_a_view(self, passage_id: str) -> bool:
        return any(view.get(passage_id) is not None for view in self.views)


_retrieval: ContextVar[Retrieval | None] = ContextVar(
    "ras_agent_retrieval", default=None
)


def current_retrieval() -> Retrieval:
    """Return the search that is running, or one without a filter where nothing runs."""
    return _retrieval.get() or Retrieval()


def retrieving(retrieval: Retrieval) -> ScopedValue[Retrieval]:
    """Let the retrievers inside the block, also in threads that copy the context, see a search."""
    return ScopedValue(_retrieval, retrieval)
