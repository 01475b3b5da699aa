"""The contracts of the roles. Any object that fits one can play the role; no base class is needed.

Every method is synchronous. An object may have an asynchronous version of it too, named with a leading `a` (`aplan`,
`aretrieve`, `aextract`, `aanswer`, `anext_sentence`, `arewrite`, `ascores`); without one, `ainvoke` runs the
synchronous method in a worker thread. Methods may be called from several threads at once. See ras_agent.calling;
ras_agent.testing checks contracts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

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
        """Return at most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Model that reads a query and texts together, and ranks what a retriever has found again."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one number for each text, in their order: the higher, the better the text fits the query."""
        ...


@runtime_checkable
class Linker(Protocol):
    """Finds where a knowledge graph is entered for a question."""

    def links(self, question: str) -> Mapping[str, float]:
        """Return the names of entities that the question is about, each with a weight above 0; {} for none.

        A name that the graph does not have is looked for by its vector, if the graph has vectors, and else left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one call.

    values: (n,) float32, higher is better; comparable among the texts of one call, and among calls for one question
        unless the scorer judges a text also by the others of its call.
    failures: of the call; texts that could not be judged score lowest.
    """

    values: npt.NDArray[np.float32]
    failures: tuple[Failure, ...] = ()


@runtime_checkable
class Scorer(Protocol):
    """Judge of facts and paths of a graph, each written as a text."""

    @property
    def name(self) -> str: ...

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return one value per text, in their order. The same texts get the same values."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Role that reads facts in passages."""

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return triples, each with one Source of passage_id, start, end and extractor; nodes set hop and subquery."""
        ...


@runtime_checkable
class Answerer(Protocol):
    """Role that answers from the question's graph, the passages it came from, and the hops that found them."""

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return an answer that cites only `passages`, which are in the order of retrieval, and facts of `graph`.

        `steps` are the hops in order: each sub-query with its findings; () if nothing was searched for.
        """
        ...


@runtime_checkable
class Reasoner(Protocol):
    """Role that writes IRCoT's chain of thought, one sentence per call."""

    def next_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the next sentence; one that holds "answer is" ends the loop."""
        ...


@runtime_checkable
class Rewriter(Protocol):
    """Role that makes a follow-up question of a conversation understandable by itself."""

    def rewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the question in words that need no earlier turn, or unchanged. `exchanges` are the earlier turns."""
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
    """Model that finds spans of texts that answer a question."""

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """Return for each text its likeliest spans, best first; an empty list for a text without words."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Model that tells whether texts affirm a question of yes or no, or deny it."""

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[Verdict]:
        """Return one verdict for each text, in their order."""
        ...


@runtime_checkable
class GraphEncoder(Protocol):
    """Network that turns a batch of graphs into states of their nodes."""

    @property
    def width(self) -> int: ...

    def __call__(self, batch: GraphBatch) -> Tensor:
        """Return the nodes' states, shape (N, width). Those of one graph do not depend on the others in the batch."""
        ...
