"""Describes scorers, which rate how well facts and paths fit a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.running.protocols import Scored, Scorer
from ras_agent.tools.index.ties import best_places

Wording = Literal["facts", "relations"]
"""The texts that scorers read.

"facts": whole facts and paths. "relations": only their relations, and the question without the names that it starts
from. In a knowledge base names add little to relations, and there are few relations, so that a model reads each once.
In graphs read from text, names matter.
"""


NO_SCORES = Scored(np.empty(0, dtype=np.float32))
"""The result of scoring no texts."""


@runtime_checkable
class RelativeScorer(Scorer, Protocol):
    """Describes a scorer whose score of a text depends on the other texts of the call, so that only scores of one call
    compare.
    """

    def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
        """Return `score` for these texts as a function of the question. The texts are prepared now."""
        ...


def score_distinct(scorer: Scorer, question: str, texts: Sequence[str]) -> Scored:
    """Return the scores of texts, scoring equal texts only once."""
    place_of: dict[str, int] = {}
    places = []
    for text in texts:
        place = place_of.setdefault(text, len(place_of))
        places.append(place)
    scored = scorer.score(question, list(place_of))
    values = scored.values[places]
    return Scored(values, scored.failures)


def best(values: Floats, k: int) -> list[int]:
    """Return the indices of the `k` highest values, best first, ties in their order."""
    ranked = best_places(values, k, relative=True)
    places: list[int] = ranked.tolist()
    return places
