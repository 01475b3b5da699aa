"""What the GFM network is given: a knowledge graph's messages, and where in it a question starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.errors import IndexMismatch
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import LinkedEntity

__all__ = ["check_vectors", "inverse_vectors", "messages_of", "start_of"]


def check_vectors(graph: KGIndex, config: GFMConfig) -> Floats:
    """The relations' vectors. Raises IndexMismatch for a graph without vectors, or with another encoder's."""
    if graph.relation_vectors is None:
        raise IndexMismatch(
            "the knowledge graph holds no vectors, which the GFM network reads: "
            "build it with an embedder, `ras-agent kg build --embedder minilm`"
        )
    vectors = np.asarray(graph.relation_vectors, dtype=np.float32)
    if vectors.shape[1] != config.text_width:
        wanted = f" of {config.text_model}" if config.text_model else ""
        raise IndexMismatch(
            f"the GFM network reads vectors of width {config.text_width}{wanted}, the knowledge graph has width "
            f"{vectors.shape[1]} ({graph.manifest.embedder}): build it with that encoder, or give other weights"
        )
    return vectors


def inverse_vectors(graph: KGIndex, config: GFMConfig) -> Floats:
    """(R, text width): the vectors of the inverse relations."""
    vectors = check_vectors(graph, config)
    if config.inverse == "negated":
        return -vectors
    embedder = graph.embedder
    assert embedder is not None  # there are vectors, so there is what made them
    return embedder.embed([f"inverse_{name}" for name in graph.relations])


def messages_of(graph: KGIndex, config: GFMConfig) -> GFMGraph:
    """The graph as the network reads it."""
    vectors = check_vectors(graph, config)
    edges = np.asarray(graph.edges)
    return GFMGraph.from_edges(len(graph.entities), edges, vectors, inverse_vectors(graph, config), config.toward)


def start_of(links: Sequence[LinkedEntity], frequency: npt.NDArray[np.int64]) -> GFMStart:
    """A question's entities, ascending, each weighted by its link and by 1 / the number of documents that name it.

    frequency: (N,). An entity that no document names counts as if one did.
    """
    weights: dict[int, float] = {}
    for link in links:
        weights[link.entity] = weights.get(link.entity, 0.0) + link.weight
    entities = np.array(sorted(weights), dtype=np.int64)
    shares = np.array([weights[entity] for entity in sorted(weights)], dtype=np.float32)
    return GFMStart(entities, (shares / np.maximum(frequency[entities], 1)).astype(np.float32))
