"""Links a question to entities by the facts that are nearest to it, as well as by the names in it.

HippoRAG 2 (Gutiérrez et al., 2025) links by facts only, after a chat model has discarded some of them. Here the
names in the question have half of the weight, and no model is called (lab/linking.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import SettingsError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.index.ties import best_places
from ras_agent.tools.kg.link import EntityLinker
from ras_agent.tools.kg.text_vectors import stored_vectors

if TYPE_CHECKING:
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.roles import RoleOptions

_FACTS = 5
_LEAST = 1e-6


class FactLinker:
    """Links questions to the entities that they name, and to the subjects and objects of the facts with the nearest
    vectors.

    Names and facts have half of the weight each. The weight of an entity by facts is the sum of its facts' cosines.
    The vectors of facts are stored with the graph.
    """

    name = "facts"

    def __init__(
        self,
        most: int = _FACTS,
        graph: KGIndex | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        """Set how many facts count. The other arguments are set by `over`.

        Args:
            most: the number of nearest facts; 5 by default.
            graph, embedder: the graph whose entities are linked, and the embedder of its vectors.
        """
        self._most = most
        self._graph = graph
        self._embedder = embedder
        self._names = None if graph is None else EntityLinker(graph, embedder)

    def over(self, graph: KGIndex, embedder: Embedder | None) -> FactLinker:
        """Return a copy of this linker for a graph. Raises SettingsError for a graph without vectors."""
        if embedder is None:
            raise SettingsError(
                "--linker facts compares vectors, and this graph has no vectors: build the graph with --embedder, or "
                "choose another linker"
            )
        return FactLinker(self._most, graph, embedder)

    def links(self, question: str) -> Mapping[str, float]:
        """Return the names of entities with their weights: those named in the question and those in the nearest facts.

        Without a graph, the result is empty.
        """
        weights: dict[str, float] = {}
        for part in (self._of_names(question), self._of_facts(question)):
            total = sum(part.values())
            for name, weight in part.items():
                weights[name] = weights.get(name, 0.0) + weight / total
        return weights

    def _of_names(self, question: str) -> dict[str, float]:
        weights: dict[str, float] = {}
        if self._graph is None or self._names is None:
            return weights
        for link in self._names.link(question):
            name = self._graph.entities[link.entity]
            weights[name] = weights.get(name, 0.0) + link.weight
        return weights

    def _of_facts(self, question: str) -> dict[str, float]:
        weights: dict[str, float] = {}
        graph = self._graph
        if graph is None or self._embedder is None or not len(graph.facts):
            return weights
        cosines = self._vectors @ query_vector(self._embedder, question)
        count = min(self._most, len(cosines))
        for place in best_places(cosines, count, relative=False).tolist():
            head, _, tail = map(int, graph.edges[place])
            cosine = max(float(cosines[place]), _LEAST)
            for entity in {head, tail}:
                name = graph.entities[entity]
                weights[name] = weights.get(name, 0.0) + cosine
        return weights

    @cached_property
    def _vectors(self) -> Floats:
        """Return the unit vectors of the graph's facts, in the order of the graph."""
        graph = self._graph
        assert graph is not None
        assert self._embedder is not None
        texts = []
        owners = []
        for place in graph.facts:
            head, relation, tail = map(int, graph.edges[place])
            names = (
                graph.entities[head],
                graph.relations[relation],
                graph.entities[tail],
            )
            texts.append(" ".join(names))
            owners.append(_owner(graph, place, names[0]))
        return stored_vectors(
            graph.database, self.name, self._embedder, texts, owners, part=graph.is_part
        )


def _owner(graph: KGIndex, place: int, head: str) -> str:
    """Return the passage that a fact's vector is deleted with, or the name of the fact's head if no passage states the
    fact."""
    arrays = graph.arrays
    start, end = arrays.source_starts[place : place + 2]
    if start == end:
        return head
    document: int = arrays.sources[start][0]
    return arrays.documents[document]


def fact_linker(argument: str, options: RoleOptions) -> FactLinker:
    """Build the linker "facts", or "facts:N" with the N nearest facts. Raises SettingsError for another argument."""
    if not argument:
        return FactLinker()
    if not argument.isdecimal() or int(argument) < 1:
        raise SettingsError(
            f"{argument!r:.40} is not a number of facts: write facts:N, with N from 1 on"
        )
    return FactLinker(int(argument))
