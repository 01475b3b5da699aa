"""Builds the arrays of an index's graph from the rows of its database, whenever they are needed.

The slow results, the vectors of names and each entity's list of nearest entities, are stored, so that they are
computed only for new names. For an index in a folder, the arrays are a file in its cache, named by the stamp of the
graph; for any other index, each process builds its own arrays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.contracts.errors import IndexMismatch, IndexNotFound, RasError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import reopened_embedder
from ras_agent.tools.kg.arrays import SparseRows, Vectors
from ras_agent.tools.kg.assemble import (
    EQUIVALENT,
    Occurrences,
    assemble,
    with_equivalences,
)
from ras_agent.tools.kg.disk import SavedGraph, described, read_graph, write_graph
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.edits import Anchor, Edit, edited
from ras_agent.tools.kg.equivalence import (
    IMPORTED,
    Equivalence,
    comparable,
    mutual,
    near_lists,
    near_lists_after,
)
from ras_agent.tools.kg.facts import Reading, read_facts
from ras_agent.tools.kg.graph_state import GraphSettings, GraphState, read_graph_state
from ras_agent.tools.kg.vector_rows import (
    NEAR,
    Numbered,
    put_near,
    read_near,
    read_vectors,
)
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction

CACHE = "graph"
"""The folder for graph arrays in the cache of an index."""
_HELD = 4  # how many graphs of databases without a folder this process keeps

OnProgress = Callable[[str, int, int], None]
"""Called with a stage, the number of its finished steps, and the number of all its steps."""


class Stored(NamedTuple):
    """Holds the parts of an earlier graph that can be used again. Other vectors are read from the database on demand."""

    database: Database
    maker: int
    """The number of the embedder that made the vectors."""
    dimension: int
    """The number of components of a vector."""
    vectors: Numbered
    """The vectors of names."""
    near: Mapping[int, bytes] | None
    """The stored lists of nearest names; None if they have to be computed from scratch."""

    def of(self, names: Ints) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Return the vectors (n, d) of the names with these numbers, and a mask (n,) of the names that have a vector."""
        vectors = np.zeros((len(names), self.dimension), dtype=np.float16)
        places = self.vectors.at(names)
        known = places >= 0
        if known.any():
            vectors[known] = self.vectors.rows[places[known]]
        left = np.flatnonzero(~known & (names >= 0))
        if len(left):
            with self.database.reading() as transaction:
                read = read_vectors(
                    transaction, self.database, self.maker, self.dimension, names[left]
                )
            places = read.at(names[left])
            there = left[places >= 0]
            vectors[there] = read.rows[places[places >= 0]]
            known[there] = True
        return vectors, known


def read_stored(
    transaction: Transaction,
    database: Database,
    state: GraphState,
    now: GraphSettings,
    before: SavedGraph | None = None,
) -> Stored:
    """Return the stored parts that a graph with the settings `now` can use again.

    Args:
        before: the last graph, if it is in memory or in the cache.
    """
    was = state.settings
    vectors = Numbered(np.empty(0, np.int64), np.empty((0, 0), np.float16))
    near = None
    if now.embedder is None:
        return Stored(database, 0, 0, vectors, None if was.embedder else {})
    same = was.embedder == now.embedder
    if (
        same
        and before
        and before.arrays.entity_vectors is not None
        and before.arrays.relation_vectors is not None
    ):
        rows = np.concatenate(
            [before.arrays.entity_vectors, before.arrays.relation_vectors]
        )
        numbers, first = np.unique(before.names, return_index=True)
        vectors = Numbered(numbers, rows[first])
    if same and was.equivalence == now.equivalence:
        near = near_of(before, was) if before else read_near(transaction, database)
    return Stored(database, now.maker, now.embedder.dimension, vectors, near)


def near_of(saved: SavedGraph, settings: GraphSettings) -> dict[int, bytes]:
    """Return the lists of nearest names in a saved graph in the form that is stored, by the number of the name.

    Returns {} if the graph has no lists, or if its equivalences are imported.
    """
    lists = saved.arrays.near
    if lists is None or settings.equivalence.kind == IMPORTED:
        return {}
    numbers = np.asarray(saved.names)[: len(saved.arrays.entities)]
    cells = np.empty(len(lists.columns), NEAR)
    cells["name"] = numbers[lists.columns]
    cells["cosine"] = lists.values
    data = cells.tobytes()
    places = pairwise((lists.starts * NEAR.itemsize).tolist())
    pairs = zip(numbers.tolist(), places, strict=True)
    return {number: data[start:end] for number, (start, end) in pairs}


