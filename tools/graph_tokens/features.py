"""Computes the features of graphs: a vector for each node's and each edge's text, and the nodes that each edge joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.running.protocols import Embedder
from ras_agent.running.recent import RecentResults
from ras_agent.text.canonical import canonical_key

Fact = tuple[str, str, str]
"""A fact's subject, predicate and object, as texts."""

_MOST_TEXTS = 50_000  # 77 MB at width 384


class GraphVectors:
    """Computes the features of graphs, and caches the vectors of the last texts. Thread safe.

    An agent's question graph grows with every hop, so at each step only the texts of new facts are embedded.
    """

    def __init__(self, embedder: Embedder, most: int = _MOST_TEXTS) -> None:
        """Take the embedder of texts.

        Args:
            most: the number of texts whose vectors are cached.
        """
        self.embedder = embedder
        self._vectors: RecentResults[str, Floats] = RecentResults(most)

    @property
    def width(self) -> int:
        """Return d, the width of a text's vector."""
        return self.embedder.dimension

    def of_facts(self, facts: Iterable[Fact]) -> GraphFeatures:
        """Return the features of one graph: a node for each subject and object, an edge for each fact.

        Names that differ only in case and punctuation are one node; its text is the first spelling.
        """
        facts = list(facts)
        labels: dict[str, str] = {}
        for subject, _, object_ in facts:
            for name in (subject, object_):
                labels.setdefault(canonical_key(name) or name, name)
        place = {key: number for number, key in enumerate(labels)}
        edges = []
        for subject, predicate, object_ in facts:
            source = place[canonical_key(subject) or subject]
            target = place[canonical_key(object_) or object_]
            edges.append((source, predicate, target))
        return self.of_graph(list(labels.values()), edges)

    def of_graph(
        self, nodes: Sequence[str], edges: Sequence[tuple[int, str, int]]
    ) -> GraphFeatures:
        """Return the features of a graph given by its nodes' texts and its edges.

        Args:
            edges: (index of the source, text, index of the target).
        """
        sources = [source for source, _, _ in edges]
        targets = [target for _, _, target in edges]
        return GraphFeatures(
            self.of_texts(nodes),
            self.of_texts([text for _, text, _ in edges]),
            np.array([sources, targets], dtype=np.int64).reshape(2, -1),
            np.zeros(len(nodes), dtype=np.int64),
        )

    def of_steps(self, steps: Iterable[Sequence[Fact]]) -> GraphFeatures:
        """Return the features of a question's graph, with a sub-graph for each sub-query's facts (RAS, section 3.3)."""
        parts = list(map(self.of_facts, steps))
        return GraphFeatures.join(parts, self.width)

    def of_texts(self, texts: Sequence[str]) -> Floats:
        """Return the texts' vectors, shape (len(texts), d)."""
        vectors = self._vectors.of(texts, self.embedder.embed)
        if texts:
            return np.stack(vectors)
        return np.empty((0, self.width), np.float32)
