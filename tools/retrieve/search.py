"""Searches for a run: all its searches see one state of the index, and only the passages that a filter admits.

LiveRetriever   a retriever by name, which follows the commits of its index
Search          any retriever within a filter that no caller can widen, in the state of the index at the run's start
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar

from ras_agent.config.filters import ALL, Filter, takes_filter
from ras_agent.contracts.errors import (
    OF_A_ROLE,
    ErasedPassage,
    FilterError,
    MissingExtra,
    ReplayMiss,
    SettingsError,
)
from ras_agent.contracts.records import Failure, Hit, Passage
from ras_agent.running.budget import current_ledger
from ras_agent.running.calling import acall, arun_steps, call, name_of, run_steps
from ras_agent.running.protocols import Reranker, Retriever
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.ranker import reasons_of, with_reasons
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.rerank import CANDIDATES, by_scores
from ras_agent.tools.retrieve.retrieval import (
    Retrieval,
    current_retrieval,
    retrieving,
)

_COMMITS = 4
_RETRIEVERS = 16
_FILTERS = 1000
_SECONDS = 600.0
"""How long a run still sees the commit it began with after a later commit.

Afterwards erased passages are gone from memory too.
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommitView:
    """Holds a retriever over a view of an index, and the commit that the view shows."""

    retriever: Retriever
    commit: str
    view: PassageIndex