@dataclass(frozen=True, slots=True)
class MadeGraph:
    """Holds a new graph, and the data about it that are to be stored."""

    saved: SavedGraph
    """The graph. A name that has no number yet has the number -1."""
    settings: GraphSettings
    fresh: Ints
    """The positions of the names that were newly embedded, entities first, then relations."""

    def names_without_number(self) -> list[str]:
        """Return the names that have no number yet."""
        arrays = self.saved.arrays
        count = len(self.saved.arrays.entities)
        return [
            arrays.entities[at] if at < count else arrays.relations[at - count]
            for at in np.flatnonzero(self.saved.names < 0).tolist()
        ]

    def numbered(self, numbers: Sequence[int]) -> MadeGraph:
        """Return the same graph, with `numbers` for the names that had no number."""
        names = self.saved.names.copy()
        names[names < 0] = numbers
        return replace(self, saved=self.saved._replace(names=names))

    def store(
        self, transaction: Transaction, before: Mapping[int, bytes] | None
    ) -> None:
        """Store the vectors of newly embedded names, and the lists of nearest names that differ from `before`; see
        `put_near`.
        """
        arrays = self.saved.arrays
        if (
            len(self.fresh)
            and arrays.entity_vectors is not None
            and arrays.relation_vectors is not None
        ):
            count = len(arrays.entities)
            vectors = [
                arrays.entity_vectors[at]
                if at < count
                else arrays.relation_vectors[at - count]
                for at in self.fresh.tolist()
            ]
            transaction.vectors.put(
                self.settings.maker,
                self.saved.names[self.fresh].tolist(),
                np.stack(vectors),
            )
        put_near(transaction, before, near_of(self.saved, self.settings))


def make_graph(
    reading: Reading,
    found: Occurrences,
    settings: GraphSettings,
    stored: Stored,
    embed: Callable[[list[str], list[int]], Vectors],
    report: OnProgress = lambda *_: None,
) -> MadeGraph:
    """Build the graph from the rows that were read and their occurrences after all edits.

    Args:
        reading: the rows that were read.
        found: the occurrences after all edits.
        stored: the parts of an earlier graph that can be used again.
        embed: takes names without a vector, and their numbers (-1 for a name without a number); returns their
            vectors.
        report: receives the stage, the number of its finished steps, and the number of all its steps.
    """
    how = settings.equivalence
    assembled = assemble(found, exact=settings.exact, equivalences=how.kind == IMPORTED)
    graph = replace(assembled.graph, texts=reading.texts[assembled.documents])
    # names that occur only in edits have no number yet, and the equivalence relation may have none either
    known = np.append(
        reading.names, np.full(len(found.names) - len(reading.names) + 1, -1)
    )
    known[-1] = known[[*found.names.find_all(EQUIVALENT), -1][0]]
    numbers = known[np.concatenate([assembled.entities, assembled.relations])]
    fresh = np.empty(0, np.int64)
    if settings.embedder is not None:
        count = len(graph.entities)
        entities = list(graph.entities)
        vectors, fresh = _vectors_of(
            [*entities, *graph.relations], numbers, stored, embed
        )
        graph = replace(
            graph, entity_vectors=vectors[:count], relation_vectors=vectors[count:]
        )
        report("comparing", 0, count)
        lists = _near(
            vectors[:count],
            numbers[:count],
            comparable(entities),
            how,
            stored.near or {},
        )
        graph = replace(graph, near=lists)
        graph = (
            graph if how.kind == IMPORTED else with_equivalences(graph, *mutual(lists))
        )
    manifest = described(
        graph, settings.embedder, ", ".join(reading.readers), how, exact=settings.exact
    )
    return MadeGraph(SavedGraph(graph, manifest, numbers), settings, fresh)


def _vectors_of(
    names: Sequence[str],
    numbers: Ints,
    stored: Stored,
    embed: Callable[[list[str], list[int]], Vectors],
) -> tuple[Vectors, Ints]:
    """Return the vectors of names, and the positions of the names that had to be embedded, each name once."""
    vectors, known = stored.of(numbers)
    first: dict[str, int] = {}
    missing = np.flatnonzero(~known).tolist()
    for at in missing:
        first.setdefault(names[at], at)
    # sorted by length, so that texts of similar length share a batch, with less padding
    left = sorted(first.values(), key=lambda at: len(names[at]))
    if left:
        texts = [names[at] for at in left]
        vectors[left] = embed(texts, numbers[left].tolist())
        for at in missing:
            vectors[at] = vectors[first[names[at]]]
    return vectors, np.array(sorted(left), np.int64)


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
    is_new = np.array([data is None for data in lists])
    sizes = np.array([len(data or b"") for data in lists]) // NEAR.itemsize
    cells = np.frombuffer(b"".join(filter(None, lists)), NEAR)
    numbered = np.flatnonzero(numbers >= 0)
    end = 1 + max(numbers.max(initial=-1), cells["name"].max(initial=-1))
    place_of = np.full(end, -1, np.int32)
    place_of[numbers[numbered]] = numbered
    columns = place_of[cells["name"]]
    rows = SparseRows(offsets_of(sizes), columns, cells["cosine"], len(numbers))
    return near_lists_after(rows, is_new, vectors, classes, how)


