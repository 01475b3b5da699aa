"""What all scorers share: how well texts of a graph fit a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ras_agent.records import Failure

__all__ = ["Scored", "Scorer", "best"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scored:
    """values: (n,) float32, the higher the better, comparable among the texts of one call. failures: what went wrong
    on the way; texts that could not be judged for it score lowest."""

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


def best(values: Floats, k: int) -> list[int]:
    """Places of the `k` highest values, best first, ties in their order."""
    return [int(place) for place in np.argsort(-values, kind="stable")[:k]]
