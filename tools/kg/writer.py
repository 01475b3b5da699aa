"""Brings a graph on disk up to date: reads what is new, erases what is gone, then writes the next generation.

Facts are committed to the store as they are read; replacing kg.json commits the arrays made from them. So a killed
build leaves the graph as it was, and the next one continues where it ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.protocols import Embedder
from ras_agent.records import Failure, Passage
from ras_agent.tools.embed.embedders import of_unit_length, resolve_embedder
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import hash_of, indexed_text
from ras_agent.tools.index.stated_facts import STATED
from ras_agent.tools.kg.arrays import KGArrays, Vectors
from ras_agent.tools.kg.assemble import Occurrences, assemble, with_equivalences
from ras_agent.tools.kg.disk import (
    NAME,
    KGManifest,
    clear_away,
    next_generation,
    open_generation,
    readable_kg_manifest,
    write_generation,
)
from ras_agent.tools.kg.edits import (
    Anchor,
    Edit,
    PassageLookup,
    clear_half_written,
    digest_of_edits,
    edited,
    read_edits,
    write_edits,
)
from ras_agent.tools.kg.equivalence import IMPORTED as IMPORTED_EDGES
from ras_agent.tools.kg.equivalence import Equivalence, comparable, mutual, near_lists, near_lists_after
from ras_agent.tools.kg.extract import Extract
from ras_agent.tools.kg.index import KGIndex, described
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge, facts_in
from ras_agent.tools.kg.store import FactStore, PassageRecord, open_fact_store

STORE = "facts.sqlite"
_AT_ONCE = 1024  # names embedded between two commits
IMPORTED = "given"
"""Names the reader of facts that were imported, not extracted."""


@dataclass(frozen=True, slots=True)
class KGProgress:
    """Says how far a build is: `done` of `total` steps of a stage.

    Stages are "reading" and "assembling" (passages), "embedding" (names), "comparing" (entities), "writing" (edges);
    each begins at 0.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ReadReport:
    """Counts what reading did, in passages. A passage that gave nothing but failures is read again the next time."""

    read: int = 0
    unchanged: int = 0
    erased: int = 0
    failures: tuple[Failure, ...] = ()


