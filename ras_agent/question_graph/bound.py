"""Which facts a question graph shows when it holds more than it may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from ras_agent.records import Triple
from ras_agent.text.canonical import canonical_key

__all__ = ["least_useful"]


def least_useful(facts: Mapping[str, Triple], max_facts: int, question: str, keep: frozenset[str]) -> frozenset[str]:
    """Ids of the facts (given by id) to put aside so that `max_facts` remain, or more where `keep` holds more ids.

    The fewest source passages go first, then the least similarity to the question: the summed weight of the words that
    fact and question share, where a word weighs the more the fewer facts hold it. Ties go by key, so the result depends
    on the set of facts alone.
    """
    asked = frozenset(canonical_key(question).split())
    loose = {name: fact.key for name, fact in facts.items() if name not in keep}
    shared = {name: asked.intersection(" ".join(key).split()) for name, key in loose.items()}
    holding = Counter(word for words in shared.values() for word in words)
    weights = {word: math.log(1 + len(loose) / count) for word, count in holding.items()}

    def rank(name: str) -> tuple[int, float, tuple[str, str, str]]:
        support = len({source.passage_id for source in facts[name].sources})
        # fsum, because a plain sum of floats depends on their order
        return -support, -math.fsum(weights[word] for word in shared[name]), loose[name]

    room = max(0, max_facts - (len(facts) - len(loose)))
    return frozenset(sorted(loose, key=rank)[room:])