class LiveRetriever:
    """Searches the last commit of an index by the retriever registered as `name`, within any filter.

    The retriever is built for each commit and filter, over a view of the index, so that passages outside the filter
    are not searched at all. The last few of them are cached; those of earlier commits for ten minutes. At least
    half of the cache is kept for filters that several runs have used, so a caller with a new filter for each
    question does not evict those of others.
    """

    def __init__(
        self,
        name: str,
        index: PassageIndex,
        options: dict[str, Any],
        *,
        at_once: bool = True,
    ) -> None:
        """Check name and options by building the retriever once. Raises the errors of building it.

        Args:
            at_once: whether to build it now, or at its first search.
        """
        self.name = name
        self._index = index
        self._options = options
        self._lock = Lock()
        # commit -> view of the index
        self._indexes: OrderedDict[str, PassageIndex] = OrderedDict()
        self._last_seen: dict[
            str, float
        ] = {}  # when each commit was last seen as the latest
        self._views: OrderedDict[tuple[str, Filter], _Lazy[CommitView]] = OrderedDict()
        # filter -> number of runs that began with it, for the last filters
        self._runs: OrderedDict[Filter, int] = OrderedDict()
        if at_once:
            self.at("", ALL)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits in the last commit, or in the commit that the running search has seen.

        Raises ValueError for a blank query or k < 1, and FilterError.
        """
        return self._searched("retrieve", query, k, filter)

    async def aretrieve(
        self, query: str, k: int = 5, filter: object = None
    ) -> list[Hit]:
        """Return the same as `retrieve`, without blocking the event loop."""
        retrieval = current_retrieval()
        restriction = retrieval.filter.both(Filter.of(filter))
        view: CommitView = await acall(self, "at", retrieval.commit, restriction)
        try:
            with retrieving(Retrieval(is_whole=True)):
                hits: list[Hit] = await acall(view.retriever, "retrieve", query, k)
        except ErasedPassage:
            # the last commit does not have it
            view = await acall(self, "at", "", restriction)
            with retrieving(Retrieval(is_whole=True)):
                hits = await acall(view.retriever, "retrieve", query, k)
        if not restriction and not retrieval.reasons:
            return self._received(query, hits, view, restriction)
        # checking the filter and giving reasons read passages and search the graph
        received = partial(self._received, query, hits, view, restriction)
        return await asyncio.to_thread(received)

    def candidates(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits for a reranker to read; `retrieve` applies all stages."""
        return self._searched("candidates", query, k, filter)

    def completed(self, query: str, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return `k` of the hits that a reranker returned, after the retriever's stages that follow a reranker."""
        retrieval = current_retrieval()
        view = self.at(retrieval.commit, retrieval.filter)
        complete = getattr(view.retriever, "completed", None)
        if complete is None:
            return list(hits[:k])
        best: list[Hit] = complete(query, hits, k)
        return best

    def reasons_for(
        self, query: str, passage_ids: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """Return the reasons for each passage, as lines of text, within the filter of the running search."""
        retrieval = current_retrieval()
        view = self.at(retrieval.commit, retrieval.filter)
        return reasons_of(view.retriever, query, passage_ids, retrieval.reasons)

    def _searched(self, method: str, query: str, k: int, filter: object) -> list[Hit]:
        retrieval = current_retrieval()
        restriction = retrieval.filter.both(Filter.of(filter))
        view = self.at(retrieval.commit, restriction)
        try:
            hits = _hits_of(view, method, query, k)
        except ErasedPassage:
            # the last commit does not have it
            view = self.at("", restriction)
            hits = _hits_of(view, method, query, k)
        return self._received(query, hits, view, restriction)

    def _received(
        self, query: str, hits: list[Hit], view: CommitView, restriction: Filter
    ) -> list[Hit]:
        """Check that the filter admits the hits, report the commit to the running search, and give the hits reasons."""
        seen = Retrieval(filter=restriction)
        seen.saw(view.view, view.commit)
        check_admitted(self.name, hits, seen)
        retrieval = current_retrieval()
        retrieval.receive(seen)
        if not retrieval.reasons or not _are_hits(hits):
            return hits
        ids = [hit.passage.id for hit in hits]
        reasons = reasons_of(view.retriever, query, ids, retrieval.reasons)
        return with_reasons(hits, reasons)

    def at(self, commit: str, filter: Filter) -> CommitView:
        """Return the retriever for `filter` over `commit`. If that commit is no longer cached, the last one is taken."""
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
        """Return the cached view to drop next.

        It is the oldest of the views whose filter only one run has used, if these fill more than half of the cache;
        otherwise the oldest of the others.
        """
        of_one_run: list[tuple[str, Filter]] = []
        of_several: list[tuple[str, Filter]] = []
        for key in self._views:
            _, filter = key
            runs = self._runs.get(filter, 1)
            views = of_one_run if runs == 1 else of_several
            views.append(key)
        if len(of_one_run) > _RETRIEVERS // 2:
            return of_one_run[0]
        return of_several[0]

    def _note_run(self, filter: Filter) -> None:
        runs = self._runs.pop(filter, 0)
        self._runs[filter] = runs + 1
        if len(self._runs) > _FILTERS:
            self._runs.popitem(last=False)

    def _index_at(self, commit: str) -> tuple[str, PassageIndex]:
        """Return `commit` and its view of the index, or the last commit and its view if it is no longer cached."""
        with self._lock:
            self._index.refresh()  # earlier commits expire too
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
        return CommitView(retriever, commit, view)


class _Lazy(Generic[T]):
    """Makes a value at its first use, while other threads wait. After a failure the next use tries again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._value: T | None = None

    def get(self, make: Callable[[], T]) -> T:
        with self._lock:
            if self._value is None:
                self._value = make()
            return self._value


def _hits_of(view: CommitView, method: str, query: str, k: int) -> list[Hit]:
    """Search a view with one of the retriever's methods.

    The view contains only admitted passages, so the retrievers inside have no filter to apply.
    """
    search = getattr(view.retriever, method, view.retriever.retrieve)
    with retrieving(Retrieval(is_whole=True)):
        hits: list[Hit] = search(query, k)
    return hits


class _Call(NamedTuple):
    """Holds a call that a stage makes: `role.method(*args)`."""

    role: object
    method: str
    args: tuple[Any, ...]

    def made(self) -> Any:
        return call(self.role, self.method, *self.args)

    def amade(self) -> Awaitable[Any]:
        return acall(self.role, self.method, *self.args)


_Stages = Generator[_Call, Any, None]

_NOT_LEFT_OUT = (SettingsError, MissingExtra, FilterError, ReplayMiss)


class Search:
    """Runs a retriever with all stages: candidates within a filter that no caller can widen, a reranker, and reasons.

    Attributes:
        retriever: returns the candidates.
        commit: the commit of the index that was searched last.
    """

    retriever: Retriever
    filter: Filter

    def __init__(
        self,
        retriever: Retriever,
        filter: Filter = ALL,
        commit: str = "",
        *,
        reranker: Reranker | None = None,
        candidates: int = CANDIDATES,
        reasons: int = 0,
    ) -> None:
        """Wrap a retriever. If it is itself a Search, its filter applies too.

        Args:
            filter: the passages that every search may find; by default all.
            commit: the commit of the index that every search sees; "" for the last one.
            reranker: by default there is no reranking.
            candidates: the number of hits that the reranker reads.
            reasons: the maximum number of reasons that a hit has.
        """
        self.retriever = retriever
        self.filter = filter.both(scope_of(retriever))
        self.commit = commit
        self.searched = searched_by(retriever)
        self.name = name_of(self.searched)
        self._commit = commit
        self._reranker = reranker
        self._candidates = candidates
        self._reasons = reasons

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits that both this search's filter and `filter` admit.

        Raises FilterError if the retriever returns any other passage or cannot apply a filter, and the retriever's
        own errors.
        """
        hits: list[Hit] = self.find(query, k, filter).hits  # type: ignore[assignment]
        return hits

    async def aretrieve(
        self, query: str, k: int = 5, filter: object = None
    ) -> list[Hit]:
        """Return the same as `retrieve`, without blocking the event loop."""
        retrieval = self._begin(query, filter)
        with retrieving(retrieval):
            await arun_steps(self._stages(retrieval, k), _Call.amade)
        return self._end(retrieval).hits  # type: ignore[return-value]

    def find(self, query: str, k: int = 5, filter: object = None) -> Retrieval:
        """Run a search and return its record: the hits, the commit that was searched, and the stages that failed."""
        retrieval = self._begin(query, filter)
        with retrieving(retrieval):
            run_steps(self._stages(retrieval, k), _Call.made)
        return self._end(retrieval)

    def _begin(self, query: str, filter: object) -> Retrieval:
        outer = current_retrieval()
        return Retrieval(
            query=query,
            filter=self.filter.both(outer.filter, Filter.of(filter)),
            commit=self._commit or outer.commit,
            reasons=max(self._reasons, outer.reasons),
        )

    def _end(self, retrieval: Retrieval) -> Retrieval:
        self.commit = retrieval.commit
        current_retrieval().receive(retrieval)
        return retrieval

    def _stages(self, retrieval: Retrieval, k: int) -> _Stages:
        """Take a search through its stages, yielding each call for the runner to make (synchronously or not)."""
        gives_reasons = hasattr(self.retriever, "reasons_for")
        reasons = retrieval.reasons
        if gives_reasons:
            # only the final hits get reasons, since they take time
            retrieval.reasons = 0
        if self._reranker is None:
            yield from self._find(retrieval, "retrieve", k)
        else:
            yield from self._find_reranked(retrieval, self._reranker, k)
        if not gives_reasons or not reasons or not _are_hits(retrieval.hits):
            return
        retrieval.reasons = reasons
        ids = [hit.passage.id for hit in retrieval.hits]
        why = yield _Call(self.retriever, "reasons_for", (retrieval.query, ids))
        retrieval.hits = with_reasons(retrieval.hits, why)

    def _find(self, retrieval: Retrieval, method: str, k: int) -> _Stages:
        """Find hits within the filter. Raises FilterError if the retriever did not apply it."""
        applies = not retrieval.filter or takes_filter(self.retriever)
        role: object = self.retriever
        if retrieval.filter and applies:
            role = _within(self.retriever, retrieval.filter)
        retrieval.hits = yield _Call(role, method, (retrieval.query, k))
        if not applies and not retrieval.is_filtered:
            raise FilterError(
                f"retriever {self.name!r} cannot apply a filter ({retrieval.filter}): give its method the parameter "
                "`filter`, retrieve(query, k, filter=None), and leave out every passage for which "
                "filter.matches(passage) is false before choosing the best k; or search without a filter"
            )
        check_admitted(self.name, retrieval.hits, retrieval)

    def _find_reranked(
        self, retrieval: Retrieval, reranker: Reranker, k: int
    ) -> _Stages:
        """Find candidates and rerank them. If the reranker fails, the hits are those of a search without one."""
        has_last_stage = hasattr(self.retriever, "candidates")
        method = "candidates" if has_last_stage else "retrieve"
        yield from self._find(retrieval, method, max(k, self._candidates))
        found = retrieval.hits
        if not _are_hits(found):
            return
        query = retrieval.query
        texts = [indexed_text(hit.passage) for hit in found]
        try:
            scores = yield _Call(reranker, "scores", (query, texts))
            retrieval.hits = by_scores(found, scores)
        except _NOT_LEFT_OUT:
            raise
        except OF_A_ROLE as error:
            retrieval.failures.append(_failure_of(reranker, error))
            yield from self._find(retrieval, "retrieve", k)
            return
        if has_last_stage:
            args = (query, retrieval.hits, k)
            retrieval.hits = yield _Call(self.retriever, "completed", args)
        else:
            retrieval.hits = retrieval.hits[:k]


def _failure_of(reranker: Reranker, error: Exception) -> Failure:
    """Return the failure of a reranker, after noting it in the run's ledger."""
    name = name_of(reranker)
    message = without_secrets(
        f"reranker {name} failed, and the hits stay as they were found: {type(error).__name__}: {error}"
    )
    ledger = current_ledger()
    ledger.note(message, role="reranker")
    return Failure("reranker", message, ledger.hop)


def _are_hits(found: object) -> bool:
    """Return whether `found` is a non-empty list of hits only. Anything else is rejected where the search is used."""
    if not isinstance(found, Sequence) or not found:
        return False
    return all(
        isinstance(hit, Hit) and isinstance(hit.passage, Passage) for hit in found
    )


def _within(retriever: Retriever, filter: Filter) -> object:
    """Return an object with the retriever's search methods, each with the filter as an argument."""
    bound = SimpleNamespace()
    for name in ("retrieve", "aretrieve", "candidates", "acandidates"):
        method = getattr(retriever, name, None)
        if method is not None:
            setattr(bound, name, partial(method, filter=filter))
    return bound


def check_admitted(name: str, hits: object, retrieval: Retrieval) -> None:
    """Raise FilterError if a hit is outside the filter of a search."""
    if not retrieval.filter or not isinstance(hits, Sequence):
        return
    for hit in hits:
        if not isinstance(hit, Hit) or not isinstance(hit.passage, Passage):
            continue
        if not retrieval.admits(hit.passage):
            # the message does not name the passage, as its reader may not be allowed to know it
            raise FilterError(
                f"retriever {name!r} returned a passage that the filter ({retrieval.filter}) does not admit: apply the "
                "filter in `retrieve`, before choosing the best k"
            )


def scoped(
    retriever: Retriever,
    scope: object,
    reranker: Reranker | None = None,
    candidates: int = CANDIDATES,
) -> Retriever:
    """Return `retriever` with the filter `scope` and a reranker; unchanged if both are absent. Raises FilterError.

    Args:
        scope: a Filter, or any form that `Filter.of` takes.
        candidates: the number of hits that the reranker reads.
    """
    filter = Filter.of(scope)
    if not filter and reranker is None:
        return retriever
    return Search(retriever, filter, reranker=reranker, candidates=candidates)


def scope_of(retriever: object) -> Filter:
    """Return the filter to which a retriever is bound; ALL if there is no filter."""
    bound = getattr(retriever, "filter", ALL)
    return bound if isinstance(bound, Filter) else ALL


def searched_by(role: object) -> object:
    """Return the retriever inside a Search; return any other object unchanged."""
    return getattr(role, "searched", role)
