"""Checks the contract of retrievers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import isfinite

from ras_agent.config.filters import Filter, takes_filter
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.protocols import Retriever
from ras_agent.testing.conformance import (
    Suite,
    demand,
    is_named,
    refuses,
    same_asynchronously,
)

BuildRetriever = Callable[[Sequence[Passage]], Retriever]

PASSAGES = (
    Passage(
        "edinburgh",
        "Edinburgh is the capital of Scotland. The Water of Leith flows through it.",
        "Edinburgh",
    ),
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh and patented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "telephone",
        "The telephone carries the human voice over a distance.",
        "Telephone",
    ),
    Passage("tokyo", "東京は日本の首都です。隅田川が流れています。", "東京"),
    Passage("delhi", "नई दिल्ली भारत की राजधानी है।", "दिल्ली"),
    Passage("athens", "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας.", "Αθήνα"),
)
_suite = Suite("the retriever")


def check_retriever(build: BuildRetriever, *, corpus_order: bool = True) -> None:
    """Check that a retriever keeps its contract. Raises ConformanceError, which lists the promises that it breaks.

    Args:
        build: Makes the retriever from a corpus; it is called with several corpora, one of them empty.
        corpus_order: Whether hits of equal score have to keep the order of the corpus, which a vector store behind
            another library cannot do.
    """
    in_order = keeps_the_order_of_the_corpus_where_scores_tie
    _suite.run(build, None if corpus_order else in_order)


def _ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


@_suite.promise
def fits_the_protocol(build: BuildRetriever) -> None:
    is_named(build(PASSAGES), Retriever)


@_suite.promise
def finds_the_best_passage_first_and_whole(build: BuildRetriever) -> None:
    best = build(PASSAGES).retrieve("capital of Scotland Edinburgh", 3)
    demand(
        best and best[0].passage.id == "edinburgh",
        f"the capital of Scotland is in 'edinburgh', not {_ids(best)}",
    )
    hits = build(PASSAGES[1:2]).retrieve("telephone patented by Bell", 1)
    demand(len(hits) == 1, f"one passage was to be found, got {_ids(hits)}")
    passage = hits[0].passage
    demand(
        (passage.text, passage.title) == (PASSAGES[1].text, PASSAGES[1].title),
        f"the passage changed: {passage}",
    )


@_suite.promise
def returns_at_most_k_hits_and_no_passage_twice(build: BuildRetriever) -> None:
    for k in (1, 2, 100):
        ids = _ids(build(PASSAGES).retrieve("the telephone of Edinburgh", k))
        demand(1 <= len(ids) <= min(k, len(PASSAGES)), f"k = {k} gave {len(ids)} hits")
        demand(len(set(ids)) == len(ids), f"a passage came twice: {ids}")


@_suite.promise
def gives_finite_scores_that_descend(build: BuildRetriever) -> None:
    scores = [
        hit.score for hit in build(PASSAGES).retrieve("the telephone of Edinburgh", 6)
    ]
    demand(
        all(type(score) is float for score in scores),
        f"scores are Python floats, got {scores}",
    )
    demand(all(map(isfinite, scores)), f"scores are finite, got {scores}")
    demand(scores == sorted(scores, reverse=True), f"scores descend, got {scores}")


@_suite.promise
def keeps_the_order_of_the_corpus_where_scores_tie(build: BuildRetriever) -> None:
    twins = [
        Passage(f"twin-{number}", "A river flows through the city.")
        for number in range(9)
    ]
    ids = _ids(build([*twins[:4], PASSAGES[2], *twins[4:]]).retrieve("river city", 6))
    # a retriever may return copies only once
    found = [name for name in ids if name.startswith("twin-")]
    expected = [f"twin-{number}" for number in range(6)]
    in_order = found == expected[: len(found)]
    demand(
        bool(found) and in_order,
        f"six of nine equal passages came as {ids}, not as {expected}",
    )


@_suite.promise
def refuses_a_blank_query(build: BuildRetriever) -> None:
    retriever = build(PASSAGES)
    for query in ("", " ", "\t\n", "\u3000"):
        refuses(
            partial(retriever.retrieve, query, 5),
            ValueError,
            f"no ValueError for {query!r}",
        )


@_suite.promise
def refuses_to_find_fewer_than_one_hit(build: BuildRetriever) -> None:
    retriever = build(PASSAGES)
    for k in (0, -1):
        refuses(
            partial(retriever.retrieve, "telephone", k),
            ValueError,
            f"no ValueError for k = {k}",
        )


@_suite.promise
def finds_nothing_in_an_empty_corpus(build: BuildRetriever) -> None:
    hits = build([]).retrieve("telephone", 5)
    demand(hits == [], f"an empty corpus gave {hits!r:.200}")


@_suite.promise
def finds_any_script_and_returns_it_unchanged(build: BuildRetriever) -> None:
    retriever = build(PASSAGES)
    for passage in PASSAGES[3:]:
        best = retriever.retrieve(passage.text, 1)
        demand(
            _ids(best) == [passage.id],
            f"the text of {passage.id!r} as a query found {_ids(best)}",
        )
        demand(
            best[0].passage.text == passage.text, f"the text of {passage.id!r} changed"
        )


@_suite.promise
def takes_odd_queries(build: BuildRetriever) -> None:
    retriever = build(PASSAGES)
    for query in ("?!…", "🦉", "\ud800", "a" * 5000, "the of and"):
        demand(
            len(retriever.retrieve(query, 5)) <= 5,
            f"more than 5 hits for {query!r:.20}",
        )


@_suite.promise
def gives_the_same_hits_again(build: BuildRetriever) -> None:
    retriever = build(PASSAGES)
    first, second = (
        _ids(retriever.retrieve("telephone inventor", 4)) for _ in range(2)
    )
    demand(first == second, f"first {first}, then {second}")


@_suite.promise
def gives_threads_what_one_caller_gets(build: BuildRetriever) -> None:
    queries = ["telephone", "Edinburgh capital", "human voice", "Leith water flows"] * 8
    retriever = build(PASSAGES)
    alone = [_ids(retriever.retrieve(query, 3)) for query in queries]
    # a new retriever, so that no query is cached when the simultaneous queries come
    fresh = build(PASSAGES)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda query: _ids(fresh.retrieve(query, 3)), queries))
    demand(together == alone, "simultaneous queries found other passages")


@_suite.promise
def gives_asynchronous_callers_the_same_hits(build: BuildRetriever) -> None:
    same_asynchronously(build(PASSAGES), "retrieve", "telephone inventor", 3)


@_suite.promise
def applies_a_filter_before_it_chooses_the_best(build: BuildRetriever) -> None:
    """Raise AssertionError unless a filter is applied before the best k are chosen.

    A retriever without the parameter `filter` passes, because an agent refuses to use it with a filter.
    """
    ours = [
        Passage(
            "ours-1",
            "A river flows through the city.",
            metadata={"team": "us", "day": "2024-02-01"},
        ),
        Passage(
            "ours-2",
            "A river flows through the city, as they say.",
            metadata={"team": "us", "day": "2024-03-01"},
        ),
    ]
    theirs = [
        Passage(
            f"theirs-{number}",
            "A river flows through the city.",
            "The river",
            metadata={"team": "them", "day": "2019-12-31"},
        )
        for number in range(30)
    ]
    corpus = [*theirs[:20], *ours, *theirs[20:], PASSAGES[2]]
    retriever = build(corpus)
    if not takes_filter(retriever):
        return
    before = _ids(retriever.retrieve("river city", 5))
    for filter, k, expected in (
        ({"team": "us"}, 1, 1),
        ({"team": "us"}, 5, 2),
        ({"team": ["us", "you"], "id": "ours-*"}, 5, 2),
        ({"id": "ours-2"}, 5, 1),
        ({"team": "nobody"}, 5, 0),
        ({"day": {"after": "2023"}}, 5, 2),
        ({"day": {"after": 2023, "before": "2024-02-02"}}, 1, 1),
        ({"team": {"not": "them"}, "day": {"exists": True}}, 5, 2),
    ):
        admitted = {
            passage.id for passage in corpus if Filter.of(filter).matches(passage)
        }
        bound = partial(retriever.retrieve, filter=Filter.of(filter))  # type: ignore[call-arg]
        hits = bound("river city", k)
        others = [
            name
            for hit in hits
            for name in _stating(hit.passage)
            if name not in admitted
        ]
        demand(not others, f"the filter {filter} leaves out {others}, which were found")
        admitted_ids = [name for name in _ids(hits) if name in admitted]
        demand(
            len(admitted_ids) == expected,
            f"the filter {filter} with k = {k} admits {expected}, and {_ids(hits)} were found",
        )
    after = _ids(retriever.retrieve("river city", 5))
    demand(
        after == before,
        f"without a filter {before} were found, and after searches within one {after}",
    )


def _stating(passage: Passage) -> list[str]:
    """Return the passage's id. For a passage written from a graph, return the ids of the passages that state
    its facts.
    """
    facts = passage.metadata.get("facts")
    return [str(place) for *_, place in facts] if facts else [passage.id]


RETRIEVER_CHECKS = tuple(_suite.checks)
