"""From a question to entities of the graph, with weights: by name, then by meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
import numpy.typing as npt

from ras_agent.errors import SettingsError
from ras_agent.protocols import Embedder
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.query_mentions import query_mentions, split_mention

__all__ = ["EntityLinker", "LinkedEntity", "Linking", "Mentions"]

Mentions = Callable[[str], Sequence[str]]
"""Finds the names in a question: a model's say, in place of capitals and n-grams."""


@dataclass(frozen=True, slots=True)
class LinkedEntity:
    """An entity that a question is about; the weights of one mention's candidates add up to 1."""

    entity: int
    weight: float
    mention: str


@dataclass(frozen=True, slots=True)
class Linking:
    """A mention that is no entity's name means up to `candidates` entities with a cosine of at least `threshold`.

    Their weights are as exp(cosine / temperature).
    """

    candidates: int = 3
    threshold: float = 0.6
    temperature: float = 0.05

    def __post_init__(self) -> None:
        if self.candidates < 0 or not -1 <= self.threshold <= 1 or not 0 < self.temperature < inf:
            raise SettingsError(
                "linking needs candidates from 0 on, a threshold from -1 to 1 and a temperature above 0; got "
                f"{self.candidates}, {self.threshold}, {self.temperature}"
            )


class EntityLinker:
    """Finds the entities that questions name, and remembers them. May be used from several threads at once."""

    def __init__(
        self,
        graph: KGIndex,
        embedder: Embedder | None = None,
        *,
        linking: Linking | None = None,
        mentions: Mentions | None = None,
    ) -> None:
        """embedder: of the graph's vectors; without one names are linked by their letters alone.

        mentions: how names are found; by default by capitals and the graph's own names.
        """
        self.graph = graph
        self.embedder = embedder if graph.entity_vectors is not None else None
        self._known = lru_cache(1024)(_Finder(graph, self.embedder, linking or Linking(), mentions))

    def link(self, question: str) -> tuple[LinkedEntity, ...]:
        """The entities of all mentions, each mention's likeliest first; a question without a mention is one itself."""
        return self._known(question)


class _Finder:
    """Links questions anew each time. It stands apart from what remembers, so that both end with their last user."""

    def __init__(self, graph: KGIndex, embedder: Embedder | None, how: Linking, mentions: Mentions | None) -> None:
        self.graph, self.embedder, self._how, self._mentions = graph, embedder, how, mentions
        self._vectors: npt.NDArray[np.float32] | None = None

    def __call__(self, question: str) -> tuple[LinkedEntity, ...]:
        exact: dict[int, LinkedEntity] = {}
        unknown = []
        for name in self._names(question):
            if not self._put(exact, name):
                unknown.append(name)
        near = self._nearest(unknown)
        nowhere = set(unknown).difference(link.mention for link in near)
        for name in unknown:
            for part in split_mention(name, self._is_entity) if name in nowhere else ():
                self._put(exact, part)
        found = [*exact.values(), *near] or self._nearest([question], least=-1.0)
        return tuple(found)

    def _put(self, links: dict[int, LinkedEntity], name: str) -> bool:
        """Link an entity's name; False if it is none."""
        entity = self.graph.entity_id(name)
        if entity is not None:
            links.setdefault(entity, LinkedEntity(entity, 1.0, name))
        return entity is not None

    def _is_entity(self, text: str) -> bool:
        return self.graph.entity_id(text) is not None

    def _names(self, question: str) -> list[str]:
        if self._mentions is not None:
            return list(dict.fromkeys(name for name in self._mentions(question) if name.strip()))
        spans = query_mentions(question, self._is_entity)
        return list(dict.fromkeys(mention.text for mention in spans))

    def _nearest(self, names: Sequence[str], least: float | None = None) -> list[LinkedEntity]:
        """Candidates by meaning for each of `names`."""
        if not names or self.embedder is None or not len(self.graph.entities):
            return []
        if self._vectors is None:
            self._vectors = np.asarray(self.graph.entity_vectors, dtype=np.float32)
        cosines = self.embedder.embed(list(names)) @ self._vectors.T  # (names, N)
        least = self._how.threshold if least is None else least
        found = []
        for name, row in zip(names, cosines, strict=True):
            count = min(self._how.candidates, len(row))
            best = np.argpartition(-row, count - 1)[:count]
            best = best[np.lexsort((best, -row[best]))]
            best = best[row[best] >= least]
            weights = np.exp((row[best] - row[best].max(initial=-1)) / self._how.temperature)
            found += [
                LinkedEntity(int(entity), float(weight), name)
                for entity, weight in zip(best, weights / weights.sum(), strict=True)
            ]
        return found
