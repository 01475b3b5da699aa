"""How the question's graph ties an entity to the question: by facts that share its words, by steps from its names."""

from __future__ import annotations

import math
from functools import lru_cache

from ras_agent.question_graph import QuestionGraph
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.question_words import QuestionWords

__all__ = ["GraphLinks"]

_IS = frozenset({"is", "was", "are", "were"})
_STEPS = 3
_MOST_FACTS = 30


class GraphLinks:
    """Looks entities up by key; each key is looked up once."""

    def __init__(self, question: str, graph: QuestionGraph, words: QuestionWords, noun: frozenset[str]) -> None:
        """`noun`: stems of what the answer is one of; none where the question does not tell."""
        self._graph, self._words, self._noun = graph, words, noun
        self._steps = self._walk(question)
        self._known: dict[str, tuple[float, ...]] = {}

    def row(self, key: str) -> tuple[float, ...]:
        """Of the facts that touch it: the best relation's and the best other entity's share of the question's worth,
        the best sum of both, the best relation's share of what stands near the word that asks; the share of the noun
        asked for that a fact says it is; the logarithm of their number; whether it is a node; 1 / (1 + steps from a
        name asked)."""
        if key not in self._known:
            self._known[key] = self._look_up(key)
        return self._known[key]

    def _look_up(self, key: str) -> tuple[float, ...]:
        facts = self._graph.touching(key)
        relation = entity = both = focus = noun = 0.0
        for fact in facts[:_MOST_FACTS]:
            subject = fact.key[0]
            said = self._words.present(_roots(fact.predicate))
            told = float(self._words.worth @ said)
            focus = max(focus, float(self._words.focus @ said))
            if subject == key and self._noun and fact.predicate in _IS:
                noun = max(noun, len(self._noun & _roots(fact.object)) / len(self._noun))
            other = self._worth(fact.object if subject == key else fact.subject)
            relation, entity = max(relation, told), max(entity, other)
            both = max(both, told + other if told and other else 0.0)
        near = 1 / (1 + self._steps[key]) if key in self._steps else 0.0
        is_node = float(key in self._graph.entities)
        return relation, entity, both, focus, noun, math.log1p(len(facts)), is_node, near

    def _worth(self, text: str) -> float:
        return float(self._words.worth[self._words.present(_roots(text))].sum())

    def _walk(self, question: str) -> dict[str, int]:
        """Steps through facts from the entities that the question names."""
        padded = f" {canonical_key(question)} "
        frontier = [
            key
            for key, entity in self._graph.entities.items()
            if f" {key} " in padded and any(form[:1].isupper() or form[:1].isdigit() for form in entity.forms)
        ]
        steps = dict.fromkeys(frontier, 0)
        for step in range(1, _STEPS + 1):
            reached = []
            for key in frontier:
                for fact in self._graph.touching(key):
                    for other in (fact.key[0], fact.key[2]):
                        if other not in steps:
                            steps[other] = step
                            reached.append(other)
            frontier = reached
        return steps


@lru_cache(maxsize=1 << 14)
def _roots(text: str) -> frozenset[str]:
    return frozenset(stems(text))