def embed_with(embedder: Embedder, names: Sequence[str], dimension: int) -> Vectors:
    """Return the vectors of names, (len(names), dimension). Raises IndexMismatch if the embedder's vectors have
    another size.
    """
    vectors: Vectors = np.asarray(embedder.embed(list(names)), dtype=np.float16)
    if vectors.shape != (len(names), dimension):
        raise IndexMismatch(
            f"embedder {embedder.name!r} gave an array of shape {vectors.shape} for {len(names)} texts, instead of "
            f"({len(names)}, {dimension}): correct its `embed` or its `dimension`"
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
        saved = at_hand(state, cache)
        work = None if saved else _Work.read(transaction, database, state, edits)
    if saved is None:
        assert work
        saved = work.make(embedder).saved
        if cache is None:
            _hold(state.stamp, saved)
    return saved, edits


def keep_graph(database: Database, cache: Path | None) -> None:
    """Save the arrays of the last published graph, unless they are saved already, and delete the arrays of earlier
    ones.

    If a vector is missing and the embedder cannot be loaded, nothing is saved; the arrays are then built when the
    graph is opened.
    """
    with database.reading() as transaction:
        state = read_graph_state(transaction, database)
        missing = state is not None and state.published and not _is_kept(state, cache)
        work = (
            _Work.read(transaction, database, state, read_edits(transaction, database))
            if state and missing
            else None
        )
    made = None
    if work and state:
        try:
            made = work.make()
        except _NoEmbedder:
            made = None
    if made is None and (cache is None or not (cache / CACHE).exists()):
        return
    with database.writing() as transaction:
        now = read_graph_state(transaction, database)
        if made and work and state and now and now.stamp == state.stamp:
            made.store(transaction, work.stored.near)
            save_made(cache, state.stamp, made.saved)
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


class _NoEmbedder(RasError):
    """Reports that a vector is missing and that the graph's embedder cannot be loaded by its name."""


class _Work(NamedTuple):
    """Holds everything that a graph is made from, as read in one transaction."""

    database: Database
    settings: GraphSettings
    reading: Reading
    edits: tuple[Edit, ...]
    stored: Stored

    @classmethod
    def read(
        cls,
        transaction: Transaction,
        database: Database,
        state: GraphState,
        edits: tuple[Edit, ...],
    ) -> _Work:
        reading = read_facts(transaction, database, state.published)
        stored = read_stored(transaction, database, state, state.settings)
        return cls(database, state.settings, reading, edits, stored)

    def make(self, embedder: Embedder | None = None) -> MadeGraph:
        """Make the graph. Raises _NoEmbedder if a vector is missing and its embedder cannot be loaded."""

        def embed(names: list[str], numbers: list[int]) -> Vectors:
            identity = self.settings.embedder
            chosen = embedder
            assert identity
            if chosen is None:
                try:
                    chosen = reopened_embedder(
                        identity.name, identity.dimension, self.database.where
                    )
                except RasError as error:
                    raise _NoEmbedder(str(error)) from error
            return embed_with(chosen, names, identity.dimension)

        found = self.reading.found
        if self.edits:
            found, _ = edited(
                found,
                self.edits,
                _all,
                self.reading.text_of(),
                exact=self.settings.exact,
            )
        return make_graph(self.reading, found, self.settings, self.stored, embed)


def _all(anchors: Iterable[Anchor]) -> set[Anchor]:
    """Return all given passages: stored edits name only passages that still exist."""
    return set(anchors)


_held: dict[int, SavedGraph] = {}
"""The last graphs that this process made of databases without a folder, by stamp."""


def _hold(stamp: int, saved: SavedGraph) -> None:
    _held[stamp] = saved
    while len(_held) > _HELD:
        _held.pop(next(iter(_held)), None)


def at_hand(state: GraphState, cache: Path | None) -> SavedGraph | None:
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
