"""Searches for a run see the index as of its last commit, and only the passages that a filter admits.

LiveRetriever   a retriever by name, which follows the commits of its index
Search          any retriever within a filter that no caller can widen, in the state of the index that a run began with
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any, Generic, Self, TypeVar

from ras_agent.calling import acall, call
from ras_agent.errors import ErasedPassage, FilterError
from ras_agent.filters import ALL, Filter, takes_filter
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.ranker import Explaining, RankedRetriever, explained
from ras_agent.tools.retrieve.registered import retriever_over

_COMMITS = 4
_RETRIEVERS = 16
_FILTERS = 1000
_SECONDS = 600.0
"""How long a run that goes on sees the commit that it began with, once there is a later one: erased passages are gone
from memory then, too"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommitView:
    """Retriever over a view of an index, with the commit that the view shows."""

    retriever: Retriever
    commit: str
    view: PassageIndex


class LiveRetriever:
    """Registered retriever `name` over the last commit of an index, for any filter.

    It is made again for each commit and filter, over a view of the index, so that nothing outside is searched at all.
    The last few are cached, those of earlier commits for ten minutes. Filters with which runs have come back keep half
    of the places at least: a caller with a new filter for each question costs nobody else a retriever.
    """

    def __init__(self, name: str, index: PassageIndex, options: dict[str, Any]) -> None:
        """Check name and options by making the retriever once. Raises the errors of making it."""
        self.name = name
        self._index = index
        self._options = options
        self._reasons = 0
        self._forget()
        self.at("", ALL)

    def _forget(self) -> None:
        self._lock = Lock()
        # a view of the index for each commit
        self._indexes: OrderedDict[str, PassageIndex] = OrderedDict()
        self._last_seen: dict[
            str, float
        ] = {}  # when each commit was last known to be the last one
        self._views: OrderedDict[tuple[str, Filter], _Lazy[CommitView]] = OrderedDict()
        # that began with each of the last filters
        self._runs: OrderedDict[Filter, int] = OrderedDict()

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits of the last commit. Raises ValueError for a blank query or k < 1, and FilterError."""
        search = Search(self, Filter.of(filter))
        return search.retrieve(query, k)

    async def aretrieve(
        self, query: str, k: int = 5, filter: object = None
    ) -> list[Hit]:
        """Do the same as `retrieve`, without blocking the event loop."""
        search = Search(self, Filter.of(filter))
        return await search.aretrieve(query, k)

    def at(self, commit: str, filter: Filter) -> CommitView:
        """Return the retriever within `filter` over `commit`, or over the last commit where that one is not cached."""
        is_new_run = not commit
        commit, index = self._index_at(commit)
        key = (commit, filter)
        with self._lock:
            if is_new_run:
                self._note_run(filter)
            lazy = self._views.setdefault(key, _Lazy())
            self._views.move_to_end(key)
            if len(self._views) > _RETRIEVERS:
                del self._views[self._least_needed()]
        return lazy.get(partial(self._view, index, filter, commit))

    def _least_needed(self) -> tuple[str, Filter]:
        """Return the oldest view of a filter with which one run came, if these are many; else of the other filters."""
        of_one_run: list[tuple[str, Filter]] = []
        of_several: list[tuple[str, Filter]] = []
        for key in self._views:
            views = of_one_run if self._runs.get(key[1], 1) == 1 else of_several
            views.append(key)
        return of_one_run[0] if len(of_one_run) > _RETRIEVERS // 2 else of_several[0]

    def _note_run(self, filter: Filter) -> None:
        runs = self._runs.pop(filter, 0)
        self._runs[filter] = runs + 1
        if len(self._runs) > _FILTERS:
            self._runs.popitem(last=False)

    def explained(self, paths: int) -> Self:
        """Return the same retriever, with at most `paths` reasons for each hit, if it can give any."""
        other = copy(self)
        other._reasons = paths
        other._forget()
        return other

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each passage's reasons, or an empty tuple."""
        retriever = self.at("", ALL).retriever
        if isinstance(retriever, Explaining):
            return retriever.why(query, passage_ids)
        return [()] * len(passage_ids)

    def _index_at(self, commit: str) -> tuple[str, PassageIndex]:
        """Return `commit` with a view of the index; the last commit and its view where that one is not cached."""
        with self._lock:
            self._index.refresh()  # for an earlier commit, too: it may be seen for so long after it was the last
            last = self._index.commit
            now = time.monotonic()
            if last not in self._indexes:
                self._indexes[last] = self._index.within()
            self._indexes.move_to_end(last)
            self._last_seen[last] = now
            *earlier, _ = self._indexes
            for number, old in enumerate(reversed(earlier), start=1):
                if number >= _COMMITS or now - self._last_seen[old] > _SECONDS:
                    del self._indexes[old], self._last_seen[old]
            for key in list(self._views):
                if key[0] not in self._indexes:
                    del self._views[key]
            if commit not in self._indexes:
                commit = last
            return commit, self._indexes[commit]

    def _view(self, index: PassageIndex, filter: Filter, commit: str) -> CommitView:
        view = index.within(filter) if filter else index
        retriever = retriever_over(view, self.name, **self._options)
        if isinstance(retriever, RankedRetriever):
            retriever.complete = True  # a search that meets an erased passage is made again over the last commit
        if self._reasons:
            retriever = explained(retriever, self._reasons)
        return CommitView(retriever, commit, view)


