"""The contracts of the roles. Any object that has the methods of a contract can play its role; no base class is needed.

Every method is synchronous. An object may also have an asynchronous version of a method, with a leading `a` in the name
(`aplan`, `aretrieve`, `aextract`, `aanswer`, `anext_sentence`, `arewrite`, `ascores`). If it has none, `ainvoke` runs
the synchronous method in a worker thread. Methods may be called from several threads at once. See ras_agent.calling for
how roles are called, and ras_agent.testing for checks of the contracts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ras_agent.graph_batch import GraphBatch
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import (
    Answer,
    Exchange,
    Extraction,
    Failure,
    Hit,
    Passage,
    Plan,
    Span,
    Step,
    Verdict,
)

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class Planner(Protocol):
    """Role that decides which search the question still needs."""

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. `steps` is empty at the first call, and `graph` then holds no facts."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Role that finds passages."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits, the best first; hits of equal score keep the order of the corpus. Raises ValueError
        for a blank query or k < 1."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Model that reads the query and a passage's text together, and ranks the passages of a retriever again."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text, in the order of `texts`. A higher score means that the text fits the query
        better."""
        ...


@runtime_checkable
class Linker(Protocol):
    """Role that finds the entities of a knowledge graph at which the search for a question begins."""

    def links(self, question: str) -> Mapping[str, float]:
        """Return the names of the entities that the question is about, each with a weight above 0; {} if there are
        none.

        A name that is not in the graph is matched by its vector if the graph has vectors; otherwise it is ignored.
        """
        ...


@runtime_checkable
class LinkerOfGraph(Linker, Protocol):
    """Linker that looks at the graph, such as one that enters it by its facts."""

    def over(self, graph: Any, embedder: Any) -> Linker:
        """Return the linker of a graph, a KGIndex. embedder: of its vectors; None for a graph without vectors."""
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores that one call of a Scorer returns."""

    values: npt.NDArray[np.float32]
    """(n,) float32; higher is better. Comparable among the texts of one call, and among calls for the same question
    unless the scorer judges a text also by the other texts of its call."""
    failures: tuple[Failure, ...] = ()
    """the failures of the call; a text that could not be judged gets the lowest score"""


@runtime_checkable
class Scorer(Protocol):
    """Model that scores facts and paths of a graph, each written as a text."""

    @property
    def name(self) -> str: ...

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return one value for each text, in the order of `texts`. The same texts get the same values."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Role that reads facts in passages."""

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return triples. Each has one Source with passage_id, start, end and extractor; the graph's nodes add hop and
        subquery."""
        ...


@runtime_checkable
class Answerer(Protocol):
    """Role that answers from the question's graph, the passages that its facts came from, and the hops that found
    them."""

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return an answer that cites only `passages`, which are in the order of retrieval, and facts of `graph`.

        `steps` are the hops in order, each with its sub-query and its findings; () if there was no search.
        """
        ...


@runtime_checkable
class Reasoner(Protocol):
    """Role that writes IRCoT's chain of thought, one sentence per call."""

    def next_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the next sentence. A sentence that contains "answer is" ends the loop."""
        ...


@runtime_checkable
class Rewriter(Protocol):
    """Role that rewrites a follow-up question of a conversation so that it can be understood without the
    conversation."""

    def rewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the question in words that need no earlier turn, or unchanged if it can be understood as given.
        `exchanges` are the earlier turns."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Model that turns text into vectors."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimension), float32."""
        ...


@runtime_checkable
class SpanReader(Protocol):
    """Model that finds the spans of texts that answer a question."""

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """Return the likeliest spans of each text, the best first; an empty list for a text without words."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Model that tells whether texts affirm or deny a yes-or-no question."""

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[Verdict]:
        """Return one verdict for each text, in the order of `texts`."""
        ...


@runtime_checkable
class GraphEncoder(Protocol):
    """Network that turns a batch of graphs into vectors of their nodes."""

    @property
    def width(self) -> int: ...

    def __call__(self, batch: GraphBatch) -> Tensor:
        """Return the states of the nodes, shape (N, width). The states of one graph do not depend on the other graphs
        in the batch."""
        ...
