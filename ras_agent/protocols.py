"""The contracts of the roles. Any object that fits one plugs in; no base class is needed.

Every method is synchronous. An object may add its asynchronous twin, named with a leading `a` (`aplan`, `aretrieve`,
`aextract`, `aanswer`, `anext_sentence`); without one, `ainvoke` runs the synchronous method in a worker thread.
Methods may be called from several threads at once. See ras_agent.calling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Extraction, Hit, Passage, Plan, Span, Step

__all__ = ["Answerer", "Embedder", "Extractor", "Planner", "Reasoner", "Retriever", "SpanReader"]


@runtime_checkable
class Planner(Protocol):
    """Decides what the question still needs."""

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """The next action. `steps` is empty at the first call, and `graph` then holds no facts."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Finds passages."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` hits, best first, ties in corpus order. Raises ValueError for a blank query or k < 1."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Reads triples out of passages."""

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Triples carry one Source each with passage_id, start, end and extractor; hop and subquery are set later."""
        ...


@runtime_checkable
class Answerer(Protocol):
    """Answers from the question's graph and the passages it came from."""

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        """Citations name passages given and triples in the graph. `passages` are in the order of retrieval."""
        ...


@runtime_checkable
class Reasoner(Protocol):
    """Writes IRCoT's chain of thought, one sentence a call."""

    def next_sentence(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> str:
        """The next sentence; one that holds "answer is" ends the loop."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimension), float32."""
        ...


@runtime_checkable
class SpanReader(Protocol):
    """Points at answers inside texts."""

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """One list for each text, its likeliest spans, best first; empty for a text without words."""
        ...
