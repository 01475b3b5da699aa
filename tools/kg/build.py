"""Keeps the knowledge graph of a passage index up to date: add files of triples, delete documents.

ras_agent.tools.structure.build_graph reads its passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import IngestError
from ras_agent.protocols import Embedder
from ras_agent.records import Failure, Passage
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.index.journal import open_journal
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import find_rows, hash_of
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.disk import readable_kg_manifest
from ras_agent.tools.kg.edits import Anchor, PassageLookup
from ras_agent.tools.kg.formats.triples import PlacedTriple, load_triples
from ras_agent.tools.kg.index import FOLDER, KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, knowledge_passages
from ras_agent.tools.kg.writer import KGProgress, KGWriter, open_writer

_T = TypeVar("_T")
OnProgress = Callable[[KGProgress], None] | None
_ORIGIN = "origin of "
"""The note of a file of triples: the path it was added from."""


@dataclass(frozen=True, slots=True)
class KGReport:
    """Reports what bringing a graph up to date did, in passages.

    graph: the graph now; an empty one in memory if `delete_documents` found none. skipped: what of files could not be
    used. finished: names whose deletion an interrupted command had begun and this one ended. edits_gone: how many edits
    of persons went with the texts that they were about.
    """

    graph: KGIndex
    read: int = 0
    imported: int = 0
    unchanged: int = 0
    erased: int = 0
    failures: tuple[Failure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    finished: tuple[str, ...] = ()
    edits_gone: int = 0


def add_triples(
    index: str | Path,
    files: str | Path | Sequence[str | Path],
    *,
    embedder: object = None,
    on_progress: OnProgress = None,
) -> KGReport:
    """Add files of triples to the index at `index`, which is made if there is none, and to its graph.

    Each file becomes a document whose passages each state the facts about one entity, so that any retriever finds them;
    a file that was added before is replaced. embedder: for a new index and a new graph, by name or object. Raises
    IngestError for a file without triples, and for one with the name of another file that was added.
    """
    path = Path(index)
    skipped: list[Skipped] = []
    passages: list[Passage] = []
    places: dict[str, str] = {}
    for file in [Path(files)] if isinstance(files, str | Path) else map(Path, files):
        if file.name in places:
            raise IngestError(f"two files are called {file.name}: rename one, files are told apart by their names")
        places[file.name] = str(file.resolve())
        triples: list[PlacedTriple] = usable(load_triples(regular_file(file), file.name), skipped)
        if not triples:
            raise IngestError(f"{file} holds no triple{f': {skipped[-1]}' if skipped else ''}")
        passages += knowledge_passages(triples, file.name)
    store = open_passages(path, embedder)
    finished = finish_deletion(path)
    if KGIndex.exists(path):
        there = readable_kg_manifest(path / FOLDER)
        embedder = _known(there.embedder if there else None, embedder)
    with open_writer(path / FOLDER, graph_embedder(path, store, embedder), None, on_progress) as writer:
        # not of `store`: another process may have added some since
        held = set(PassageIndex.open(path).snapshot.table["document"].tolist())
        for name, place in places.items():
            before = writer.noted(_ORIGIN + name)
            if before not in (place, "") and hash_of(name) in held:
                raise IngestError(
                    f"{path} has a file {name} already, from {before}: rename this one, or take the other out, "
                    f"`ras-agent kg delete {path} {name}`"
                )
        store.upsert(passages, whole_documents=True)
        writer.remember({_ORIGIN + name: place for name, place in places.items()})
        left = {passage.id for passage in passages}
        gone = [name for name in writer.known() if name.partition("#")[0] in places and name not in left]
        erased = writer.erase(name for name in gone if store.get(name) is None)
        writer.put(
            (PassageFacts(passage.id, stated_facts(passage) or ()) for passage in passages),
            {passage.id: passage for passage in passages},
        )
        graph = writer.write(passages_held(store))
    done = KGReport(graph, imported=len(passages), erased=erased, skipped=tuple(skipped), finished=finished)
    return replace(done, edits_gone=writer.edits_gone)


def delete_documents(
    index: str | Path, document_ids: str | Sequence[str], *, on_progress: OnProgress = None
) -> KGReport:
    """Delete documents from the index, from the journal of its files, and from its graph, if there is one.

    The next `ingest` of their files reads them again. When this returns, nothing of them is in any file of the index;
    the same call ends one that was interrupted. Raises IngestError for a document that is not in the index.
    """
    path = Path(index)
    wanted = {document_ids} if isinstance(document_ids, str) else set(document_ids)
    with ExitStack() as held:
        store = PassageIndex.open(path)
        journal = held.enter_context(open_journal(store.database))
        finished = journal.erasing()
        if not store.is_finished():
            store.finish()
        writer = None
        if (path / FOLDER).exists():
            writer = held.enter_context(open_writer(path / FOLDER, for_erasing(path), None, on_progress))
        store.refresh()  # under the locks: what others added before is deleted, too
        passages = [passage for passage in store.passages if passage.document_id and passage.document_id in wanted]
        if missing := sorted(wanted - {passage.document_id for passage in passages} - set(finished)):
            raise IngestError(f"there is no document {missing[0]!r} in {path}: give the id of a document")
        # the graph and the journal first: after a kill, what is left in the index can be deleted by the same call
        if writer:
            writer.forget(_ORIGIN + name for name in wanted)
            erased = [*_gone(writer, store), *(passage.id for passage in passages)]
            writer.erase(erased)
            _write(writer, path, passages_held(store, without=erased))
        for name in wanted:
            journal.forget_document(name)
        journal.commit()
        store.delete_documents(wanted)
        journal.end_erasing()
    graph = KGIndex.open(path) if KGIndex.exists(path) else KGIndex.in_memory([])
    edits_gone = writer.edits_gone if writer else 0
    return KGReport(graph, erased=len(passages), finished=finished, edits_gone=edits_gone)


def erase_gone(index: str | Path, *, on_progress: OnProgress = None) -> int:
    """Erase from the graph of the index at `index` what only passages stated that are no longer there.

    Return how many such passages there were; 0 without a graph. Raises IngestError while another process writes it.
    """
    path = Path(index)
    if not (path / FOLDER).exists():
        return 0
    with open_writer(path / FOLDER, for_erasing(path), None, on_progress) as writer:
        store = PassageIndex.open(path)
        erased = writer.erase(_gone(writer, store))
        _write(writer, path, passages_held(store))
    return erased


def for_erasing(path: Path) -> object:
    """Return the embedder for a writer that erases from a graph: one that is not loaded, since no name is new."""
    manifest = readable_kg_manifest(path / FOLDER)
    if KGIndex.exists(path):
        identity = manifest.embedder if manifest else None
    else:
        identity = PassageIndex.open(path).snapshot.manifest.embedder
    return _AsNamed(identity) if identity else None


def _write(writer: KGWriter, path: Path, held: PassageLookup) -> None:
    """Write the graph without what was erased; if a first build was killed, there is none to write."""
    if KGIndex.exists(path):
        writer.write(held)
    else:
        writer.clear(held)


def passages_held(passages: PassageIndex, *, without: Iterable[str] = ()) -> PassageLookup:
    """Return what tells which passages an index holds, with the text that an edit is about. without: ids of others."""
    table, gone = passages.snapshot.table, set(without)

    def held(anchors: Iterable[Anchor]) -> set[Anchor]:
        asked = [anchor for anchor in anchors if anchor.passage_id not in gone]
        rows = find_rows(table["id"], np.array([hash_of(one.passage_id) for one in asked], dtype=np.uint64))
        texts = table["text"]
        return {
            one
            for one, row in zip(asked, rows.tolist(), strict=True)
            if row >= 0 and (not one.text or int(texts[row]) == one.text)
        }

    return held


class _AsNamed:
    """Stands for the embedder of a graph from which something is erased; it is loaded only if a vector is missing."""

    def __init__(self, identity: EmbedderIdentity) -> None:
        self.name, self.dimension = identity.name, identity.dimension

    def embed(self, texts: Sequence[str]) -> Floats:
        return resolve_embedder(self.name).embed(texts)


def _gone(writer: KGWriter, passages: PassageIndex) -> list[str]:
    """Return the ids of passages whose facts are stored and which are not in the index."""
    known = list(writer.known())
    hashes = np.array([hash_of(name) for name in known], dtype=np.uint64)
    held = np.isin(hashes, passages.snapshot.table["id"])
    return [name for name, is_held in zip(known, held.tolist(), strict=True) if not is_held]


def finish_deletion(path: Path) -> tuple[str, ...]:
    """Finish what an interrupted command left undone in the index; return the names that it was deleting."""
    store = PassageIndex.open(path)
    # the process that holds the journal is writing, and finishes itself
    with suppress(IngestError), open_journal(store.database) as journal:
        finished = journal.erasing()
        store.finish()
        if finished:
            erase_gone(path)
        journal.end_erasing()
        return finished
    return ()


def regular_file(path: str | Path) -> Path:
    """Return the path. Raises IngestError if it is no file."""
    if not Path(path).is_file():
        raise IngestError(f"{path} {'is no file' if Path(path).exists() else 'is not there'}: name a file to read")
    return Path(path)


def usable(items: Iterable[_T | Skipped], skipped: list[Skipped]) -> list[_T]:
    """Return what could be loaded; append the rest to `skipped`."""
    good: list[_T] = []
    for item in items:
        if isinstance(item, Skipped):
            skipped.append(item)
        else:
            good.append(item)
    return good


def open_passages(path: Path, embedder: object) -> PassageIndex:
    """Open the index, which is made if there is none."""
    if not PassageIndex.exists(path):
        return PassageIndex.create(path, embedder or None)
    index = PassageIndex.open(path)
    given = _known(index.snapshot.manifest.embedder, embedder)
    return PassageIndex.open(path, given) if given else index


def _known(identity: EmbedderIdentity | None, embedder: object) -> Embedder | None:
    """Return an embedder given as an object, if `identity` names it: its name alone may not load it."""
    if not embedder or isinstance(embedder, str):
        return None
    given = resolve_embedder(embedder)
    return given if identity == EmbedderIdentity(given.name, given.dimension) else None


def graph_embedder(path: Path, passages: PassageIndex, chosen: object) -> object:
    """Return what was chosen, "" for none; else None if there is a graph, whose own is used, or the index's."""
    if chosen is not None:
        return chosen
    return None if KGIndex.exists(path) else passages.embedder
