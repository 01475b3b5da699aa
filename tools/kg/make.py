"""Builds the arrays of an index's graph from the rows of its database, whenever they are needed.

The slow results, the vectors of names and each entity's list of nearest entities, are stored, so that they are
computed only for new names. For an index in a folder, the arrays are a file in its cache, named by the stamp of the
graph; for any other index, each process builds its own arrays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.contracts.errors import IndexMismatch, IndexNotFound, RasError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import reopened_embedder
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import hash_of
from ras_agent.tools.kg.arrays import SparseRows, Vectors
from ras_agent.tools.kg.assemble import (
    Occurrences,
    assemble,
    with_equivalences,
)
from ras_agent.tools.kg.disk import SavedGraph, described, read_graph, write_graph
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.edits import Edit, PassageLookup, edited
from ras_agent.tools.kg.equivalence import (
    IMPORTED,
    Equivalence,
    comparable,
    mutual,
    near_lists,
    near_lists_after,
)
from ras_agent.tools.kg.facts import Reading, name_numbers, read_facts
from ras_agent.tools.kg.graph_state import GraphSettings, GraphState, read_graph_state
from ras_agent.tools.kg.text_vectors import NAMES, maker_of, stored_vectors
from ras_agent.tools.kg.vector_rows import (
    NEAR,
    put_near,
    read_near,
)
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction

CACHE = "graph"
"""The folder for graph arrays in the cache of an index."""
_HELD = 4  # how many graphs of databases without a folder this process keeps

OnProgress = Callable[[str, int, int], None]
"""Called with a stage, the number of its finished steps, and the number of all its steps."""


def read_lists(
    transaction: Transaction, database: Database, state: GraphState, now: GraphSettings
) -> Mapping[int, bytes] | None:
    """Return the stored lists of nearest names; None if a graph with the settings `now` cannot use them."""
    was = state.settings
    if now.embedder is None:
        return None if was.embedder else {}
    if was.embedder != now.embedder or was.equivalence != now.equivalence:
        return None
    return read_near(transaction, database)


def near_of(saved: SavedGraph) -> dict[int, bytes]:
    """Return the lists of nearest names in a saved graph in the form that is stored, by the number of the name.

    Returns {} if the graph has no lists, or if its equivalences are imported.
    """
    lists = saved.arrays.near
    if lists is None or saved.manifest.equivalence.kind == IMPORTED:
        return {}
    numbers = np.asarray(saved.names)[: len(saved.arrays.entities)]
    cells = np.empty(len(lists.columns), NEAR)
    cells["name"] = numbers[lists.columns]
    cells["cosine"] = lists.values
    data = cells.tobytes()
    places = pairwise((lists.starts * NEAR.itemsize).tolist())
    pairs = zip(numbers.tolist(), places, strict=True)
    return {number: data[start:end] for number, (start, end) in pairs}


def with_numbers(transaction: Transaction, saved: SavedGraph) -> SavedGraph:
    """Return the same graph with a number for each name that had none; these names are stored with their vectors."""
    arrays = saved.arrays
    count = len(arrays.entities)
    places = np.flatnonzero(saved.names < 0)
    lacking = [
        arrays.entities[at] if at < count else arrays.relations[at - count]
        for at in places.tolist()
    ]
    names = saved.names.copy()
    names[places] = name_numbers(transaction, lacking)
    identity = saved.manifest.embedder
    if arrays.entity_vectors is not None and arrays.relation_vectors is not None:
        assert identity
        rows = []
        for name, at in zip(lacking, places.tolist(), strict=True):
            vector = (
                arrays.entity_vectors[at]
                if at < count
                else arrays.relation_vectors[at - count]
            )
            rows.append((hash_of(name), name, vector.tobytes()))
        transaction.vectors.put_texts(maker_of(NAMES, identity.name), rows)
    return saved._replace(names=names)


def make_graph(
    reading: Reading,
    found: Occurrences,
    settings: GraphSettings,
    embed: Callable[[Sequence[str]], Vectors],
    before: Mapping[int, bytes] | None,
    report: OnProgress = lambda *_: None,
) -> SavedGraph:
    """Build the graph from the rows that were read and their occurrences after all edits.

    Args:
        reading: the rows that were read.
        found: the occurrences after all edits.
        embed: returns the vectors of names.
        before: the lists of nearest names that can be used again.
        report: receives the stage, the number of its finished steps, and the number of all its steps.

    Returns:
        The graph. A name without a number in `reading` has the number -1.
    """
    how = settings.equivalence
    assembled = assemble(found, exact=settings.exact, equivalences=how.kind == IMPORTED)
    texts = reading.texts
    if texts is not None:
        texts = texts[assembled.documents]
    graph = replace(assembled.graph, texts=texts)
    # names that occur only in edits have no number yet; the equivalence relation, numbered -1, gets the last one
    known = np.append(
        reading.names, np.full(len(found.names) - len(reading.names) + 1, -1)
    )
    numbers = known[np.concatenate([assembled.entities, assembled.relations])]
    if settings.embedder is not None:
        count = len(graph.entities)
        entities = list(graph.entities)
        vectors = embed([*entities, *graph.relations])
        graph = replace(
            graph, entity_vectors=vectors[:count], relation_vectors=vectors[count:]
        )
        report("comparing", 0, count)
        lists = _near(
            vectors[:count],
            numbers[:count],
            comparable(entities),
            how,
            before or {},
        )
        graph = replace(graph, near=lists)
        graph = (
            graph if how.kind == IMPORTED else with_equivalences(graph, *mutual(lists))
        )
    manifest = described(
        graph, settings.embedder, ", ".join(reading.readers), how, exact=settings.exact
    )
    return SavedGraph(graph, manifest, numbers)


def _near(
    vectors: Vectors,
    numbers: Ints,
    classes: Ints,
    how: Equivalence,
    before: Mapping[int, bytes],
) -> SparseRows:
    """Return the nearest entities of each entity: from the stored lists where there is one, otherwise by comparison."""
    if not before or how.kind == IMPORTED:
        return near_lists(vectors, classes, how)
    lists = [before.get(number) for number in numbers.tolist()]
    is_new = np.array([data is None for data in lists], np.bool_)
    sizes = np.array([len(data or b"") for data in lists], np.int64) // NEAR.itemsize
    cells = np.frombuffer(b"".join(filter(None, lists)), NEAR)
    numbered = np.flatnonzero(numbers >= 0)
    end = 1 + max(numbers.max(initial=-1), cells["name"].max(initial=-1))
    place_of = np.full(end, -1, np.int32)
    place_of[numbers[numbered]] = numbered
    columns = place_of[cells["name"]]
    rows = SparseRows(offsets_of(sizes), columns, cells["cosine"], len(numbers))
    return near_lists_after(rows, is_new, vectors, classes, how)


class NamedEmbedder:
    """Loads the embedder of a graph when the first name has no vector yet."""

    def __init__(
        self,
        identity: EmbedderIdentity,
        load: Callable[[EmbedderIdentity], Embedder],
    ) -> None:
        self.name = identity.name
        self.dimension = identity.dimension
        self._load = cache(partial(load, identity))

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, (len(texts), dimension). Raises IndexMismatch if they have another size."""
        vectors = np.asarray(self._load().embed(texts), np.float16)
        if vectors.shape != (len(texts), self.dimension):
            raise IndexMismatch(
                f"embedder {self.name!r} gave an array of shape {vectors.shape} for {len(texts)} texts, instead of "
                f"({len(texts)}, {self.dimension}): correct its `embed` or its `dimension`"
            )
        return vectors