class _Lazy(Generic[T]):
    """Value that is made at its first use, while other threads wait. After a failure the next use tries again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._value: T | None = None

    def get(self, make: Callable[[], T]) -> T:
        with self._lock:
            if self._value is None:
                self._value = make()
            return self._value


class Search:
    """Retriever bound to a filter: it returns only passages that this filter admits, whatever a caller asks for.

    retriever: the one that is bound. commit: the state of the index that was searched last.
    """

    retriever: Retriever
    filter: Filter

    def __init__(
        self, retriever: Retriever, filter: Filter = ALL, commit: str = ""
    ) -> None:
        """Bind a retriever, or narrow a search. Raises FilterError for a retriever that cannot apply the filter.

        commit: the state of the index that every search sees; "" for the last one.
        """
        if isinstance(retriever, Search):
            filter = retriever.filter.both(filter)
            retriever = retriever.retriever
        _check_takes_filter(retriever, filter)
        self.retriever = retriever
        self.filter = filter
        self.commit = commit
        self.name = _name_of(retriever)
        self._commit = commit

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits that both this search's filter and `filter` admit.

        Raises FilterError if the retriever returns any other passage, and the retriever's own errors.
        """
        narrower = Filter.of(filter)
        if narrower:
            return Search(self, narrower, self._commit).retrieve(query, k)
        view = self._view()
        try:
            hits: list[Hit] = call(self._bound(view), "retrieve", query, k)
        except ErasedPassage:
            if view is None:
                raise
            return Search(self).retrieve(query, k)  # the last commit does not have it
        self._check(hits, view)
        return hits

    async def aretrieve(
        self, query: str, k: int = 5, filter: object = None
    ) -> list[Hit]:
        """Do the same as `retrieve`, without blocking the event loop."""
        narrower = Filter.of(filter)
        if narrower:
            return await Search(self, narrower, self._commit).aretrieve(query, k)
        view = None
        if isinstance(self.retriever, LiveRetriever):
            view = await acall(self, "_view")
        try:
            hits: list[Hit] = await acall(self._bound(view), "retrieve", query, k)
        except ErasedPassage:
            if view is None:
                raise
            # the last commit does not have it
            return await Search(self).aretrieve(query, k)
        self._check(hits, view)
        return hits

    def explained(self, paths: int) -> Search:
        """Return the same search with hits that give reasons, if the retriever can."""
        return Search(explained(self.retriever, paths), self.filter, self._commit)

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return an empty tuple for each passage: reasons of a search within a filter come with its hits."""
        return [()] * len(passage_ids)

    def _view(self) -> CommitView | None:
        if not isinstance(self.retriever, LiveRetriever):
            return None
        view = self.retriever.at(self._commit, self.filter)
        self.commit = view.commit
        return view

    def _bound(self, view: CommitView | None) -> object:
        """Return the retriever within the filter.

        It searches a view, which holds only admitted passages, or gets the filter as an argument of every search.
        """
        if view:
            return view.retriever
        if not self.filter:
            return self.retriever
        bound = SimpleNamespace()
        for name in ("retrieve", "aretrieve"):
            method = getattr(self.retriever, name, None)
            if method is not None:
                setattr(bound, name, partial(method, filter=self.filter))
        return bound

    def _check(self, hits: Any, view: CommitView | None) -> None:
        """Raise FilterError for a passage outside the filter, however it came among the hits."""
        if not self.filter or not isinstance(hits, Sequence):
            return
        for hit in hits:
            if not isinstance(hit, Hit) or not isinstance(hit.passage, Passage):
                continue
            if not self._admits(hit.passage, view):
                # without the passage: the message may be shown to somebody who must not know it
                raise FilterError(
                    f"retriever {self.name!r} was to find only passages that the filter admits ({self.filter}), and "
                    "found one that it leaves out: apply the filter before choosing the best k"
                )

    def _admits(self, passage: Passage, view: CommitView | None) -> bool:
        if self.filter.matches(passage):
            return True
        if view is None:
            return False
        # a path or subgraph that is written out as a passage is made of facts that admitted passages state
        places: set[str] = set()
        for fact in stated_facts(passage) or ():
            places.update(
                source.extractor.removeprefix("stated: ") for source in fact.sources
            )
        return bool(places) and all(
            view.view.get(place) is not None for place in places
        )


def scoped(retriever: Retriever, scope: object) -> Retriever:
    """Return `retriever` bound to the filter `scope`, or unchanged for an empty one. Raises FilterError."""
    filter = Filter.of(scope)
    if not filter:
        return retriever
    return Search(retriever, filter)


def scope_of(retriever: Retriever) -> Filter:
    """Return the filter that a retriever is bound to, if any."""
    if isinstance(retriever, Search):
        return retriever.filter
    return ALL


def searched_by(role: object) -> object:
    """Return the retriever inside a Search; any other object unchanged."""
    if isinstance(role, Search):
        return role.retriever
    return role


def _name_of(retriever: Retriever) -> str:
    return getattr(retriever, "name", None) or type(retriever).__name__


def _check_takes_filter(retriever: Retriever, filter: Filter) -> None:
    if filter and not takes_filter(retriever):
        raise FilterError(
            f"retriever {_name_of(retriever)!r} cannot apply a filter ({filter}): give its method the parameter "
            "`filter`, retrieve(query, k, filter=None), and leave out every passage for which filter.matches(passage) "
            "is false before choosing the best k; or leave the filter away"
        )
