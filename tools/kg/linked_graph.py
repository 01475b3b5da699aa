"""Connects a passage index with the knowledge graph of its passages: from questions to entities to passages."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from ras_agent.config.address import as_argument
from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.question_graph.times import (
    is_date,
    period_of_fact,
    stated_period,
    year_of,
)
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import UNSCALED, of_unit_length
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import find_rows
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking, Mentions
from ras_agent.tools.store.sqlite import IN_MEMORY


@dataclass(frozen=True, slots=True)
class LinkedGraph:
    """Holds a graph and its linker for several retrievers, so that a question is linked and embedded only once."""

    graph: KGIndex
    rows: npt.NDArray[np.int64]
    """(D,), the row of each of the graph's documents in the index, -1 for a document that is not there."""
    linker: EntityLinker
    embedder: Embedder | None
    """The embedder of the graph's vectors, which caches queries; None for a graph without vectors."""
    queries: Embedder | None
    """The same embedder if it also made the index's vectors, for dense search; otherwise None."""
    linking: Linking | None = None
    """The argument `linking` with which the linker was made."""
    mentions: Mentions | None = None
    """The argument `mentions` with which the linker was made."""
    filter: Filter = ALL
    """The filter of the index; the graph has only facts of passages that it admits."""

    @classmethod
    def of(
        cls,
        index: PassageIndex,
        graph: KGIndex | LinkedGraph | None = None,
        linking: Linking | None = None,
        mentions: Mentions | None = None,
    ) -> LinkedGraph:
        """Return the index's graph, or `graph`, with its linker. A LinkedGraph with the filter of the index is
        returned unchanged.

        If the index has a filter, the facts of other passages are left out.

        Args:
            linking, mentions: see `EntityLinker`.

        Raises:
            IndexMismatch: if there is no graph, or if its vectors were made by another embedder.
        """
        if isinstance(graph, LinkedGraph):
            if graph.filter == index.filter:
                return graph
            linking = linking or graph.linking
            mentions = mentions or graph.mentions
            graph = graph.graph
        known = graph_of(index) if graph is None else graph_within(index, graph)
        linker = linker_for(index, known, linking, mentions)
        embedder = linker.embedder
        shared = index.snapshot.manifest.embedder == known.manifest.embedder
        queries = embedder if shared else None
        rows = rows_of_documents(index, known)
        return cls(
            known, rows, linker, embedder, queries, linking, mentions, index.filter
        )


def _way_to_a_graph(index: PassageIndex) -> str:
    if index.database.where == IN_MEMORY:
        return (
            "index the passages in a folder, `ras-agent index CORPUS --out my.index`, and build a graph there, "
            "`ras-agent kg build my.index`, or give one, retriever(..., graph=...)"
        )
    return (
        f"make it with `ras-agent kg build {as_argument(index)}`, or give one, "
        "retriever(..., graph=...)"
    )


def graph_of(index: PassageIndex) -> KGIndex:
    """Open the graph of an index, without the facts of texts that are no longer in the index.

    Raises IndexMismatch if there is no graph.
    """
    if not KGIndex.exists(index):
        raise IndexMismatch(f"{index} has no knowledge graph: {_way_to_a_graph(index)}")
    graph = KGIndex.open(index)
    if index.filter:
        return graph_within(index, graph)
    texts = graph.arrays.texts
    if texts is None:
        return graph
    rows = _rows(index, graph)
    # if the text is unknown, the index may never have held the document
    gone = _changed(index, graph, rows) | ((rows < 0) & (texts != 0))
    return graph.without(gone) if gone.any() else graph


def graph_within(index: PassageIndex, graph: KGIndex) -> KGIndex:
    """Return the part of `graph` that the passages of `index` state; the whole graph if the index has no filter.

    If the filter has a date, facts that are known to hold only at other times are left out.
    """
    if not index.filter:
        return graph
    rows = _rows(index, graph)
    admitted = (rows >= 0) & ~_changed(index, graph, rows)
    date = index.filter.as_of
    if not is_date(date):
        return graph.within(admitted)
    return graph.within(admitted, _of_other_times(index, graph, rows, year_of(date)))


