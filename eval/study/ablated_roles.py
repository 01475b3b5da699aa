"""Roles that leave their work undone, for ablations (RAS, Table 2) at inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ras_agent.protocols import Answerer
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Extraction, Passage, Plan, Source, Step, Triple
from ras_agent.text.sentences import sentence_spans

__all__ = ["NeverRetrieves", "ReadsNothing", "SentencesAsFacts", "TakesGraphTokens"]


class NeverRetrieves:
    """A planner that answers every question from what the answerer knows by itself."""

    name = "none"

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """[NO_RETRIEVAL]."""
        return Plan("no_retrieval")


class ReadsNothing:
    """Finds no facts in any passage."""

    name = "none"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return no facts."""
        return Extraction()


class SentencesAsFacts:
    """An extractor that keeps the text as it is: each sentence a fact of its passage.

    So the loop is the same, and planner and answerer see the retrieved text where the graph's triples would stand.
    """

    name = "none"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """(title or passage id | text | sentence), with the sentence's place."""
        return Extraction(
            tuple(
                Triple(
                    passage.title or passage.id,
                    "text",
                    passage.text[start:end],
                    (Source(passage.id, start, end, extractor=self.name),),
                )
                for passage in passages
                for start, end in sentence_spans(passage.text)
            )
        )


@runtime_checkable
class TakesGraphTokens(Protocol):
    """An answerer that puts an encoding of the graph in front of its text, and can do without."""

    def without_graph_tokens(self) -> Answerer:
        """The same answerer, which reads the graph as text alone."""
        ...
