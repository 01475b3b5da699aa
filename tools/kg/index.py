"""Opens the knowledge graph of a corpus for reading: from an index, from a file of arrays, or built in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from ras_agent.config.address import Address, place_of
from ras_agent.contracts.arrays import Ints, offsets_of
from ras_agent.contracts.errors import IndexMismatch, UnknownName
from ras_agent.contracts.records import Source, Triple
from ras_agent.running.protocols import Embedder
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.embed.embedders import (
    of_unit_length,
    reopened_embedder,
    resolve_embedder,
)
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.missing import index_not_found
from ras_agent.tools.index.passages import hashes
from ras_agent.tools.index.snapshot import read_state
from ras_agent.tools.index.store import CACHE, PassageIndex, database_at
from ras_agent.tools.kg.arrays import (
    KGArrays,
    SparseRows,
    Vectors,
)
from ras_agent.tools.kg.assemble import (
    occurrences_of,
    part_of,
    without_documents,
)
from ras_agent.tools.kg.disk import KGManifest, described, read_graph
from ras_agent.tools.kg.edits import Edit, MergedNames, key_of, persons_of, split_names
from ras_agent.tools.kg.equivalence import IMPORTED, Equivalence
from ras_agent.tools.kg.facts import Reading, read_others
from ras_agent.tools.kg.graph_state import GraphSettings, read_graph_state
from ras_agent.tools.kg.make import make_graph, open_graph
from ras_agent.tools.kg.notes import noted
from ras_agent.tools.kg.other_nodes import DOCUMENT, Node, OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.store.database import Database


class KGIndex:
    """Reads a knowledge graph: its entities, relations and edges, and the documents that name the entities.

    KGArrays describes the shapes and the order. A KGIndex never changes: writing publishes another graph. It may be
    read from several threads at once.
    """

    is_part = False
    """Whether this graph is a part of the one in the database, made by `within`."""

    def __init__(
        self,
        arrays: KGArrays,
        manifest: KGManifest,
        embedder: Embedder | None = None,
        database: Database | None = None,
        edits: tuple[Edit, ...] = (),
        others: OtherNodes | None = None,
    ) -> None:
        """Combine the parts of a graph; `open`, `of_file` and `in_memory` build them.

        Args:
            embedder: embeds queries; by default the embedder that the manifest names is loaded when it is first
                needed.
            database: the database of the graph's index.
            edits: the edits that persons made, oldest first.
            others: the nodes of an imported graph that are neither entities nor documents, and their edges.
        """
        self.arrays = arrays
        self.manifest = manifest
        self.database = database
        self.others = others or OtherNodes()
        self._embedder = embedder
        self._edits = edits
        self.entities = arrays.entities
        """The N names of the entities, in ascending order of their canonical keys."""
        self.keys: Sequence[str] = arrays.keys
        """The canonical keys of the entities, ascending."""
        self.relations = arrays.relations
        """The names of the R relations; the last one is the equivalence relation."""
        self.equivalence_relation = len(arrays.relations) - 1
        """The number of the equivalence relation, R - 1."""
        self.edges = arrays.edges
        """The edges, (E, 3) int32: head, relation and tail. The facts come first, then the equivalences; no
        inverses.
        """
        self.facts = range(arrays.facts)
        """The numbers of the edges that are facts."""
        self.equivalences = range(arrays.facts, len(arrays.edges))
        """The numbers of the edges that are equivalences.

        Each pair occurs once, with the lower number as its head; imported equivalences keep their directions.
        """
        self.similarities = arrays.similarities
        """The cosine of each edge in `equivalences`, in the same order."""
        self.mentions = arrays.mentions
        """How often each document names each entity, as a sparse matrix (N, D)."""
        self.documents = arrays.documents
        """The ids of the D passages that were read, ascending."""
        self.entity_vectors = arrays.entity_vectors
        """(N, d) unit vectors of the entities, or None without an embedder."""
        self.relation_vectors = arrays.relation_vectors
        """(R, d) unit vectors of the relations, or None without an embedder."""

    @classmethod
    def open(
        cls, index: str | Path | Address | PassageIndex, embedder: object = None
    ) -> Self:
        """Open the graph that was last published in an index.

        Args:
            embedder: embeds queries, by name or as an object; by default the embedder of the graph's vectors.

        Raises:
            IndexNotFound: if there is no index or no graph.
            IndexMismatch: if the graph is damaged, of another version, or made with another embedder.
        """
        resolved = None if embedder is None else resolve_embedder(embedder)
        if isinstance(index, PassageIndex):
            database = index.database
            cache = index.cache
        else:
            place = place_of(index)
            database = database_at(place)
            cache = None
            if isinstance(place, Path):
                cache = place / CACHE
                if not PassageIndex.exists(place):
                    raise index_not_found(
                        place,
                        "make one with `ras-agent index`, then `ras-agent kg build`",
                    )
        with database.reading() as transaction:
            read_state(transaction, database)
            state = read_graph_state(transaction, database)
            others = read_others(transaction, database)
        if state and resolved is not None:
            made = state.settings.embedder
            if made != EmbedderIdentity(resolved.name, resolved.dimension):
                made_with = f"the embedder {made}" if made else "no embedder"
                raise IndexMismatch(
                    f"the graph of {database.where} was built with {made_with}, not with {resolved.name!r}: open it "
                    f"without an embedder, or build the graph again with {resolved.name!r}"
                )
        saved, edits = open_graph(database, cache, resolved)
        return cls(saved.arrays, saved.manifest, resolved, database, edits, others)

    @classmethod
    def of_file(cls, path: Path, remedy: str) -> Self:
        """Open the graph in a file of arrays. Raises as `read_graph` does."""
        saved = read_graph(path, remedy)
        return cls(saved.arrays, saved.manifest)

    @classmethod
    def in_memory(
        cls,
        passages: Iterable[PassageFacts],
        embedder: object = None,
        *,
        equivalence: Equivalence | None = None,
        extractor: str = "",
        edges: Iterable[UnstatedEdge] = (),
        exact: bool = False,
    ) -> Self:
        """Build a graph from the facts of `passages`, and from imported `edges` that no passage states.

        Args:
            embedder: gives the graph vectors, and equivalence edges unless these are imported.
            equivalence: sets which entities are equivalent.
            extractor: the name of the extractor that read the facts.
            exact: see KGManifest.
        """
        found = occurrences_of(passages, edges)
        reading = Reading(found, None, (extractor,), np.full(len(found.names), -1))
        settings = GraphSettings(None, equivalence or Equivalence(), exact)
        resolved = None
        if embedder is not None:
            resolved = of_unit_length(resolve_embedder(embedder))
            identity = EmbedderIdentity(resolved.name, resolved.dimension)
            settings = replace(settings, embedder=identity)

        def embed(names: Sequence[str]) -> Vectors:
            assert resolved
            return resolved.embed(names)

        made = make_graph(reading, found, settings, embed, None)
        return cls(made.arrays, made.manifest, resolved)

    @staticmethod
    def exists(index: str | Path | Address | PassageIndex) -> bool:
        """Return whether there is an index with a published graph. Raises StoreError for a database that cannot be
        reached.
        """
        if not isinstance(index, PassageIndex) and not PassageIndex.exists(index):
            return False
        if isinstance(index, PassageIndex):
            database = index.database
        else:
            database = database_at(place_of(index))
        with database.reading() as transaction:
            if not isinstance(index, PassageIndex):
                read_state(transaction, database)
            state = read_graph_state(transaction, database)
        return state is not None and state.published > 0

    @property
    def where(self) -> str:
        """Return the path or address of the graph's index, as commands take it; "INDEX" for a graph in memory."""
        return self.database.where if self.database else "INDEX"

    @property
    def fingerprint(self) -> str:
        """Return a digest of the graph, its extractor and its embedder, to be a cache key of results computed from the
        graph.
        """
        manifest = self.manifest
        return f"{manifest.fingerprint}/{manifest.extractor}/{manifest.embedder or 'no embedder'}"

    def without(self, documents: npt.NDArray[np.bool_]) -> Self:
        """Return this graph without the facts of certain documents. Entities and relations keep their numbers.

        Args:
            documents: (D,), True for these documents.
        """
        arrays = without_documents(self.arrays, documents)
        manifest = self._manifest_of(arrays)
        gone = self.arrays.documents.take(np.flatnonzero(documents))
        others = self.others.without({Node(DOCUMENT, name) for name in gone})
        return type(self)(
            arrays, manifest, self._embedder, self.database, self._edits, others
        )

    def within(
        self,
        admitted: npt.NDArray[np.bool_],
        left_out: npt.NDArray[np.bool_] | None = None,
    ) -> Self:
        """Return a smaller graph with only the admitted documents and the names in their facts, which get new numbers.

        Nodes that are neither entities nor documents are left out, since they may reveal something about any
        document.

        Args:
            admitted: (D,), True for these documents.
            left_out: (S,), True for the places in the admitted documents whose facts are left out.
        """
        arrays = part_of(
            self.arrays,
            admitted,
            imported=self.manifest.equivalence.kind == IMPORTED,
            left_out=left_out,
        )
        manifest = self._manifest_of(arrays)
        part = type(self)(arrays, manifest, self._embedder, self.database, self._edits)
        part.is_part = True
        return part

    def _manifest_of(self, part: KGArrays) -> KGManifest:
        made = self.manifest
        return described(
            part, made.embedder, made.extractor, made.equivalence, exact=made.exact
        )

    @property
    def embedder(self) -> Embedder | None:
        """Return the embedder of queries; None for a graph without vectors. Raises RasError if it cannot be loaded."""
        if self._embedder is None and self.manifest.embedder:
            known = self.manifest.embedder
            self._embedder = reopened_embedder(known.name, known.dimension, self.where)
        return self._embedder

    def entity_id(self, text: str) -> int | None:
        """Return the number of the entity with this name, compared by canonical keys; None if the graph does not
        contain it.

        In an exact graph, the entity with exactly this name is preferred to the one with the same canonical key
        that most documents name. The name of an entity that a person merged leads to the other entity.
        """
        found = self.arrays.keys.find(self._key(text, "entity"))
        if found is None:
            found = self._merged(text)
        if found is None and self.manifest.exact:
            found = self._by_canonical_key.get(canonical_key(text))
        return found

    def relation_id(self, text: str) -> int | None:
        """Return the number of the relation with this name; None if the graph has no such relation. Equivalence is
        never returned.
        """
        return self.arrays.relation_keys.find(self._key(text, "relation"))

    def _key(self, text: str, kind: str) -> str:
        return key_of(_name(text, kind), exact=self.manifest.exact)

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """Return the edits that persons made, oldest first; a graph in memory has no edits.

        A part of a graph has only the edits that refer to one of its passages, since others would reveal facts of
        other texts.
        """
        if not self.is_part:
            return self._edits
        edits = []
        for edit in self._edits:
            numbers = [self.document_id(one.passage_id) for one in edit.anchors]
            if any(number is not None for number in numbers):
                edits.append(edit)
        return tuple(edits)

    def made_by(self, triple: Triple) -> Edit | None:
        """Return the edit by which a person added this fact or replaced another by it; None for a fact that was read
        in a text.
        """
        if not self._made:
            return None
        words = (triple.subject, triple.predicate, triple.object)
        keys = [key_of(word, exact=self.manifest.exact) for word in words]
        return self._made.get(tuple(keys))

    @cached_property
    def _made(self) -> dict[tuple[str, ...], Edit]:
        return persons_of(self.edits, exact=self.manifest.exact)

    @cached_property
    def split_names(self) -> dict[str, list[str]]:
        """Return the names that persons split off from each entity, by the entity's key."""
        return split_names(self.edits, exact=self.manifest.exact)

    @cached_property
    def merged_names(self) -> MergedNames:
        """Return the current names of the entities that persons merged into others."""
        return MergedNames(self.edits, exact=self.manifest.exact)

    def _merged(self, text: str) -> int | None:
        """Return the entity into which a person merged the entity named `text`, or None."""
        if not self.merged_names:
            return None
        name = self.merged_names.of(text)
        key = key_of(name, exact=self.manifest.exact)
        return self.arrays.keys.find(key)

    @cached_property
    def _by_canonical_key(self) -> dict[str, int]:
        """Return by canonical key the entity that most documents name among those sharing the key; ties go to the
        lowest number."""
        # a later entity replaces earlier ones with the same key
        downwards = -np.arange(len(self.entities))
        ascending = np.lexsort((downwards, self.document_frequency))
        return {canonical_key(self.entities[one]): one for one in ascending.tolist()}

    def document_id(self, passage_id: str) -> int | None:
        """Return the number of the document with this passage id; None if the graph does not contain it."""
        return self.arrays.documents.find(_name(passage_id, "document"))

    @cached_property
    def document_hashes(self) -> npt.NDArray[np.uint64]:
        """Return the hash of each document's id, shape (D,), computed as in a passage index."""
        return hashes(self.documents)

    @cached_property
    def document_frequency(self) -> npt.NDArray[np.int64]:
        """Return how many documents name each entity, shape (N,)."""
        return self.arrays.mentions.row_sizes()

    @cached_property
    def degrees(self) -> Ints:
        """Return the number of edges of each entity, shape (N,); a loop counts twice."""
        ends = self.edges[:, [0, 2]].ravel()
        return np.bincount(ends, minlength=len(self.entities))

    @cached_property
    def documents_to_entities(self) -> SparseRows:
        """Return how often each document names each entity, as a sparse matrix (D, N): the transpose of `mentions`."""
        mentions = self.arrays.mentions
        entities = mentions.entry_rows()
        height, width = mentions.shape
        return SparseRows.counted(
            mentions.columns, entities, (width, height), mentions.values
        )

    def neighbours(self, entity: int) -> npt.NDArray[np.int32]:
        """Return the entities that an edge joins to this one, ascending. Raises UnknownName if no entity has this
        number.
        """
        rows = self.edges[self.edges_of(entity)]
        others = np.setdiff1d(rows[:, [0, 2]], [entity])
        return others.astype(np.int32)

    def edges_of(self, entity: int) -> Ints:
        """Return the numbers of the edges of an entity, ascending. Raises UnknownName if no entity has this number."""
        _check(entity, len(self.entities), "entity", "entity_id")
        starts, numbers = self._incident
        start = starts[entity]
        end = starts[entity + 1]
        return numbers[start:end]

    def triple(self, edge: int) -> Triple:
        """Return an edge as a triple, with the passages that state it. Raises UnknownName if no edge has this number.

        Equivalences and some imported facts have no sources.
        """
        _check(edge, len(self.edges), "edge", "edges_of")
        head, relation, tail = self.edges[edge].tolist()
        first = self.arrays.source_starts[edge]
        last = self.arrays.source_starts[edge + 1]
        sources = []
        notes = []
        for document, start, end, note in self.arrays.sources[first:last].tolist():
            source = Source(
                passage_id=self.documents[document],
                start=start,
                end=end,
                extractor=self.manifest.extractor,
            )
            sources.append(source)
            notes.append(self.arrays.notes[note] if note else "")
        triple = Triple(
            subject=self.entities[head],
            predicate=self.relations[relation],
            object=self.entities[tail],
            sources=tuple(sources),
        )
        triple = noted(triple, notes)
        edit = self.made_by(triple) if edge < self.arrays.facts else None
        if edit is None:
            return triple
        at = {anchor.passage_id for anchor in edit.anchors}
        sources = []
        for source in triple.sources:
            if source.passage_id in at:
                source = replace(source, extractor=edit.by)
            sources.append(source)
        return replace(triple, sources=tuple(sources))

    @cached_property
    def _incident(self) -> tuple[Ints, Ints]:
        """Return the edges of each entity as starts (N + 1,) and edge numbers; a loop is listed once."""
        heads = self.edges[:, 0]
        tails = self.edges[:, 2]
        loops = heads == tails
        ends = np.concatenate([heads, tails[~loops]])
        numbers = np.concatenate([np.arange(len(heads)), np.flatnonzero(~loops)])
        order = np.lexsort((numbers, ends))
        counts = np.bincount(ends, minlength=len(self.entities))
        return offsets_of(counts), numbers[order]


def _name(text: str, kind: str) -> str:
    if not isinstance(text, str):
        raise UnknownName(kind, text, ("names, which are texts",))
    return text


def _check(number: int, count: int, kind: str, found_by: str) -> None:
    """Raise UnknownName unless `number` is from 0 to `count` - 1; numpy would count a negative number from the end."""
    if not isinstance(number, int | np.integer) or not 0 <= number < count:
        known = "none"
        if count:
            known = f"numbers from 0 to {count - 1}, as {found_by}() finds them"
        raise UnknownName(kind, number, (known,))
