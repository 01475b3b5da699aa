"""Searches the graph that comes with a question, by a small index in memory that is made when the question is
asked.

Each question of GraphQA and the Freebase benchmarks has its own graph, and only that is searched for it. An
`OwnGraphs` is used in place of an index: its retrievers search the graph of the question that `asking` sets,
whatever thread or task calls them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from threading import Lock
from typing import Any, Self

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import (
    FilterError,
    IndexMismatch,
    RunError,
    SettingsError,
)
from ras_agent.contracts.records import Hit, Passage
from ras_agent.eval.question import Question
from ras_agent.running.protocols import Embedder, Retriever
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import query_mentions
from ras_agent.tools.kg.passage_facts import PassageFacts, knowledge_passages
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.resolve import reads_graph

_PLACE = "the question's graph"
_ONE_FACT = Question(
    "", "a b c", (), metadata={"graph": {"nodes": ["a", "c"], "edges": [[0, "b", 1]]}}
)


def graph_passages(question: Question) -> list[Passage]:
    """Return the facts of a question's graph as passages, one or more for each head, then the nodes without
    facts.

    The facts are also in the passages' metadata, so that no extractor is needed. A fact is left out if one of
    its parts has no visible character.
    """
    graph = question.graph
    of_nodes = chain.from_iterable(map(_of_object, graph.nodes))
    facts = []
    names = {""}
    for fact in (*graph.triples(), *of_nodes):
        if all(map(canonical_key, fact)):
            facts.append(PlacedTriple(*fact, _PLACE))
            names.update((canonical_key(fact[0]), canonical_key(fact[2])))
    lonely = {}
    for node in graph.nodes:
        key = canonical_key(node)
        if key not in names:
            lonely[key] = Passage(f"{question.id}#{key}", node, node, question.id)
    return [*knowledge_passages(facts, question.id), *lonely.values()]


def _of_object(node: str) -> Iterator[tuple[str, str, str]]:
    """Yield facts from the text of a scene graph's object, "name: mill; attribute: old, white; (x,y,w,h): ...".

    In these facts its name and attributes are entities, by which a question can find the object. Other texts
    give no facts.
    """
    if not node.startswith("name: "):
        return
    for part in node.split("; "):
        key, _, values = part.partition(": ")
        if key in ("name", "attribute"):
            yield from ((node, key, value) for value in values.split(", "))


class QuestionGraphIndex:
    """Searches the graph that comes with one question. Each retriever is made, with its index, when first
    needed.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._retrievers: dict[tuple[str, str], Retriever] = {}
        self._lock = Lock()

    def retriever(
        self, name: str, embedder: Embedder | None, options: dict[str, Any]
    ) -> Retriever:
        """Return the retriever `name` over this graph. All sub-queries of the question share it."""
        with self._lock:
            key = name, repr(sorted(options.items()))
            if key not in self._retrievers:
                self._retrievers[key] = self._make(name, embedder, options)
            return self._retrievers[key]

    def _make(
        self, name: str, embedder: Embedder | None, options: dict[str, Any]
    ) -> Retriever:
        passages = graph_passages(self._question)
        index = PassageIndex.in_memory(passages, embedder)
        if reads_graph(name):
            graph = KGIndex.in_memory(
                map(_facts_of, passages), embedder, extractor="stated"
            )
            options = {"graph": graph, "mentions": self._mentions(graph), **options}
        return retriever_over(index, name, **options)

    def _mentions(self, graph: KGIndex) -> Any:
        """Return a function that finds the names of graph entities in a query.

        If the query is the question itself, these are the question's entities that the benchmark names, if it
        does.
        """
        question = self._question

        def is_entity(name: str) -> bool:
            return graph.entity_id(name) is not None

        named = question.metadata.get("question_entities", ())
        starts = list(filter(is_entity, named))

        def mentions(query: str) -> Sequence[str]:
            if starts and query == question.question:
                return starts
            return [mention.text for mention in query_mentions(query, is_entity)]

        return mentions


def _facts_of(passage: Passage) -> PassageFacts:
    """Return the facts of a passage. A passage without facts is a node, which has only its name."""
    facts = stated_facts(passage) or ()
    return PassageFacts(passage.id, facts, () if facts else (passage.title,))


_ASKED: ContextVar[QuestionGraphIndex | None] = ContextVar(
    "asked question's graph", default=None
)


@contextmanager
def asking(question: Question) -> Iterator[None]:
    """Make each `OwnGraphs` search the graph of `question`, inside the block and in everything that it calls."""
    token = _ASKED.set(QuestionGraphIndex(question))
    try:
        yield
    finally:
        _ASKED.reset(token)


class OwnGraphs(PassageIndex):
    """Stands in for an index if questions have their own graphs. It has no passages itself."""

    @classmethod
    def embedded_by(cls, embedder: object = None) -> Self:
        """Return a new instance with an embedder for passages, entities and relations; without it, only words
        are compared.
        """
        graphs = cls.in_memory()
        graphs._embedder = resolve_embedder(embedder) if embedder is not None else None
        return graphs

    def within(self, filter: object = None) -> PassageIndex:
        """Return this index unchanged. A filter is refused, because the questions' graphs cannot be filtered.

        Raises:
            FilterError: If a filter is given.
        """
        if Filter.of(filter):
            raise FilterError(
                "questions with their own graphs cannot be filtered: leave --filter out"
            )
        return self

    def make_retriever(self, name: str, options: dict[str, Any]) -> Retriever:
        """Return the retriever `name`, which searches the graph of the question that is being asked.

        An unknown name or option raises an error already here, before any question is asked.
        """
        try:
            QuestionGraphIndex(_ONE_FACT).retriever(name, self._embedder, options)
        except IndexMismatch as error:
            raise SettingsError(
                f"retriever {name!r} needs vectors of the questions' graphs: give --embedder minilm, or another "
                "retriever"
            ) from error
        return _OfTheQuestion(name, self._embedder, options)


class _OfTheQuestion:
    """Searches the graph of the question that is being asked."""

    def __init__(
        self, name: str, embedder: Embedder | None, options: dict[str, Any]
    ) -> None:
        self.name = name
        self._embedder = embedder
        self._options = options

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        question = _ASKED.get()
        if question is None:
            raise RunError(
                "no question is being asked: call this inside `with asking(question)`"
            )
        return question.retriever(self.name, self._embedder, self._options).retrieve(
            query, k
        )


def bring_graphs(questions: Iterable[Question]) -> bool:
    """Tell whether some questions have their own graphs, and no question has passages."""
    has_graph = False
    for question in questions:
        if question.contexts:
            return False
        has_graph = has_graph or bool(question.graph.nodes)
    return has_graph


def digest_of_graphs(questions: Iterable[Question]) -> str:
    """Return a hash of the questions' graphs, by which a manifest identifies them."""
    digest = hashlib.sha256()
    for question in questions:
        line = json.dumps([question.id, question.graph.to_dict()])
        digest.update(line.encode())
    return digest.hexdigest()
