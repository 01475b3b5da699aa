"""A passage index and the knowledge graph of its passages: the one beside the other, and how their numbers meet."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IndexMismatch
from ras_agent.protocols import Embedder
from ras_agent.tools.index.kg.index import KGIndex
from ras_agent.tools.index.kg.linking import EntityLinker, Linking, Mentions
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.row_table import find_rows, hash_of
from ras_agent.tools.index.store import PassageIndex

__all__ = ["graph_beside", "linker_for", "rows_of_documents"]


def graph_beside(index: PassageIndex) -> KGIndex:
    """The graph that lies in the index's folder. Raises IndexMismatch without one, naming the remedy."""
    if index.path is None:
        raise IndexMismatch(
            "an index in memory has no knowledge graph beside it: give one, retriever(..., graph=...), or make an "
            "index on disk, and its graph with `ras-agent kg build`"
        )
    if not KGIndex.exists(index.path):
        raise IndexMismatch(f"{index.path} has no knowledge graph: make it with `ras-agent kg build {index.path}`")
    return KGIndex.open(index.path)


def linker_for(
    index: PassageIndex, graph: KGIndex, linking: Linking | None = None, mentions: Mentions | None = None
) -> EntityLinker:
    """A linker that shares the index's embedder where the graph's vectors are of the same."""
    identity = index.snapshot.manifest.embedder
    own = graph.manifest.embedder
    embedder: Embedder | None = None
    if own is not None:
        embedder = index.embedder if identity == own else graph.embedder
    if embedder is not None and EmbedderIdentity(embedder.name, embedder.dimension) != own:
        raise IndexMismatch(f"the graph's vectors are of {own}, not of {embedder.name!r}: build the graph anew")
    return EntityLinker(graph, embedder, linking=linking, mentions=mentions)


def rows_of_documents(index: PassageIndex, graph: KGIndex) -> npt.NDArray[np.int64]:
    """The row of each of the graph's documents, shape (D,), -1 where the passage is gone.

    Warns if passages of the index are not in the graph: they cannot be found through it.
    """
    table = index.snapshot.table
    wanted = np.array([hash_of(name) for name in graph.documents], dtype=np.uint64)
    rows = find_rows(table["id"], wanted)
    missing = len(table) - np.count_nonzero(rows >= 0)
    if missing:
        where = index.path or "INDEX"
        warnings.warn(
            f"{missing:,} of {len(table):,} passages are not in the knowledge graph and cannot be found through it: "
            f"`ras-agent kg build {where}` brings it up to date",
            stacklevel=3,
        )
    return rows