# ---- the graph of a database


def open_graph(
    database: Database, cache: Path | None, embedder: Embedder | None = None
) -> tuple[SavedGraph, tuple[Edit, ...]]:
    """Return the last published graph, and the edits of persons in it.

    Args:
        cache: the cache folder of the index; None if it has no such folder.
        embedder: embeds names without a vector; by default the embedder that the graph names.

    Raises:
        IndexNotFound: if there is no graph.
        IndexMismatch: for a damaged graph.
    """
    with database.reading() as transaction:
        state = read_graph_state(transaction, database)
        if state is None or not state.published:
            raise IndexNotFound(
                f"no knowledge graph at {database.where}: build one with `ras-agent kg build`"
            )
        edits = read_edits(transaction, database)
        saved = _at_hand(state, cache)
        work = None if saved else Work.published(transaction, database, state)
    if saved is None:
        assert work
        saved = work.made(embedder)
        if cache is None:
            _hold(state.stamp, saved)
    return saved, edits


def keep_graph(database: Database, cache: Path | None) -> None:
    """Save the arrays of the last published graph, unless they are saved already, and delete the arrays of earlier
    ones.

    If a vector is missing and its embedder cannot be loaded, nothing is saved; the arrays are then built when the
    graph is opened.
    """
    with database.reading() as transaction:
        state = read_graph_state(transaction, database)
        missing = state is not None and state.published and not _is_kept(state, cache)
        work = None
        if state and missing:
            work = Work.published(transaction, database, state)
    made = None
    if work:
        with suppress(RasError):
            made = work.made()
    if made is None and (cache is None or not (cache / CACHE).exists()):
        return
    with database.writing() as transaction:
        now = read_graph_state(transaction, database)
        if made and work and state and now and now.stamp == state.stamp:
            put_near(transaction, work.near, near_of(made))
            save_made(cache, state.stamp, made)
        clear_away(cache, now)