class KGWriter:
    """Writes to a graph's folder, alone; made by `open_writer`."""

    def __init__(
        self,
        folder: Path,
        store: FactStore,
        embedder: Embedder | None,
        equivalence: Equivalence,
        on_progress: Callable[[KGProgress], None] | None = None,
        *,
        lost: bool = False,
        exact: bool = False,
    ) -> None:
        """lost: the facts of the graph that is there are gone, so that all passages have to be read before a write.

        exact: see KGManifest.
        """
        self.folder, self._lost, self._exact = folder, lost, exact
        self._store, self._embedder, self._equivalence = store, embedder, equivalence
        self._on_progress = on_progress
        self.edits_gone = 0
        """how many edits of persons went with the texts that they were about"""

    def read(
        self, passages: Iterable[Passage], extract: Extract, reader: str, *, whole: bool = False, total: int = 0
    ) -> ReadReport:
        """Read the facts of passages that are new, have changed, or were read by another reader.

        reader: names the extractor. Imported facts stay as long as their passage's text does. whole: `passages` are all
        there are, and others are erased. total: how many there are, for the progress.
        """
        known, seen, read = self._store.known(), 0, 0
        failures: list[Failure] = []
        there: set[str] = set()
        texts: dict[str, int] = {}
        self._report("reading", 0, total)

        def stale() -> Iterator[Passage]:
            nonlocal seen
            for passage in passages:
                there.add(passage.id)
                entry = known.get(passage.id)
                if entry and entry.digest == digest_of(passage) and entry.reader in (reader, IMPORTED):
                    seen += 1
                    if not entry.text:
                        texts[passage.id] = _record(passage, reader).text
                else:
                    yield passage

        for passage, extraction in extract(stale()):
            failures += extraction.failures
            digest = digest_of(passage)
            if extraction.failures and not extraction.triples:
                if passage.id in known and known[passage.id].digest != digest:
                    self._store.drop([passage.id])  # its facts are of a text that is gone
                continue
            self._store.put(facts_in(passage, extraction.triples), _record(passage, reader))
            self._store.commit()
            read += 1
            self._report("reading", seen + read, total)
        self._store.put_texts(texts)
        erased = self._store.drop(name for name in known if name not in there) if whole else 0
        self._lost = self._lost and not whole
        self._store.commit()
        return ReadReport(read, seen, erased, tuple(failures))

    def put(self, facts: Iterable[PassageFacts], texts: Mapping[str, Passage] | None = None) -> int:
        """Import facts, replacing those stored for their passages; return how many passages.

        texts: passages by id, whose imported facts stay until the text changes.
        """
        count = 0
        for passage in facts:
            text = (texts or {}).get(passage.passage_id)
            self._store.put(passage, _record(text, IMPORTED) if text else PassageRecord(b"", IMPORTED))
            count += 1
        self._store.commit()
        return count

    def put_edges(self, edges: Iterable[UnstatedEdge]) -> None:
        """Import the edges that no document states, replacing those that are stored."""
        self._store.put_edges(edges)
        self._store.commit()

    def erase(self, passage_ids: Iterable[str]) -> int:
        """Erase passages with their facts; return how many there were."""
        erased = self._store.drop(passage_ids)
        self._store.commit()
        return erased

    def known(self) -> dict[str, PassageRecord]:
        """Return the records of all passages whose facts are stored."""
        return self._store.known()

    def noted(self, name: str) -> str:
        """Return the note `name`, "" if there is none."""
        return self._store.setting(name) or ""

    def remember(self, notes: Mapping[str, str]) -> None:
        """Store notes for the next writer; they are committed with the next put or erase."""
        self._store.remember(notes)

    def forget(self, names: Iterable[str]) -> None:
        """Erase the notes `names`; that is committed with the next put or erase."""
        self._store.forget(names)

    def forget_edits(self) -> None:
        """Have the next write leave nothing of edits that are taken out of the log before it."""
        self._store.leave_remains()
        self._store.commit()

    def write(self, held: PassageLookup | None = None) -> KGIndex:
        """Write the graph of all that was read and edited, unless the folder holds it already, and open it.

        held: tells which passages are there with the text that an edit is about; by default, those that were read.
        """
        if self._lost:
            raise IndexMismatch(
                f"{self.folder / STORE} has lost the facts of the graph: run the `ras-agent kg build` that made it, "
                "which reads every passage anew, and then this command again"
            )
        before = self._before()
        held = held or self._read
        edits = read_edits(self.folder)
        about = {anchor for edit in edits for anchor in (*edit.anchors, *edit.new_anchors)}
        gone = bool(about - held(about))
        made = f"{self._store.revision} {self._embedder.name if self._embedder else ''} {self._equivalence}"
        made += " exact" if self._exact else ""
        of_edits = digest_of_edits(edits)
        if before is None or before[1].texts is None or gone or self._store.setting("made") != made + of_edits:
            self._report("assembling", 0, len(self._store.known()))
            self._store.erase_unused_names()
            found, edits = self._edited(edits, held)
            known = self._store.known()
            graph = assemble(found, exact=self._exact, equivalences=self._equivalence.kind == IMPORTED_EDGES)
            texts = np.array([known[name].text for name in graph.documents], dtype=np.uint64)
            graph = replace(graph, texts=texts)
            if self._embedder is not None:
                graph = self._with_vectors(graph, before)
            readers = sorted({one.reader for one in known.values()})
            number = next_generation(self.folder)
            given = self._embedder, ", ".join(readers), self._equivalence, number
            manifest = described(graph, *given, exact=self._exact)
            self._report("writing", 0, len(graph.edges))
            write_generation(self.folder, graph, manifest)
            self._store.drop_vectors()
            self._store.remember({"made": made + digest_of_edits(edits)})
            self._store.commit()
            self._report("writing", len(graph.edges), len(graph.edges))
        else:
            clear_away(self.folder, before[0].generation)
        clear_half_written(self.folder)
        self._store.sweep()
        return KGIndex.open(self.folder, self._embedder)

    def clear(self, held: PassageLookup | None = None) -> None:
        """Erase names that nothing refers to any more, as `write` does, where there is no graph to write anew."""
        clear_away(self.folder, None)  # a first build may have been killed while it wrote one
        self._store.erase_unused_names()
        if edits := read_edits(self.folder):
            self._edited(edits, held or self._read)
        clear_half_written(self.folder)
        self._store.commit()
        self._store.sweep()

    def _edited(self, edits: tuple[Edit, ...], held: PassageLookup) -> tuple[Occurrences, tuple[Edit, ...]]:
        """Return all that was read as edits change it, and the edits that stay, which alone are left in the log."""
        found = self._store.occurrences()
        if not edits:
            return found, edits
        texts = {name: record.text for name, record in self._store.known().items()}
        found, stay = edited(found, edits, held, texts, exact=self._exact)
        if stay != edits:
            self._store.leave_remains()  # vectors of their names may have been there
            self._store.commit()
            write_edits(self.folder, stay)
            self.edits_gone += len(edits) - len(stay)
        return found, stay

    def _read(self, anchors: Iterable[Anchor]) -> set[Anchor]:
        """Return those of some passages that were read, with the same text."""
        known = self._store.known()
        return {one for one in anchors if one.passage_id in known and one.text in (known[one.passage_id].text, 0)}

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._on_progress:
            self._on_progress(KGProgress(stage, done, total))

    def _before(self) -> tuple[KGManifest, KGArrays] | None:
        try:
            return open_generation(self.folder, whole=True)
        except (IndexNotFound, IndexMismatch):  # a damaged graph is built anew: its facts are in the store
            return None

    def _with_vectors(self, graph: KGArrays, before: tuple[KGManifest, KGArrays] | None) -> KGArrays:
        embedder, how = self._embedder, self._equivalence
        assert embedder
        same = before is not None and before[0].embedder == EmbedderIdentity(embedder.name, embedder.dimension)
        old = before[1] if before is not None and same else None
        entities, relations = list(graph.entities), list(graph.relations)
        names = list(dict.fromkeys(entities + relations))
        vectors = vectors_of(names, embedder, old, self._store, partial(self._report, "embedding"))
        place = {name: number for number, name in enumerate(names)}
        of_entities = vectors[: len(entities)]
        of_relations = vectors[[place[name] for name in relations]]
        self._report("comparing", 0, len(entities))
        classes = comparable(entities)
        same_way = before is not None and before[0].equivalence == how and how.kind != IMPORTED_EDGES
        if old is not None and old.near is not None and same_way:
            numbers = {name: number for number, name in enumerate(old.entities)}
            came_from = np.array([numbers.get(name, -1) for name in entities], dtype=np.int64)
            lists = near_lists_after(old.near, came_from, of_entities, classes, how)
        else:
            lists = near_lists(of_entities, classes, how)
        graph = replace(graph, entity_vectors=of_entities, relation_vectors=of_relations, near=lists)
        return graph if how.kind == IMPORTED_EDGES else with_equivalences(graph, *mutual(lists))


