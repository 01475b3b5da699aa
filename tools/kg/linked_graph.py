"""What retrievers of one knowledge graph share: how questions lead into it, and how it leads to passages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.protocols import Embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.beside import graph_beside, linker_for, rows_of_documents
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linking import EntityLinker, Linking, Mentions

__all__ = ["LinkedGraph"]


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
