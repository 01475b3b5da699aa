"""The conformance suites find faults: an object that breaks one promise is refused with that promise's name."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Span,
    Triple,
)
from ras_agent.testing import (
    ConformanceError,
    check_answerer,
    check_embedder,
    check_environment,
    check_extractor,
    check_graph_encoder,
    check_planner,
    check_reasoner,
    check_reranker,
    check_retriever,
    check_rewriter,
    check_span_reader,
)
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.roles import (
    resolve_answerer,
    resolve_extractor,
    resolve_planner,
    resolve_reasoner,
    resolve_rewriter,
)
from tests.messages import says


class Wrapped:
    """A retriever around BM25 whose hits a test spoils."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.inner = BM25Retriever.from_passages(passages)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return self.spoiled(self.inner.retrieve(query, k))

    def spoiled(self, hits: list[Hit]) -> list[Hit]:
        return hits


def test_a_sound_retriever_passes() -> None:
    check_retriever(Wrapped)


@pytest.mark.parametrize(
    ("spoiled", "promise"),
    [
        (lambda hits: hits[::-1], "gives finite scores that descend"),
        (lambda hits: hits + hits[:1], "returns at most k hits and no passage twice"),
        (
            lambda hits: [replace(hit, score=int(hit.score)) for hit in hits],
            "gives finite scores that descend",
        ),
        (
            lambda hits: [
                replace(hit, passage=replace(hit.passage, text="")) for hit in hits
            ],
            "finds the best passage",
        ),
        (lambda hits: [], "finds the best passage first and whole"),
    ],
)
def test_a_broken_promise_of_a_retriever_is_named(spoiled: Any, promise: str) -> None:
    class Spoiled(Wrapped):
        def spoiled(self, hits: list[Hit]) -> list[Hit]:
            found: list[Hit] = spoiled(hits)
            return found

    with pytest.raises(ConformanceError, match=promise):
        check_retriever(Spoiled)


def test_a_retriever_that_has_ties_in_another_order_is_refused() -> None:
    class Reversed(Wrapped):
        def __init__(self, passages: Sequence[Passage]) -> None:
            super().__init__(passages[::-1])

    with pytest.raises(
        ConformanceError, match="keeps the order of the corpus where scores tie"
    ):
        check_retriever(Reversed)


def test_a_retriever_that_takes_blank_queries_and_zero_hits_is_refused() -> None:
    class Lenient(Wrapped):
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            return super().retrieve(query, k) if query.strip() and k > 0 else []

    with pytest.raises(ConformanceError, match="refuses a blank query") as raised:
        check_retriever(Lenient)
    assert "refuses to find fewer than one hit" in str(raised.value)
    assert "breaks 2 of 14 promises" in str(raised.value)


def test_a_retriever_that_filters_what_it_chose_is_refused() -> None:
    class TooLate(Wrapped):
        def retrieve(self, query: str, k: int = 5, filter: Filter = ALL) -> list[Hit]:
            return [
                hit for hit in super().retrieve(query, k) if filter.matches(hit.passage)
            ]

    class Careless(Wrapped):
        def retrieve(self, query: str, k: int = 5, filter: Filter = ALL) -> list[Hit]:
            return super().retrieve(query, k)

    with pytest.raises(
        ConformanceError,
        match=says("applies a filter before it chooses the best", "admits 1"),
    ):
        check_retriever(TooLate)
    with pytest.raises(
        ConformanceError,
        match=says("applies a filter before it chooses the best", "leaves out"),
    ):
        check_retriever(Careless)


def test_what_is_no_retriever_is_refused() -> None:
    with pytest.raises(
        ConformanceError, match=r"lacks methods of ras_agent\.protocols\.Retriever"
    ):
        check_retriever(lambda passages: object())  # type: ignore[arg-type,return-value]


class Around:
    """A role whose methods a test replaces."""

    def __init__(self, role: Any, **methods: Any) -> None:
        self._role = role
        for name, method in methods.items():
            setattr(self, name, method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._role, name)