def vectors_of(
    names: Sequence[str],
    embedder: Embedder,
    before: KGArrays | None,
    store: FactStore,
    on_progress: Callable[[int, int], None] | None = None,
) -> Vectors:
    """Return unit vectors (len(names), d) float16, in the order of `names`, which are distinct.

    Vectors come from the graph `before`, from `store`, or from the embedder; the latter are put in `store` at once, so
    that a killed build embeds nothing twice.
    on_progress: called with how many names are embedded so far, and how many are to be. Raises IndexMismatch for an
    embedder of another width.
    """
    found = np.zeros((len(names), embedder.dimension), dtype=np.float16)
    place = {name: number for number, name in enumerate(names)}
    missing = np.ones(len(names), dtype=bool)
    if before is not None:
        for table, vectors in (
            (before.entities, before.entity_vectors),
            (before.relations, before.relation_vectors),
        ):
            if vectors is not None:
                _copy(found, missing, place, list(table), vectors)
    pending = list(store.pending_vectors())
    _copy(found, missing, place, [name for name, _ in pending], [vector for _, vector in pending])
    # texts of one length share a batch: less padding
    left = sorted(np.flatnonzero(missing).tolist(), key=lambda number: len(names[number]))
    if on_progress:
        on_progress(0, len(left))
    for start in range(0, len(left), _AT_ONCE):
        batch = left[start : start + _AT_ONCE]
        fresh = np.asarray(embedder.embed([names[number] for number in batch]), dtype=np.float16)
        if fresh.shape != (len(batch), embedder.dimension):
            raise IndexMismatch(
                f"embedder {embedder.name!r} gave an array of shape {fresh.shape} for {len(batch)} texts and says that "
                f"its vectors have {embedder.dimension} numbers: use one that does as it says"
            )
        found[batch] = fresh
        store.put_vectors([names[number] for number in batch], fresh)
        store.commit()
        if on_progress:
            on_progress(min(start + _AT_ONCE, len(left)), len(left))
    return found


