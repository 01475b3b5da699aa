"""The scorer "kg" uses the vectors of a knowledge graph instead of encoding every fact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import SettingsError
from ras_agent.running.protocols import Embedder, Scored
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.subgraph.graph import Graph, plain_name
from ras_agent.tools.subgraph.scoring import NO_SCORES

_ARROWS = re.compile(r" ?[→←] ?")


class GraphVectorScorer:
    """Scores texts by the cosine of the question and the mean vector of the names in a fact or path.

    It encodes only the question. Since the mean ignores order and grammar, it guides a search better than it
    chooses an answer.
    """

    def __init__(self, graph: Graph, embedder: Embedder | None = None) -> None:
        """Take the graph's vectors. Raises SettingsError for a graph without vectors.

        Args:
            embedder: embeds questions; by default the graph's own.
        """
        origin = graph.origin
        if (
            origin is None
            or origin.entity_vectors is None
            or origin.relation_vectors is None
        ):
            raise SettingsError(
                "scorer 'kg' needs a knowledge graph with vectors: build it with `ras-agent kg build INDEX --embedder minilm`"
            )
        self._graph = graph
        encoder = embedder or origin.embedder
        assert encoder is not None  # a graph with vectors names its embedder
        self._embedder = encoder
        self._question = remembering(
            encoder, 256
        ).embed_query  # a beam asks at each length
        self._entities = origin.entity_vectors
        self._relations = origin.relation_vectors

    @property
    def name(self) -> str:
        """Return "kg:" and the embedder's name."""
        return f"kg:{self._embedder.name}"

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return the score of each text."""
        if not texts:
            return NO_SCORES
        vector = self._question(plain_name(question))
        means = list(map(self._vector, texts))
        cosines = np.stack(means) @ vector
        return Scored(cosines.astype(np.float32))

    def _vector(self, text: str) -> Floats:
        """Return the vector (d,) of a fact or path of the graph; zeros for any other text."""
        edge = self._facts.get(text)
        if edge is not None:
            head, relation, tail = self._graph.edges[edge].tolist()
            summed = self._entities[head] + self._relations[relation]
            summed = summed + self._entities[tail]
        else:
            summed = self._sum_of_names(_ARROWS.split(text))
        length = float(np.linalg.norm(summed))
        if length:
            summed = summed / length
        return np.asarray(summed, dtype=np.float32)

    def _sum_of_names(self, names: Sequence[str]) -> Floats:
        """Return the sum (d,) of the vectors of those names of a path that the graph contains."""
        entities = names[::2]
        relations = names[1::2]
        is_relation = len(names) == 1 and names[0] in self._relation_numbers
        # a text of only relations: "→ spouse → parents", "spouse"
        if is_relation or not names[0]:
            entities = ()
            relations = names
        summed: Floats = np.zeros(self._entities.shape[1], dtype=np.float32)
        for name in entities:
            if name in self._nodes:
                summed = summed + self._entities[self._nodes[name]]
        for name in relations:
            if name in self._relation_numbers:
                summed = summed + self._relations[self._relation_numbers[name]]
        return summed

    @cached_property
    def _facts(self) -> dict[str, int]:
        edges = range(len(self._graph.edges))
        texts = map(self._graph.edge_text, edges)
        return dict(zip(texts, edges, strict=True))

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return _numbers(self._graph.nodes)

    @cached_property
    def _relation_numbers(self) -> dict[str, int]:
        return _numbers(self._graph.relations)


def _numbers(names: Sequence[str]) -> dict[str, int]:
    """Return each plain name's index; of equal names the last."""
    numbers = {}
    for number, name in enumerate(names):
        numbers[plain_name(name)] = number
    return numbers