def clear_away(cache: Path | None, state: GraphState | None) -> None:
    """Delete the saved arrays of all other graphs than the one in `state`. Readers that have mapped them can still
    read.
    """
    keep = _file(Path(), state.stamp).name if state else ""
    for path in (
        (cache / CACHE).iterdir()
        if cache is not None and (cache / CACHE).is_dir()
        else ()
    ):
        if path.name.removesuffix(".sum") != keep:
            _remove(path)


def save_made(cache: Path | None, stamp: int, made: SavedGraph) -> None:
    """Save the arrays of a graph that is committed or about to be.

    Args:
        cache: the cache folder of the index; None to keep the arrays in memory.
        stamp: the stamp of the graph.
    """
    if cache is None:
        _hold(stamp, made)
    else:
        path = _file(cache, stamp)
        _remove(path)
        write_graph(path, made)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    # a file in use cannot be deleted on some systems: the next write tries again
    with suppress(FileNotFoundError, PermissionError):
        path.unlink()


class Work(NamedTuple):
    """Holds everything that a graph is made from, as read in one transaction."""

    database: Database
    settings: GraphSettings
    reading: Reading
    edits: tuple[Edit, ...]
    near: Mapping[int, bytes] | None
    """The lists of nearest names that can be used again; see `read_lists`."""

    @classmethod
    def published(
        cls, transaction: Transaction, database: Database, state: GraphState
    ) -> Work:
        """Read what the published graph is made from."""
        reading = read_facts(transaction, database, state.published)
        edits = read_edits(transaction, database)
        near = read_lists(transaction, database, state, state.settings)
        return cls(database, state.settings, reading, edits, near)

    def made(self, embedder: Embedder | None = None) -> SavedGraph:
        """Make the published graph. Raises RasError if a vector is missing and its embedder cannot be loaded."""

        def load(identity: EmbedderIdentity) -> Embedder:
            return embedder or reopened_embedder(
                identity.name, identity.dimension, self.database.where
            )

        # stored edits name only passages that still exist
        made, _ = self.made_with(load, set)
        return made

    def made_with(
        self,
        load: Callable[[EmbedderIdentity], Embedder],
        held: PassageLookup,
        report: OnProgress = lambda *_: None,
    ) -> tuple[SavedGraph, tuple[Edit, ...]]:
        """Make the graph. Returns it with the edits that still apply.

        Args:
            load: returns the embedder; called if a name has no vector yet.
            held: returns which passages still exist with the text that an edit refers to.
            report: receives the stage, the number of its finished steps, and the number of all its steps.
        """

        def embed(names: Sequence[str]) -> Vectors:
            identity = self.settings.embedder
            assert identity
            return stored_vectors(
                self.database,
                NAMES,
                NamedEmbedder(identity, load),
                names,
                part=True,
                # words of an edit that is not committed must not stay behind a kill
                kept=set(self.reading.found.names),
                report=partial(report, "embedding"),
            )

        found = self.reading.found
        edits = self.edits
        if edits:
            texts = self.reading.text_of()
            found, edits = edited(found, edits, held, texts, exact=self.settings.exact)
        made = make_graph(self.reading, found, self.settings, embed, self.near, report)
        return made, edits


_held: dict[int, SavedGraph] = {}
"""The last graphs that this process made of databases without a folder, by stamp."""


def _hold(stamp: int, saved: SavedGraph) -> None:
    _held[stamp] = saved
    while len(_held) > _HELD:
        _held.pop(next(iter(_held)), None)


def _at_hand(state: GraphState, cache: Path | None) -> SavedGraph | None:
    """Return the arrays of the last graph, from the cache or from memory; None if they have to be built. Damaged files
    are deleted.
    """
    if cache is None:
        return _held.get(state.stamp)
    path = _file(cache, state.stamp)
    try:
        return read_graph(path, "delete it")
    except IndexNotFound:
        return None
    except IndexMismatch:
        with suppress(OSError):  # where nothing can be written
            _remove(path)
        return None


def _is_kept(state: GraphState, cache: Path | None) -> bool:
    return (
        state.stamp in _held if cache is None else _file(cache, state.stamp).is_file()
    )


def _file(cache: Path, stamp: int) -> Path:
    return cache / CACHE / format(stamp, "x")
