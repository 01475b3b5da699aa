"""A search binds a retriever to a filter and a commit; a retriever by name remembers its parts for them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pytest

from ras_agent.config import registry
from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.errors import FilterError, IndexMismatch, ModelCallError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve import search
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.search import (
    LiveRetriever,
    Search,
    scope_of,
    scoped,
    searched_by,
)

CORPUS = [
    Passage(
        f"p{n}",
        f"The mill number {n}.",
        metadata={"team": "x" if n % 2 else "y", "n": n},
    )
    for n in range(12)
]
X, Y = Filter.of({"team": "x"}), Filter.of({"team": "y"})


class Obeying:
    """Finds every passage that its filter admits."""

    name = "obeying"

    def retrieve(
        self, query: str, k: int = 5, filter: Filter | None = None
    ) -> list[Hit]:
        return [
            Hit(passage, 1.0)
            for passage in CORPUS
            if filter is None or filter.matches(passage)
        ][:k]


class Nameless(Obeying):
    name = ""


class Careless(Obeying):
    """Takes a filter, and forgets it."""

    def retrieve(
        self, query: str, k: int = 5, filter: Filter | None = None
    ) -> list[Hit]:
        return super().retrieve(query, k)


class Plain:
    """Takes no filter."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [Hit(CORPUS[0], 1.0)]


class Explained(Plain):
    """Says why, on request."""

    reasons = 0

    def explained(self, paths: int) -> Self:
        other = type(self)()
        other.reasons = paths
        return other

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        reasons = tuple(f"reason {n}" for n in range(self.reasons))
        return [reasons] * len(passage_ids)


class Logged:
    """A user's wrapper, which knows nothing of filters, commits and reasons."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.asked: list[str] = []

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        self.asked.append(query)
        hits: list[Hit] = self.inner.retrieve(query, k)
        return hits


class ByNumber:
    """A reranker that prefers texts with high numbers."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.read = list(texts)
        return [float(re.findall(r"\d+", text)[-1]) for text in texts]


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], LiveRetriever]:
    """live(make): the retriever registered as "mine" over CORPUS in memory, which `make` makes of an index."""
    monkeypatch.setitem(
        registry.PLUGINS, "retriever", dict(registry.PLUGINS["retriever"])
    )

    def retriever(make: Any) -> LiveRetriever:
        registry.register("retriever", "mine", make)
        return LiveRetriever("mine", PassageIndex.in_memory(CORPUS), {})

    return retriever


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


# ---- a retriever by name


def test_what_cannot_be_made_is_an_error_at_once() -> None:
    with pytest.raises(IndexMismatch, match="no vectors"):
        LiveRetriever("dense", PassageIndex.in_memory(CORPUS), {})


def test_five_hits_are_found_unless_told_otherwise(live: Any) -> None:
    retriever = LiveRetriever("bm25", PassageIndex.in_memory(CORPUS), {})
    assert (
        len(retriever.retrieve("mill"))
        == len(asyncio.run(retriever.aretrieve("mill")))
        == 5
    )
    assert (
        len(Search(retriever, X).retrieve("mill"))
        == len(asyncio.run(Search(retriever, X).aretrieve("mill")))
        == 5
    )
    assert len(retriever.retrieve("mill", 7)) == 7


def test_it_remembers_sixteen_filters_those_that_were_used_last(live: Any) -> None:
    made: list[int] = []
    retriever = live(lambda index: made.append(len(index.passages)) or Plain())
    filters = [Filter.of({"n": n}) for n in range(17)]
    for filter in filters[:15]:
        retriever.at("", filter)  # with that of all passages, sixteen
    made.clear()
    retriever.at("", filters[0])
    retriever.at("", ALL)
    assert made == []
    retriever.at("", filters[15])  # in place of filters[1], which was not used since
    retriever.at("", filters[0])
    retriever.at("", ALL)
    assert len(made) == 1
    retriever.at("", filters[1])
    assert len(made) == 2


def test_filters_that_come_once_cost_a_filter_that_comes_back_no_retriever(
    live: Any,
) -> None:
    made: list[int] = []
    retriever, fresh = (
        live(lambda index: made.append(len(index.passages)) or Plain()),
        iter(range(1000)),
    )
    for _ in range(5):
        for _ in range(20):
            retriever.at("", Filter.of([{"n": 3}, {"id": next(fresh)}]))
        commit = retriever.at("", X).commit
        retriever.at(commit, X)  # a later search of the run
    # for its first run, and for the second, with which it had come back
    assert made.count(6) == 2