def _copy(
    found: Vectors, missing: np.ndarray, place: dict[str, int], names: Sequence[str], vectors: Vectors | list[Vectors]
) -> None:
    rows = [(place[name], number) for number, name in enumerate(names) if name in place]
    for target, number in rows:
        found[target] = vectors[number]
        missing[target] = False


@contextmanager
def open_writer(
    folder: str | Path,
    embedder: object = None,
    equivalence: Equivalence | Mapping[str, Any] | None = None,
    on_progress: Callable[[KGProgress], None] | None = None,
    exact: bool | None = None,
) -> Iterator[KGWriter]:
    """Open the graph in `folder` for writing; the folder is created if it does not exist.

    embedder, equivalence, exact: None for those of the existing graph; embedder "" for none; a mapping as equivalence
    changes the settings that it names, and if these are searched by, imported equivalences make way. exact: see
    KGManifest. Raises IngestError while another process writes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open_fact_store(folder / STORE) as store:
        resolved = None if embedder in (None, "") else of_unit_length(resolve_embedder(embedder))
        of_store = store.setting("vectors of")
        manifest = readable_kg_manifest(folder)
        # a graph that this store did not make: its own store was deleted
        lost = (folder / NAME).exists() and store.setting("made") is None
        lost = lost and (manifest is None or manifest.documents != len(store.known()))
        if embedder is None and manifest and manifest.embedder:
            resolved = resolve_embedder(manifest.embedder.name)
        elif embedder is None and of_store and not manifest and (folder / NAME).exists():  # the store knows it
            resolved = resolve_embedder(of_store.rpartition(" ")[0])
        how = manifest.equivalence if manifest else Equivalence()
        if not isinstance(equivalence, Equivalence) and equivalence and how.kind == IMPORTED_EDGES:
            equivalence = {"kind": "auto", **equivalence}
        how = equivalence if isinstance(equivalence, Equivalence) else replace(how, **(equivalence or {}))
        exact = bool(manifest and manifest.exact) if exact is None else exact
        name = f"{resolved.name} {resolved.dimension}" if resolved else ""
        if of_store != name:
            store.drop_vectors()
            store.remember({"vectors of": name})
            store.commit()
        yield KGWriter(folder, store, resolved, how, on_progress, lost=lost, exact=exact)


def _record(passage: Passage, reader: str) -> PassageRecord:
    return PassageRecord(digest_of(passage), reader, hash_of(indexed_text(passage)))


def digest_of(passage: Passage) -> bytes:
    """Return a digest of what an extractor sees of a passage."""
    seen = json.dumps([passage.title, passage.text, passage.metadata.get(STATED)], sort_keys=True)
    return hashlib.blake2b(seen.encode(), digest_size=16).digest()
