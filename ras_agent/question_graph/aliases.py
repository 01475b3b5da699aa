"""Entities that are probably one: edges beside the facts, found by embedding, that can be taken away again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ras_agent.question_graph.merge import Entity
from ras_agent.text.values import value_of

if TYPE_CHECKING:
    from ras_agent.protocols import Embedder

__all__ = ["Alias", "aliases_of"]

_NUMBERS = re.compile(r"\d+|\b[ivx]+\b")


@dataclass(frozen=True, slots=True, order=True)
class Alias:
    """Two canonical keys, `one` < `other`, and the cosine of their labels' embeddings."""

    one: str
    other: str
    score: float


def aliases_of(entities: Iterable[Entity], embedder: Embedder, threshold: float) -> tuple[Alias, ...]:
    """Pairs of entities whose labels' embeddings have a cosine of at least `threshold`, in order of their keys.

    Dates and quantities have no aliases, and names that differ in a number ("Apollo 11" and "Apollo 12", "Henry V" and
    "Henry VI") are never paired, however near their vectors are.
    """
    import numpy as np  # slow to import, and a graph without aliases does without

    named = sorted((e for e in entities if value_of(e.label) is None), key=lambda entity: entity.key)
    if len(named) < 2:
        return ()
    vectors = np.asarray(embedder.embed([entity.label for entity in named]), dtype=np.float32)  # (E, dimension)
    cosines = vectors @ vectors.T  # (E, E)
    near = np.argwhere(np.triu(cosines >= threshold, k=1))
    numbers = [sorted(_NUMBERS.findall(entity.key)) for entity in named]
    return tuple(
        Alias(named[row].key, named[column].key, round(float(cosines[row, column]), 4))
        for row, column in near.tolist()
        if numbers[row] == numbers[column]
    )
