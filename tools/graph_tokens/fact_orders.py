"""Sorts a question graph's facts, the most useful first, for roles that are shown only the first ones.

use              facts about names of the question, and facts near them (ras_agent.question_graph.usefulness)
likeness         cosine of the fact and the question
aligner:FOLDER   a trained aligner (Align-GRAG): the facts of the best nodes first
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import Step
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import facts_by_use
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import query_vector, resolve_embedder
from ras_agent.tools.graph_tokens.features import Fact, GraphVectors
from ras_agent.tools.index.ties import best_places

FactOrder = Callable[[str, QuestionGraph, Sequence[str]], list[str]]
"""Returns the ids of all facts of a graph, best first, given a question and its sub-queries so far."""


class FactPruner:
    """Selects the best facts of a question's graph for planner and answerer (Align-GRAG's pruning).

    The run's own graph is not changed, so its state, its trace and later hops keep all facts.
    """

    def __init__(self, order: FactOrder, size: int) -> None:
        """Take the order of facts, and the number of facts to show."""
        self._order = order
        self._size = size

    def prune(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> QuestionGraph:
        """Return the graph with only the best facts visible, and facts that contradict one of them."""
        if len(graph) <= self._size:
            return graph
        return graph.showing(
            self._order(question, graph, [step.subquery for step in steps])[
                : self._size
            ]
        )


_ORDERS = ("use", "likeness", "aligner:FOLDER")


def fact_order(spec: str, embedder: Embedder | None = None) -> FactOrder:
    """Return the order of facts with a name, "use", "likeness" or "aligner:FOLDER".

    Raises UnknownName, and for an aligner WeightsError or MissingExtra.

    Args:
        embedder: embeds facts and questions; by default the packaged MiniLM.
    """
    name, _, folder = spec.partition(":")
    if name == "use" and not folder:
        return _by_use
    if name == "likeness" and not folder:
        return _by_likeness(GraphVectors(embedder or resolve_embedder("minilm")))
    if name == "aligner" and folder:
        return _by_aligner(folder, embedder)
    raise UnknownName("order of facts", spec, _ORDERS)


def _by_use(
    question: str, graph: QuestionGraph, subqueries: Sequence[str]
) -> list[str]:
    facts = facts_by_use(graph, (question, *subqueries))
    return [fact.id for fact in facts]


def _by_likeness(vectors: GraphVectors) -> FactOrder:
    def order(
        question: str, graph: QuestionGraph, subqueries: Sequence[str]
    ) -> list[str]:
        names, facts = _facts(graph)
        texts = list(map(" ".join, facts))
        scores = vectors.of_texts(texts) @ query_vector(vectors.embedder, question)
        return [
            names[place]
            for place in best_places(np.asarray(scores), len(names), relative=False)
        ]

    return order


def _by_aligner(folder: str, embedder: Embedder | None) -> FactOrder:
    from ras_agent.tools.graph_tokens.aligner import GraphAligner

    aligner = GraphAligner.load(folder, embedder)

    def order(
        question: str, graph: QuestionGraph, subqueries: Sequence[str]
    ) -> list[str]:
        names, facts = _facts(graph)
        return [names[place] for place in aligner.best(facts, question, len(facts))]

    return order


def _facts(graph: QuestionGraph) -> tuple[list[str], list[Fact]]:
    """Return the ids of a graph's facts, and the facts. They are sorted by id, so that ties are broken by content and
    not by reading order.
    """
    names = sorted(graph.by_id)
    facts = []
    for name in names:
        triple = graph.by_id[name]
        facts.append((triple.subject, triple.predicate, triple.object))
    return names, facts
