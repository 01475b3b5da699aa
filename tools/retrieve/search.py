"""Searches for a run: by the index as of its last commit, and only what a filter admits.

Current     a retriever by name, which follows the commits of its index
Scoped      any retriever, bound to a filter that no caller can widen
Search      what a run asks: a retriever with the filter and the commit of this run
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any, Self

from ras_agent.calling import acall, call
from ras_agent.errors import FilterError
from ras_agent.filters import ALL, Filter, takes_filter
from ras_agent.protocols import Retriever
from ras_agent.records import Hit, Passage
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.ranker import Explaining, explained

_COMMITS = 4
_RETRIEVERS = 16
_SECONDS = 600.0
"""How long a run that goes on sees the commit that it began with, once there is a later one: what was erased is gone
from memory then, too"""


class Current:
    """Is the registered retriever `name` over an index as of its last commit, for any filter.

    It is made anew for each commit and filter, over a view of the index, so that nothing outside is searched at all.
    The last few are remembered, those of earlier commits for ten minutes.
    """

    def __init__(self, name: str, index: PassageIndex, options: dict[str, Any]) -> None:
        """Make the retriever once. Raises what making it raises."""
        self.name = name
        self._index, self._options, self._reasons = index, options, 0
        self._lock = Lock()
        self._views: OrderedDict[str, PassageIndex] = OrderedDict()
        self._known: dict[str, float] = {}  # when each view was last known to be of the last commit
        self._made: OrderedDict[tuple[str, Filter], _Once] = OrderedDict()
        self.at("", ALL)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits of the last commit. Raises ValueError for a blank query or k < 1, and FilterError."""
        return Search(self, Filter.of(filter)).retrieve(query, k)

    async def aretrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Do what `retrieve` does without blocking the event loop."""
        return await Search(self, Filter.of(filter)).aretrieve(query, k)

    def at(self, commit: str, filter: Filter) -> At:
        """Return the retriever within `filter` as of `commit`, or as of the last one where that is not known."""
        commit, view = self._view(commit)
        with self._lock:
            once = self._made.setdefault((commit, filter), _Once())
            self._made.move_to_end((commit, filter))
            while len(self._made) > _RETRIEVERS:
                self._made.popitem(last=False)
        made: At = once(partial(self._make, view, filter, commit))
        return made

    def explained(self, paths: int) -> Self:
        """Return the same retriever, whose hits say why, if it can, by at most `paths` reasons each."""
        other = copy(self)
        other._reasons, other._lock = paths, Lock()
        other._views, other._known, other._made = OrderedDict(), {}, OrderedDict()
        return other

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return each passage's reasons, or an empty tuple."""
        retriever = self.at("", ALL).retriever
        return retriever.why(query, passage_ids) if isinstance(retriever, Explaining) else [()] * len(passage_ids)

    def _view(self, commit: str) -> tuple[str, PassageIndex]:
        with self._lock:
            self._index.refresh()  # for an earlier commit, too: it may be seen for so long after it was the last
            last, now = self._index.commit, time.monotonic()
            if last not in self._views:
                self._views[last] = self._index.within()
            self._views.move_to_end(last)
            self._known[last] = now
            *earlier, _ = self._views
            for number, gone in enumerate(reversed(earlier), start=1):
                if number >= _COMMITS or now - self._known[gone] > _SECONDS:
                    del self._views[gone], self._known[gone]
            for key in [key for key in self._made if key[0] not in self._views]:
                del self._made[key]
            chosen = commit if commit in self._views else last
            return chosen, self._views[chosen]

    def _make(self, view: PassageIndex, filter: Filter, commit: str) -> At:
        part = view.within(filter) if filter else view
        retriever = part.retriever(self.name, **self._options)
        return At(explained(retriever, self._reasons) if self._reasons else retriever, commit, part)


class At:
    """Holds a retriever over a view of an index, and the commit that the view is of."""

    def __init__(self, retriever: Retriever, commit: str, view: PassageIndex) -> None:
        self.retriever, self.commit, self.view = retriever, commit, view


class _Once:
    """Makes something when it is first asked for, while others wait; what fails is tried again by the next."""

    def __init__(self) -> None:
        self._lock, self._made = Lock(), None

    def __call__(self, make: Callable[[], Any]) -> Any:
        with self._lock:
            if self._made is None:
                self._made = make()
            return self._made