def _of_other_times(
    index: PassageIndex, graph: KGIndex, rows: npt.NDArray[np.int64], time: float
) -> npt.NDArray[np.bool_]:
    """Return a mask of the graph's sources, (S,), whose facts are known not to hold at a time.

    A fact's time is the period in its attributes and the one in its sentence, as in `facts_at`.
    """
    sources = graph.arrays.sources
    holds = []
    for note in graph.arrays.notes:
        attributes = json.loads(note or "{}").get("fact", {})
        holds.append(stated_period(attributes).holds_at(time))
    notes = np.array(holds, dtype=np.bool_)
    left_out: npt.NDArray[np.bool_] = ~notes[sources["note"]]
    order = np.argsort(sources["document"], kind="stable")
    edges = graph.arrays.source_edges()
    document = -1
    text = ""
    for place in order[rows[sources["document"][order]] >= 0].tolist():
        number, start, end, _ = sources[place].tolist()
        if number != document:
            document = number
            text = index.passages[int(rows[number])].text
        head, relation, tail = graph.edges[edges[place]].tolist()
        period = period_of_fact(
            text[start:end],
            graph.entities[head],
            graph.relations[relation],
            graph.entities[tail],
        )
        if period is not None and not period.holds_at(time):
            left_out[place] = True
    return left_out


def linker_for(
    index: PassageIndex,
    graph: KGIndex,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
) -> EntityLinker:
    """Build the linker of a graph. It shares the embedder of the index if that embedder also made the graph's vectors,
    and caches the vectors of queries.

    Raises IndexMismatch if the graph's vectors were made by another embedder.
    """
    identity = index.snapshot.manifest.embedder
    own = graph.manifest.embedder
    embedder: Embedder | None = None
    if own is not None:
        if identity is not None and identity.name == f"{UNSCALED}{own.name}":
            embedder = of_unit_length(cast(Embedder, index.embedder))
        else:
            embedder = index.embedder if identity == own else graph.embedder
    if (
        embedder is not None
        and EmbedderIdentity(embedder.name, embedder.dimension) != own
    ):
        raise IndexMismatch(
            f"the vectors of the graph {graph.where} are of {own}, not of {embedder.name!r}: build the graph with "
            f"`ras-agent kg build {as_argument(graph.where)} --embedder {embedder.name}`"
        )
    if embedder is not None:
        embedder = remembering(embedder)
    return EntityLinker(graph, embedder, linking=linking, mentions=mentions)


def rows_of_documents(index: PassageIndex, graph: KGIndex) -> npt.NDArray[np.int64]:
    """Return the row in the index of each of the graph's documents, (D,); -1 if the passage is gone or its text has
    changed.

    Warns if the graph lacks passages of the index, or has read older versions of them: these cannot be found by the
    graph.
    """
    count = len(index)
    rows = _rows(index, graph)
    changed = _changed(index, graph, rows)
    unknown = {
        "are not in": count - np.count_nonzero(rows >= 0),
        "have changed since they were read into": np.count_nonzero(changed),
    }
    for what, number in unknown.items():
        if number:
            where = index.path or index.database.where
            warnings.warn(
                f"{number:,} of {count:,} passages {what} the knowledge graph and cannot be found through it: "
                f"`ras-agent kg build {as_argument(where)}` brings it up to date",
                stacklevel=3,
            )
    return np.where(changed, -1, rows)


def _rows(index: PassageIndex, graph: KGIndex) -> npt.NDArray[np.int64]:
    return find_rows(index.snapshot.table["id"], graph.document_hashes)


def _changed(
    index: PassageIndex, graph: KGIndex, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return a mask of the graph's documents, (D,), whose passages had another text when they were read."""
    texts = graph.arrays.texts
    changed = np.zeros(len(rows), dtype=np.bool_)
    if texts is not None:
        there = np.flatnonzero((rows >= 0) & (texts != 0))
        changed[there] = index.snapshot.table["text"][rows[there]] != texts[there]
    return changed
