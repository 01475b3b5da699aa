"""Defines the protocols of the roles. Any object with a protocol's methods can play the role; no base class is
needed.

Every method is synchronous. An object may also have an asynchronous version of a method, with a leading `a` in
the name (`aplan`, `aretrieve`, `aextract`, `aanswer`, `anext_sentence`, `arewrite`, `ascores`). Without it,
`ainvoke` runs the synchronous method in a worker thread. Methods may be called from several threads at once.
See ras_agent.running.calling for how roles are called, and ras_agent.testing for checks of the protocols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.graph_batch import GraphBatch
from ras_agent.contracts.records import (
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
from ras_agent.question_graph import QuestionGraph

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class Planner(Protocol):
    """Decides which search comes next, or that no more searches are needed."""

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action.

        Args:
            question: The question to answer.
            graph: The facts found so far; it is empty at the first call.
            steps: The hops so far, in order; empty at the first call.
        """
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds the passages that fit a query."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits, the best first; hits of equal score keep the order of the corpus.

        Raises ValueError for a blank query or k < 1.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores passages against a query by reading both texts together, to rank a retriever's hits again."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one score for each text, in the order of `texts`; a higher score means a better fit to the query."""
        ...


@runtime_checkable
class Linker(Protocol):
    """Finds the entities of a knowledge graph from which the search for a question starts."""

    def links(self, question: str) -> Mapping[str, float]:
        """Return the names of the entities that the question is about, each with a weight above 0; {} if it names no
        entity.

        A name that is not in the graph is matched by its vector if the graph has vectors; otherwise it is ignored.
        """
        ...


@runtime_checkable
class LinkerOfGraph(Linker, Protocol):
    """Links questions like a Linker, but has to look at the graph first, for example to match a question with
    its facts.
    """

    def over(self, graph: Any, embedder: Any) -> Linker:
        """Return a linker for one graph.

        Args:
            graph: The graph, a `ras_agent.tools.kg.index.KGIndex`.
            embedder: The embedder of the graph's vectors; None for a graph without vectors.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """Holds the scores that one call of a Scorer returns."""

    values: npt.NDArray[np.float32]
    """(n,) float32; higher is better. Values of one call can be compared. So can values of several calls for
    the same question, unless the scorer judges a text also by the other texts of its call."""
    failures: tuple[Failure, ...] = ()
    """the failures of the call; a text that could not be judged gets the lowest score"""


@runtime_checkable
class Scorer(Protocol):
    """Scores facts and paths of a knowledge graph, each written as a text, by their relevance to a question."""

    @property
    def name(self) -> str:
        """Return the name that reports show, such as that of the model."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return one value for each text, in the order of `texts`. The same texts get the same values."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Reads facts in passages."""

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts that the passages state, as triples.

        Each triple has one Source, with passage_id, start, end and extractor; the agent's nodes add hop and subquery.

        Args:
            passages: The passages to read.
            subquery: The sub-query that found them, which may guide the reading.
        """
        ...


@runtime_checkable
class Answerer(Protocol):
    """Writes the answer to a question from its graph and the passages that were found."""

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return an answer that cites only `passages` and facts of `graph`.

        Args:
            question: The question to answer.
            graph: The facts found in the run.
            passages: The passages found in the run, in the order of retrieval.
            steps: The hops in order, each with its sub-query and its findings; () if there was no search.
        """
        ...


@runtime_checkable
class Reasoner(Protocol):
    """Writes IRCoT's chain of thought, one sentence per call."""

    def next_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the next sentence. A sentence that contains "answer is" ends the loop.

        Args:
            question: The question to answer.
            passages: The passages found so far.
            thoughts: The sentences so far.
        """
        ...


@runtime_checkable
class Rewriter(Protocol):
    """Rewrites a follow-up question of a conversation so that it can be understood without the conversation."""

    def rewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the question in words that need no earlier turn; unchanged if it already needs none.

        `exchanges` are the earlier turns, in order.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Return the name that an index stores, so that the index is searched only with the same embedder."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of the vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimension), float32."""
        ...


@runtime_checkable
class SpanReader(Protocol):
    """Finds the spans of texts that answer a question."""

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """Return the most likely spans of each text, the best first; an empty list for a text without words."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Tells whether texts affirm or deny a yes-or-no question."""

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[Verdict]:
        """Return one verdict for each text, in the order of `texts`."""
        ...


@runtime_checkable
class GraphEncoder(Protocol):
    """Turns a batch of graphs into vectors of their nodes."""

    @property
    def width(self) -> int:
        """Return the length of the vectors."""
        ...

    def __call__(self, batch: GraphBatch) -> Tensor:
        """Return the states of the nodes, shape (N, width). The states of one graph do not depend on the other graphs
        in the batch."""
        ...