class Scoped:
    """Binds a retriever to a filter: what a caller asks for within it is found, and nothing else."""

    __wrapped__: Retriever
    scope: Filter

    def __init__(self, retriever: Retriever, scope: Filter) -> None:
        """Raises FilterError for a retriever that cannot apply a filter."""
        if isinstance(retriever, Scoped):
            scope = scope.both(retriever.scope)
            retriever = retriever.__wrapped__
        _check_takes_filter(retriever, scope)
        self.__wrapped__, self.scope = retriever, scope
        self.name = getattr(retriever, "name", type(retriever).__name__)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits that the scope and `filter` admit."""
        return Search(self, Filter.of(filter)).retrieve(query, k)

    async def aretrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Do what `retrieve` does without blocking the event loop."""
        return await Search(self, Filter.of(filter)).aretrieve(query, k)

    def explained(self, paths: int) -> Self:
        """Return the same retriever, whose hits say why, if it can."""
        other = copy(self)
        other.__wrapped__ = explained(self.__wrapped__, paths)
        return other

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return no reasons: those of a search within the scope come with its hits."""
        return [()] * len(passage_ids)


class Search:
    """Asks a retriever within a filter, in the state of the index that a run began with.

    commit: the state to search, "" for the last one; afterwards the one that was searched.
    """

    def __init__(self, retriever: Retriever, filter: Filter, commit: str = "") -> None:
        """Raises FilterError for a retriever that cannot apply the filter."""
        if isinstance(retriever, Scoped):
            filter = retriever.scope.both(filter)
            retriever = retriever.__wrapped__
        _check_takes_filter(retriever, filter)
        self.__wrapped__, self.filter, self.commit = retriever, filter, commit

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return the hits. Raises FilterError for one that the filter leaves out, and what the retriever raises."""
        at = self._at()
        found: list[Hit] = self._checked(call(self._bound(at), "retrieve", query, k), at)
        return found

    async def aretrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Do what `retrieve` does without blocking the event loop."""
        at = await acall(self, "_at") if isinstance(self.__wrapped__, Current) else None
        found: list[Hit] = self._checked(await acall(self._bound(at), "retrieve", query, k), at)
        return found

    def _at(self) -> At | None:
        if not isinstance(self.__wrapped__, Current):
            return None
        at = self.__wrapped__.at(self.commit, self.filter)
        self.commit = at.commit
        return at

    def _bound(self, at: At | None) -> object:
        retriever: Any = at.retriever if at else self.__wrapped__
        if at or not self.filter:
            return retriever
        methods = ("retrieve", "aretrieve")
        faces = {name: getattr(retriever, name) for name in methods if hasattr(retriever, name)}
        return SimpleNamespace(**{name: partial(face, filter=self.filter) for name, face in faces.items()})

    def _checked(self, found: Any, at: At | None) -> Any:
        """Return hits as they are, once no passage is outside the filter, whatever the retriever made of it."""
        if not self.filter or not isinstance(found, Sequence):
            return found
        for hit in found:
            if isinstance(hit, Hit) and isinstance(hit.passage, Passage) and not self._admits(hit.passage, at):
                # not which: the message may be shown to somebody who must not know
                raise FilterError(
                    f"{_named(self.__wrapped__)} was to find only what the filter admits ({self.filter}), and found a "
                    "passage that it leaves out: apply the filter before choosing the best k"
                )
        return found

    def _admits(self, passage: Passage, at: At | None) -> bool:
        if self.filter.matches(passage):
            return True
        if at is None:
            return False
        # a path or subgraph that is written out as a passage is made of facts that admitted passages state
        places = [
            source.extractor.removeprefix("stated: ") for fact in stated_facts(passage) or () for source in fact.sources
        ]
        return bool(places) and all(at.view.get(place) is not None for place in set(places))


def scoped(retriever: Retriever, scope: object) -> Retriever:
    """Return `retriever` bound to the filter `scope`, or as it is where there is none. Raises FilterError."""
    chosen = Filter.of(scope)
    return Scoped(retriever, chosen) if chosen else retriever


def scope_of(retriever: Retriever) -> Filter:
    """Return the filter that a retriever is bound to."""
    return retriever.scope if isinstance(retriever, Scoped) else ALL


def _check_takes_filter(retriever: Retriever, filter: Filter) -> None:
    if filter and not takes_filter(retriever):
        raise FilterError(
            f"{_named(retriever)} cannot apply a filter ({filter}): give its method the parameter `filter`, "
            "retrieve(query, k, filter=None), and leave out every passage for which filter.matches(passage) is false "
            "before choosing the best k; or leave the filter away"
        )


def _named(retriever: object) -> str:
    return f"retriever {getattr(retriever, 'name', None) or type(retriever).__name__!r}"