def test_it_remembers_four_commits() -> None:
    index = PassageIndex.in_memory(CORPUS[:1])
    retriever = LiveRetriever("bm25", index, {})
    first = retriever.at("", ALL).commit
    for passage in CORPUS[1:4]:
        index.add([passage])
        retriever.at("", ALL)
    assert retriever.at(first, ALL).commit == first
    index.add(CORPUS[4:5])
    assert retriever.at(first, ALL).commit == index.commit != first


def test_its_hits_say_why_on_request_alone(live: Any) -> None:
    retriever = live(lambda index: Explained())
    assert retriever.retrieve("mill")[0].why == ()
    searches = [Search(retriever, reasons=2), Search(Logged(retriever), reasons=2)]
    for bound in searches:
        assert bound.retrieve("mill")[0].why == ("reason 0", "reason 1")
        (hit, *_) = asyncio.run(bound.aretrieve("mill"))
        assert hit.why == ("reason 0", "reason 1")
    assert retriever.retrieve("mill")[0].why == ()
    unable = live(lambda index: Plain())
    assert Search(unable, reasons=2).retrieve("mill")[0].why == ()


# ---- a search


def test_what_is_asked_for_is_found_within_both_filters() -> None:
    bound = Search(Obeying(), X)
    assert ids(bound.retrieve("mill", 2)) == ["p1", "p3"]
    assert ids(bound.retrieve("mill", 9, {"n": [1, 2, 3]})) == ["p1", "p3"]
    assert ids(asyncio.run(bound.aretrieve("mill", 9, {"n": [1, 2, 3]}))) == [
        "p1",
        "p3",
    ]
    assert bound.retrieve("mill", 9, {"team": "y"}) == []
    assert ids(Search(bound, Filter.of({"n": [2, 3]})).retrieve("mill")) == ["p3"]
    assert searched_by(Search(bound, Y)) is bound.retriever


def test_scoped_binds_nothing_without_a_filter() -> None:
    retriever = Obeying()
    assert scoped(retriever, None) is retriever
    bound = scoped(retriever, {"team": "x"})
    assert (scope_of(bound), scope_of(retriever)) == (X, ALL)


def test_a_retriever_that_takes_no_filter_is_refused() -> None:
    assert ids(Search(Plain()).retrieve("mill")) == ["p0"]
    refusal = r"retriever 'Plain' cannot apply a filter \(team = x\)"
    with pytest.raises(FilterError, match=refusal):
        Search(Plain(), X).retrieve("mill")
    with pytest.raises(FilterError, match=refusal):
        Search(Plain()).retrieve("mill", 5, {"team": "x"})


@pytest.mark.parametrize(
    ("retriever", "name"), [(Obeying(), "obeying"), (Nameless(), "Nameless")]
)
def test_a_search_goes_by_the_retrievers_name(retriever: Any, name: str) -> None:
    assert Search(retriever).name == name


def test_a_passage_that_the_filter_leaves_out_is_an_error_that_does_not_name_it() -> (
    None
):
    with pytest.raises(
        FilterError, match=r"retriever 'obeying' returned a passage .* \(team = x\)"
    ) as error:
        Search(Careless(), X).retrieve("mill")
    assert "p0" not in str(error.value)
    assert ids(Search(Careless()).retrieve("mill", 2)) == ["p0", "p1"]


def test_a_written_out_path_is_admitted_if_all_of_its_passages_are(live: Any) -> None:
    def path(*places: str) -> Passage:
        return Passage(
            "path",
            "A is B.",
            metadata={"facts": [["A", "is", "B", place] for place in places]},
        )

    class Paths(Plain):
        def __init__(self, passage: Passage) -> None:
            self.passage = passage

        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            return [Hit(self.passage, 1.0)]

    assert ids(
        live(lambda index: Paths(path("p1", "p3"))).retrieve("mill", 5, {"team": "x"})
    ) == ["path"]
    for passage in (path("p1", "p2"), path("p2"), Passage("path", "A is B.")):
        retriever = live(lambda index, passage=passage: Paths(passage))
        with pytest.raises(FilterError, match="retriever 'mine' returned a passage"):
            retriever.retrieve("mill", 5, {"team": "x"})


def test_a_search_says_which_commit_it_saw_and_another_sees_it_again() -> None:
    index = PassageIndex.in_memory(CORPUS[:1])
    retriever = LiveRetriever("bm25", index, {})
    bound = Search(retriever)
    assert (bound.commit, ids(bound.retrieve("mill"))) == ("", ["p0"])
    before = bound.commit
    index.add(CORPUS[1:2])
    assert ids(bound.retrieve("mill")) == ["p0", "p1"]
    assert bound.commit == index.commit != before
    assert ids(Search(retriever, ALL, before).retrieve("mill")) == ["p0"]
    assert ids(Search(retriever, ALL, before).retrieve("mill", 5, {"team": "y"})) == [
        "p0"
    ]


