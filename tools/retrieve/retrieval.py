"""Records one search as it passes through its stages: candidates, filter, mix, reranker, reasons.

A Search keeps its record in a context variable, as a run keeps its ledger. Retrievers made by name and those that
rank rows read there which passages may be seen. So a wrapper around such a retriever works even if it does not know
about filters, commits and reasons. A thread that does not copy the context has no record; then the filter is not
applied, and the search is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.records import Failure, Hit, Passage
from ras_agent.contracts.scoped_value import ScopedValue
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex


@dataclass
class Retrieval:
    """Records one search: its query, the passages that it may see, and the hits and failures of its stages so far."""

    query: str = ""
    filter: Filter = ALL
    """The filter that every passage found has to pass."""
    commit: str = ""
    """The commit of the index to search, "" for the last one; afterwards the commit that was searched."""
    reasons: int = 0
    """The maximum number of reasons that a hit carries."""
    hits: Sequence[Hit] = ()
    is_filtered: bool = False
    """Whether a retriever has applied the filter."""
    is_whole: bool = False
    """Whether to raise ErasedPassage for a hit that was erased meanwhile, so that the search is repeated; otherwise
    the hit is left out.
    """
    views: list[PassageIndex] = field(default_factory=list)
    """The views of the index that were searched; they contain only admitted passages."""
    failures: list[Failure] = field(default_factory=list)
    """The failures of stages that were skipped."""

    def saw(self, view: PassageIndex, commit: str) -> None:
        """Record that a filtered view of the index was searched."""
        self.is_filtered = True
        self.commit = commit
        self.views.append(view)

    def receive(self, inner: Retrieval) -> None:
        """Take over the record of a nested search: its commit, its index views and its failures.

        This search then counts as filtered.
        """
        self.is_filtered = True
        self.commit = inner.commit
        self.views += inner.views
        self.failures += inner.failures

    def admits(self, passage: Passage) -> bool:
        """Return whether the filter admits a passage.

        A passage that was written from facts is admitted if the filter admits all passages that state these facts.
        """
        if self.filter.matches(passage):
            return True
        # a path or subgraph that is written out as a passage consists of facts that admitted passages state
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
    """Return the record of the running search; a new one without a filter if no search is running."""
    return _retrieval.get() or Retrieval()


def retrieving(retrieval: Retrieval) -> ScopedValue[Retrieval]:
    """Return a context manager that makes a record the one of the running search, also in threads that copy the
    context.
    """
    return ScopedValue(_retrieval, retrieval)
