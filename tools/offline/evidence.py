"""What the steps so far have read, held against the words of the question."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from ras_agent.records import Step
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import content_words, stem, stems
from ras_agent.tools.offline.chain import passages_of
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reading import ReadPassage

# a word inside a name tells more than one outside
_NAME_WEIGHT = 1.5
ENOUGH = 0.95
"""The share of the question's weight that two linked passages must hold to be taken to answer it."""
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True, slots=True)
class QuestionEvidence:
    """Holds the question, its weighted stems, and the passages read, by id, in order of retrieval.

    weights: question stem -> weight; rare among the passages and part of a name weigh more; they sum to 1. plain: the
    stems outside names, which tell relations and classes ("director", "conference"). ranks: passage id -> its rank in
    the hop that found it, 0 for the first.
    """

    asked: QuestionAnalysis
    weights: dict[str, float]
    plain: frozenset[str]
    passages: dict[str, ReadPassage]
    ranks: dict[str, int]

    def coverage(self, words: Set[str]) -> float:
        """Return the weight of the question's stems among `words`, in 0..1."""
        return sum(weight for word, weight in self.weights.items() if word in words)

    def missing(self, words: Set[str]) -> list[str]:
        """Return the question's content words whose stems are not among `words`, as the question writes them."""
        kept: dict[str, str] = {}
        for word in _WORD.findall(self.asked.question):
            for found in content_words(word)[:1]:
                if stem(found) not in words:
                    kept.setdefault(stem(found), word)
        return list(kept.values())

    def explained(self) -> float:
        """Return the most of the question that two linked passages cover, in 0..1.

        One of them names the other's topic.
        """
        found = self.passages.values()
        pairs = ((one, other) for one in found for other in found if one is not other and one.tells_of(other))
        return max((self.coverage(one.stems | other.stems) for one, other in pairs), default=0.0)

    def has_read(self, name: str) -> bool:
        """Return whether a passage about `name` has been retrieved."""
        key = canonical_key(name)
        return any(key in passage.keys for passage in self.passages.values())


def gather(question: str, steps: Sequence[Step]) -> QuestionEvidence:
    """Hold the steps' passages against the question."""
    asked, passages = analyse(question), passages_of(steps)
    ranks: dict[str, int] = {}
    for step in steps:
        for rank, hit in enumerate(step.hits):
            ranks.setdefault(hit.passage.id, rank)
    named = {word for mention in asked.mentions for word in stems(mention)}
    raw: dict[str, float] = {}
    for word in stems(question):
        holding = sum(word in passage.stems for passage in passages.values())
        raw[word] = math.log(1 + len(passages) / (0.5 + holding)) * (_NAME_WEIGHT if word in named else 1.0)
    total = sum(raw.values()) or 1.0
    weights = {word: weight / total for word, weight in raw.items()}
    return QuestionEvidence(asked, weights, frozenset(weights) - named, passages, ranks)
