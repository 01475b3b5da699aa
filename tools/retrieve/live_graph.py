"""Searches a knowledge graph on another server: `sparql:https://host/sparql`, `neo4j:bolt://host`.

The names in a question are looked up among the labels of the graph's entities. The facts about these entities
become passages, at least one for each subject, which BM25 ranks. Nothing is stored here, and nothing is written
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from ras_agent.contracts.records import Hit, Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.link import phrases_of, query_mentions
from ras_agent.tools.kg.passage_facts import knowledge_passages
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.retrieve.registered import retriever_over

MOST_FACTS = 300
"""The number of an entity's facts that are read at once, in each direction."""
_MOST_ROUNDS = 4
_FREQUENT = 10
_MOST_ENTITIES = 8
_MOST_PHRASES = 60

_Fact = TypeVar("_Fact")


class GraphSource(Protocol):
    """Describes a graph on another server, which can be queried for entities and facts."""

    where: str
    """The graph's address, without a password."""

    def entities(self, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the ids of the entities with these names, keyed by the names' canonical keys. Raises SearchError."""
        ...

    def facts(self, entities: Sequence[str]) -> Iterable[PlacedTriple | Skipped]:
        """Return the facts whose subject or object is one of these entities, given by id. Raises SearchError."""
        ...


def in_rounds(
    ask: Callable[[Sequence[str]], list[_Fact]], relation_of: Callable[[_Fact], str]
) -> Iterator[_Fact]:
    """Yield facts of an entity in several rounds, so that frequent relations do not crowd out the others.

    The first round takes any facts. While a round is full, the next leaves out the relations that have been
    frequent so far.

    Args:
        ask: takes relations; returns at most MOST_FACTS facts with other relations.
        relation_of: returns the relation of a fact.
    """
    frequent: list[str] = []
    for _ in range(_MOST_ROUNDS):
        facts = ask(frequent)
        yield from facts
        if len(facts) < MOST_FACTS:
            return
        counts = Counter(map(relation_of, facts))
        for relation, count in counts.items():
            if count >= _FREQUENT:
                frequent.append(relation)


class LiveGraph:
    """Finds facts in a graph on another server, and ranks them by BM25 as passages."""

    def __init__(self, name: str, source: GraphSource) -> None:
        self.name = name
        self._source = source

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return at most `k` hits; an empty list if the query names no entity of the graph.

        Raises ValueError for a blank query or k < 1, and SearchError if the server cannot be reached or gives no
        usable reply.
        """
        check_query(query, k)
        passages = self._passages(query)
        if not passages:
            return []
        index = PassageIndex.in_memory(passages)
        bm25 = retriever_over(index, "bm25")
        return list(bm25.retrieve(query, k))

    def _passages(self, query: str) -> list[Passage]:
        entities = self._entities(query)
        if not entities:
            return []
        where = self._source.where
        facts = self._source.facts(entities)
        triples = [fact for fact in facts if isinstance(fact, PlacedTriple)]
        passages = []
        for passage in knowledge_passages(triples, where):
            metadata = {**passage.metadata, "source": where}
            passages.append(replace(passage, metadata=metadata))
        return passages

    def _entities(self, query: str) -> list[str]:
        """Return the ids of the entities that a query names; of overlapping names only the longest counts."""
        phrases = phrases_of(query)
        known = self._source.entities(phrases[:_MOST_PHRASES])

        def is_known(text: str) -> bool:
            return canonical_key(text) in known

        ids: dict[str, None] = {}
        for mention in query_mentions(query, is_known):
            key = canonical_key(mention.text)
            ids.update(dict.fromkeys(known.get(key, ())))
        return list(ids)[:_MOST_ENTITIES]