def test_an_extractor_that_invents_passages_or_places_is_refused() -> None:
    offline = resolve_extractor("offline")

    def elsewhere(passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return Extraction(
            (Triple("a", "b", "c", (Source("nowhere", 0, 1, extractor="x"),)),), ()
        )

    def beyond(passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return Extraction(
            tuple(
                Triple("a", "b", "c", (Source(p.id, 0, 9999, extractor="x"),))
                for p in passages
            ),
            (),
        )

    for wrong, problem in (
        (elsewhere, "which was not given"),
        (beyond, "which its passage does not have"),
    ):
        with pytest.raises(ConformanceError, match=problem):
            check_extractor(Around(offline, extract=wrong))


def test_a_planner_that_stops_before_it_began_or_asks_nothing_is_refused() -> None:
    offline = resolve_planner("offline")
    with pytest.raises(ConformanceError, match="asks before anything was found"):
        check_planner(Around(offline, plan=lambda *_: Plan("sufficient")))
    with pytest.raises(ConformanceError, match="one line"):
        check_planner(Around(offline, plan=lambda *_: Plan("subq", "two\nlines")))


def test_a_reasoner_that_repeats_itself_is_refused() -> None:
    offline = resolve_reasoner("offline")

    def parrot(
        question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        return thoughts[-1] if thoughts else "Nothing."

    with pytest.raises(ConformanceError, match="does not repeat its last thought"):
        check_reasoner(Around(offline, next_sentence=parrot))


def test_a_rewriter_that_writes_no_question_is_refused() -> None:
    offline = resolve_rewriter("offline")
    with pytest.raises(
        ConformanceError, match="writes one question for every conversation"
    ):
        check_rewriter(Around(offline, rewrite=lambda *_: " "))


def test_an_answerer_that_always_abstains_or_invents_citations_is_refused() -> None:
    offline = resolve_answerer("offline")
    with pytest.raises(
        ConformanceError, match="answers and cites what the evidence states"
    ):
        check_answerer(
            Around(offline, answer=lambda *_: Answer("I do not know.", abstained=True))
        )

    def invented(*_: Any) -> Answer:
        return Answer("Leith", (Citation(1, "nowhere", "", 0, 0, ""),))

    with pytest.raises(ConformanceError, match="cited but not given"):
        check_answerer(Around(offline, answer=invented))


def test_an_embedder_of_long_vectors_or_of_vectors_that_know_their_neighbours_is_refused(
    hash_embedder: Any,
) -> None:
    def long(texts: Sequence[str]) -> Any:
        return 2 * hash_embedder.embed(texts)

    def swayed(texts: Sequence[str]) -> Any:
        vectors = hash_embedder.embed(texts) + np.float32(0.01) * len(texts)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(
            np.float32
        )

    with pytest.raises(ConformanceError, match="gives unit vectors"):
        check_embedder(Around(hash_embedder, embed=long))
    with pytest.raises(ConformanceError, match="in any company"):
        check_embedder(Around(hash_embedder, embed=swayed))


def test_a_span_reader_that_points_past_the_text_is_refused() -> None:
    class Reader:
        def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
            return [[Span(0, len(text) + 1, 1.0)] if text else [] for text in texts]

    with pytest.raises(
        ConformanceError, match="points inside the text best span first"
    ):
        check_span_reader(Reader())


def test_a_graph_encoder_that_mixes_its_batch_or_passes_over_edges_is_refused() -> None:
    torch = pytest.importorskip("torch")

    class Encoder:
        width = 4

        def __init__(self, mixed: float) -> None:
            self.mixed = mixed

        def __call__(self, batch: Any) -> Any:
            rows = batch.nodes[:, :4] if len(batch.nodes) else torch.zeros(0, 4)
            return rows + self.mixed * rows.sum() if len(rows) else rows

    with pytest.raises(ConformanceError, match="in any company"):
        check_graph_encoder(Encoder(0.1), 6)
    with pytest.raises(
        ConformanceError, match="breaks 1 of 5 promises:\n  is changed by an edge"
    ):
        check_graph_encoder(Encoder(0.0), 6)


def test_a_wrong_asynchronous_twin_is_found() -> None:
    class Twin(Wrapped):
        async def aretrieve(self, query: str, k: int = 5) -> list[Hit]:
            await asyncio.sleep(0)
            return []

    with pytest.raises(
        ConformanceError, match="gives asynchronous callers the same hits"
    ):
        check_retriever(Twin)


class Environment:
    """A sound environment, which a test spoils."""

    shown = ""

    def reset(self, question: str) -> str:
        self.ended, self.queries = False, 0
        return question

    def search(self, query: str) -> str:
        """Search.

        Args:
            query: What to search for.
        """
        self.queries += not self.ended
        return f"{query} {self.queries}"

    def finish(self, reason: str) -> str:
        """End.

        Args:
            reason: Why.
        """
        self.ended = True
        return ""

    def get_reward(self) -> float:
        return float(self.queries)


def test_a_sound_environment_passes() -> None:
    check_environment(Environment, {"question": "Where?"})


class Undescribed(Environment):
    def search(self, query: str) -> str:
        """Search."""
        return query


class Forgetful(Environment):
    queries = 0

    def reset(self, question: str) -> str:
        self.ended = False
        return question


class Shared(Environment):
    everybody: ClassVar[list[str]] = []

    def search(self, query: str) -> str:
        """Search.

        Args:
            query: What to search for.
        """
        self.everybody.append(query)
        return str(len(self.everybody))


class Endless(Environment):
    def finish(self, reason: str) -> str:
        """Go on.

        Args:
            reason: Why not.
        """
        return ""


class Talkative(Environment):
    def search(self, query: str) -> Any:
        """Search.

        Args:
            query: What to search for.
        """
        return [query]


@pytest.mark.parametrize(
    ("spoiled", "promise"),
    [
        (Undescribed, "offers tools with types and a description of each argument"),
        (Forgetful, "returns the same for equal calls after an equal reset"),
        (Shared, "keeps episodes of two environments apart"),
        (Endless, "changes no reward after finish"),
        (Talkative, "returns text whatever a tool is asked"),
    ],
)
def test_a_broken_promise_of_an_environment_is_named(
    spoiled: Any, promise: str
) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check_environment(spoiled, {"question": "Where?"})


def test_a_reranker_that_leaves_a_text_out_is_refused() -> None:
    class Best:
        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            return [1.0]

    with pytest.raises(ConformanceError, match="gives one finite number for each text"):
        check_reranker(Best())