def test_a_wrapper_of_a_named_retriever_loses_neither_filter_nor_commit(
    hash_embedder: Any,
) -> None:
    index = PassageIndex.in_memory(CORPUS, hash_embedder)
    for name in ("bm25", "dense", "hybrid"):
        wrapped = Logged(LiveRetriever(name, index, {}))
        search = Search(Logged(wrapped), X)
        hits = search.retrieve("mill number", 9, {"n": [1, 2, 3]})
        assert sorted(ids(hits)) == ["p1", "p3"]
        found = asyncio.run(search.aretrieve("mill number", 9, {"n": [1, 2, 3]}))
        assert found == hits
        assert wrapped.asked == ["mill number", "mill number"]
    before = search.commit
    assert before == index.commit
    index.add([Passage("p13", "The mill number 13.", metadata={"team": "x", "n": 13})])
    later = Search(wrapped, Filter.of({"n": 13}), before)
    assert later.retrieve("mill number") == []
    assert ids(Search(wrapped, Filter.of({"n": 13})).retrieve("mill number")) == ["p13"]


def test_a_wrapper_of_rows_ranked_by_hand_loses_no_filter() -> None:
    wrapped = Logged(BM25Retriever.from_passages(CORPUS))
    assert ids(Search(wrapped, Filter.of({"n": [3, 4]})).retrieve("mill")) == [
        "p3",
        "p4",
    ]


def test_a_wrapper_that_searches_in_threads_of_its_own_is_refused_a_filter() -> None:
    inner = LiveRetriever("bm25", PassageIndex.in_memory(CORPUS), {})

    class Threaded:
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(inner.retrieve, query, k).result()

    assert len(Search(Threaded()).retrieve("mill")) == 5
    with pytest.raises(FilterError, match="'Threaded' cannot apply a filter"):
        Search(Threaded(), X).retrieve("mill")


# ---- a reranker


def test_a_reranker_ranks_the_candidates_within_the_filter_again() -> None:
    index = PassageIndex.in_memory(CORPUS)
    inner = LiveRetriever("bm25", index, {})
    for retriever in (inner, Logged(inner)):
        reranker = ByNumber()
        search = Search(retriever, X, reranker=reranker, candidates=4)
        hits = search.retrieve("mill number", 2)
        assert [(hit.passage.id, hit.score) for hit in hits] == [("p7", 7), ("p5", 5)]
        assert ids(asyncio.run(search.aretrieve("mill number", 2))) == ["p7", "p5"]
        assert reranker.read == [f"The mill number {n}." for n in (1, 3, 5, 7)]
        # as many as are asked for at least
        assert len(search.retrieve("mill number", 6)) == 6


def test_the_last_stage_of_a_mix_comes_after_the_reranker(hash_embedder: Any) -> None:
    passages = [
        Passage("bell", "Alexander Graham Bell was born in Edinburgh. 9", "Bell"),
        Passage("again", "Bell was born in Edinburgh, they say again. 8", "Bell again"),
        Passage("leith", "A river flows through it. 7", "Edinburgh"),
    ]
    index = PassageIndex.in_memory(passages, hash_embedder)
    query = "Which river flows through the city where Bell was born?"
    for name, expected in (
        ("bm25+dense", ["bell", "leith", "again"]),
        ("bm25", ["bell", "again", "leith"]),
    ):
        search = Search(LiveRetriever(name, index, {}), reranker=ByNumber())
        assert ids(search.retrieve(query, 3)) == expected


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([1.0], "1 scores for 5 texts"),
        ([float("nan")] * 5, "NaN or infinite"),
        (ModelCallError("gone: start it"), "gone: start it"),
    ],
)
def test_where_a_reranker_fails_the_hits_stay_and_the_failure_says_why(
    scores: Any, reason: str
) -> None:
    class Failing:
        name = "mine"

        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            if isinstance(scores, Exception):
                raise scores
            return list(scores)

    retriever = LiveRetriever("bm25", PassageIndex.in_memory(CORPUS), {})
    ledger = Ledger(role="retriever")
    search = Search(retriever, reranker=Failing(), candidates=5)
    with metered(ledger):
        found = search.find("mill number", 3)
    assert list(found.hits) == retriever.retrieve("mill number", 3)
    (failure,) = found.failures
    assert (failure.role, ledger.notes) == ("reranker", [failure])
    assert failure.message.startswith("reranker mine failed, and the hits stay")
    assert reason in failure.message


def test_what_fails_to_be_made_is_tried_again() -> None:
    lazy = search._Lazy[str]()
    with pytest.raises(OSError, match="away"):
        lazy.get(lambda: (_ for _ in ()).throw(OSError("away")))
    assert lazy.get(lambda: "made") == "made"
    assert lazy.get(lambda: "again") == "made"
