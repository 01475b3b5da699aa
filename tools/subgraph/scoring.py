"""What all scorers share: how well texts of a graph fit a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.records import Failure

__all__ = ["RelativeScorer", "Scored", "Scorer", "Wording", "best", "score_distinct"]

Wording = Literal["facts", "relations"]
"""What scorers read: whole facts and paths; or their relations alone, and the question without the names it starts
from. Relations alone say what a knowledge base's names do not add to, and a graph has few of them, so models read each
once; in text, names matter."""


@dataclass(frozen=True, slots=True)
class Scored:
    """values: (n,) float32, the higher the better, comparable among the texts of one call, and of several calls for
    one question unless the scorer is a RelativeScorer. failures: what went wrong on the way; texts that could not be
    judged for it score lowest."""

    values: Floats
    failures: tuple[Failure, ...] = ()


@runtime_checkable
class Scorer(Protocol):
    """Judges facts and paths. May be called from several threads at once."""

    @property
    def name(self) -> str: ...

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """One value a text, in their order; for no texts, none. The same texts get the same values."""
        ...


@runtime_checkable
class RelativeScorer(Scorer, Protocol):
    """Judges a text by the others of its call, too, so that only values of one call compare."""

    def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
        """`score` of these texts for any question, what it takes to judge them among each other being done now."""
        ...


def score_distinct(scorer: Scorer, question: str, texts: Sequence[str]) -> Scored:
    """`scorer.score`, equal texts being read once."""
    distinct = list(dict.fromkeys(texts))
    scored = scorer.score(question, distinct)
    values = dict(zip(distinct, scored.values.tolist(), strict=True))
    return Scored(np.array([values[text] for text in texts], dtype=np.float32), scored.failures)


def best(values: Floats, k: int) -> list[int]:
    """Places of the `k` highest values, best first, ties in their order."""
    return [int(place) for place in np.argsort(-values, kind="stable")[:k]]
