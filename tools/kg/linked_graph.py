"""A passage index and the knowledge graph of its passages: how questions lead into the graph, and it to passages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IndexMismatch
from ras_agent.protocols import Embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.row_table import find_rows
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking, Mentions


@dataclass(frozen=True, slots=True)
class LinkedGraph:
    """A graph with its linker, made once for all retrievers that are mixed: a question is linked and embedded once.

    rows: (D,) the place in the index's passages of each of the graph's documents, -1 for none.
    embedder: of the graph's vectors, None for a graph without; it remembers queries. queries: the same where the
    index's vectors are of it, too, for dense search to read queries with; else None.
    """

    graph: KGIndex
    rows: npt.NDArray[np.int64]
    linker: EntityLinker
    embedder: Embedder | None
    queries: Embedder | None

    @classmethod
    def of(
        cls,
        index: PassageIndex,
        graph: KGIndex | LinkedGraph | None = None,
        linking: Linking | None = None,
        mentions: Mentions | None = None,
    ) -> LinkedGraph:
        """The graph beside the index, or `graph`; one that is linked already stays as it is.

        Raises IndexMismatch where there is none, or of other vectors.
        """
        if isinstance(graph, LinkedGraph):
            return graph
        known = graph or graph_beside(index)
        linker = linker_for(index, known, linking, mentions)
        own = linker.embedder
        shared = index.snapshot.manifest.embedder == known.manifest.embedder
        embedder = remembering(own) if own is not None else None
        return cls(known, rows_of_documents(index, known), linker, embedder, embedder if shared else None)


def graph_beside(index: PassageIndex) -> KGIndex:
    """The graph that lies in the index's folder, without what it holds of texts that are gone from the index.

    Raises IndexMismatch without one, naming the remedy.
    """
    if index.path is None:
        raise IndexMismatch(
            "an index in memory has no knowledge graph beside it: give one, retriever(..., graph=...), or make an "
            "index on disk, and its graph with `ras-agent kg build`"
        )
    if not KGIndex.exists(index.path):
        raise IndexMismatch(f"{index.path} has no knowledge graph: make it with `ras-agent kg build {index.path}`")
    graph = KGIndex.open(index.path)
    texts = graph.arrays.texts
    if texts is None:
        return graph
    rows = _rows(index, graph)
    # where no text is known, nobody knows whether the index ever held it
    gone = _changed(index, graph, rows) | ((rows < 0) & (texts != 0))
    return graph.without(gone) if gone.any() else graph


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
    """The row of each of the graph's documents, shape (D,), -1 where the passage is gone or has another text now.

    Warns if passages of the index are not in the graph as they are now: they cannot be found through it.
    """
    count = len(index.snapshot.table)
    rows = _rows(index, graph)
    changed = _changed(index, graph, rows)
    unknown = {
        "are not in": count - np.count_nonzero(rows >= 0),
        "have changed since they were read into": np.count_nonzero(changed),
    }
    for what, number in unknown.items():
        if number:
            where = index.path or "INDEX"
            warnings.warn(
                f"{number:,} of {count:,} passages {what} the knowledge graph and cannot be found through it: "
                f"`ras-agent kg build {where}` brings it up to date",
                stacklevel=3,
            )
    return np.where(changed, -1, rows)


def _rows(index: PassageIndex, graph: KGIndex) -> npt.NDArray[np.int64]:
    return find_rows(index.snapshot.table["id"], graph.document_hashes)


def _changed(index: PassageIndex, graph: KGIndex, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of the graph's documents, (D,), were read when their passages had another text."""
    texts = graph.arrays.texts
    changed = np.zeros(len(rows), dtype=np.bool_)
    if texts is not None:
        there = np.flatnonzero((rows >= 0) & (texts != 0))
        changed[there] = index.snapshot.table["text"][rows[there]] != texts[there]
    return changed
