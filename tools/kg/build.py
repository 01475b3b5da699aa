"""Adds files of triples to the knowledge graph of an index, and deletes documents from both.

build_graph of ras_agent.tools.structure extracts facts from the passages themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ras_agent.config.address import Address, as_argument, place_of
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Failure, Passage
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.passages import hash_of, hashes
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.store import Compact, PassageIndex
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.triples import load_triples
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, knowledge_passages
from ras_agent.tools.kg.writer import (
    KGProgress,
    known_embedder,
    open_passages,
    open_writer,
)
from ras_agent.tools.store.journal import open_journal

_T = TypeVar("_T")
OnProgress = Callable[[KGProgress], None] | None


@dataclass(frozen=True, slots=True)
class KGReport:
    """Reports how a graph was brought up to date. The numbers count passages."""

    graph: KGIndex
    """The updated graph; an empty one in memory if `delete_documents` found no graph."""
    read: int = 0
    imported: int = 0
    unchanged: int = 0
    erased: int = 0
    failures: tuple[Failure, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """The parts of files that could not be used, with the reasons."""
    edits_gone: int = 0
    """The number of persons' edits that were dropped because the texts that they were based on were deleted."""


def add_triples(
    index: str | Path | Address,
    files: str | Path | Sequence[str | Path],
    *,
    embedder: object = None,
    on_progress: OnProgress = None,
) -> KGReport:
    """Add files of triples to the index at `index`, which is created if it does not exist, and to its knowledge graph.

    Each file becomes a document. Each passage of the document states the facts about one entity, so that any
    retriever finds them. A file that was added before is replaced.

    Args:
        files: one path or several; see `load_triples` for the formats.
        embedder: the embedder of a new index and a new graph, by name or as an object.
        on_progress: receives progress reports.

    Raises:
        IngestError: for a file without triples, or with the name of another file that was added.
    """
    place = place_of(index)
    skipped: list[Skipped] = []
    passages: list[Passage] = []
    places: dict[str, str] = {}
    named = [files] if isinstance(files, str | Path) else files
    paths = list(map(Path, named))
    for file in paths:
        if file.name in places:
            raise IngestError(
                f"two files are called {file.name}: rename one, since the name identifies a file in the index"
            )
        places[file.name] = str(file.resolve())
        loaded = load_triples(regular_file(file), file.name, paths)
        triples: list[PlacedTriple] = usable(loaded, skipped)
        # then the file may be a table of nodes, which names the ends of the facts in other files
        is_of_names = not skipped and len(paths) > 1
        if not triples and not is_of_names:
            raise IngestError(
                f"{file} has no usable triple{f': {skipped[-1]}' if skipped else ': give a file with facts'}"
            )
        for passage in knowledge_passages(triples, file.name):
            metadata = {"file": file.name, **passage.metadata}
            passages.append(replace(passage, metadata=metadata))
    if not passages:
        raise IngestError(
            f"{', '.join(map(str, paths))} have no usable triple: add a file with facts"
        )
    store = open_passages(place, embedder)
    if KGIndex.exists(store):
        embedder = known_embedder(KGIndex.open(store).manifest.embedder, embedder)
    with open_writer(
        store, graph_embedder(store, embedder), None, on_progress
    ) as writer:
        store.refresh()  # another process may have added some since
        held = set(store.snapshot.table["document"].tolist())
        for name, origin in places.items():
            before = writer.origin_of(name)
            if before not in (origin, "") and hash_of(name) in held:
                raise IngestError(
                    f"{place} already has a file {name}, from {before}: rename the new file, or delete the stored one, "
                    f"`ras-agent kg delete {as_argument(place)} {as_argument(name)}`"
                )
        with store.database.writing():
            deleted = store.upsert(passages, whole_documents=True).deleted
            writer.put(
                (
                    PassageFacts(passage.id, stated_facts(passage) or ())
                    for passage in passages
                ),
                {passage.id: passage for passage in passages},
                origins=places,
            )
        store.committed()
        graph = writer.write()
        gone = writer.edits_gone
    return KGReport(graph, 0, len(passages), 0, deleted, (), tuple(skipped), gone)


def delete_documents(
    index: str | Path | Address,
    document_ids: str | Sequence[str],
    *,
    compact: Compact = "now",
) -> KGReport:
    """Delete documents from the index, and the part of its knowledge graph that is based only on them.

    The next `ingest` of their files reads them again.

    Args:
        compact: when the deleted texts are gone from all files of the index: "now", before this function returns,
            or "later", with the next write that compacts.

    Raises:
        IngestError: for a document that is not in the index.
    """
    place = place_of(index)
    wanted = {document_ids} if isinstance(document_ids, str) else set(document_ids)
    store = PassageIndex.open(place)
    with open_journal(store.database) as journal:
        if not store.is_finished():
            store.finish(compact)
        store.refresh()  # under the lock, so that passages added by another process are deleted, too
        held = store.snapshot.table["document"]
        erased = int(np.isin(held, hashes(wanted - {""})).sum())
        if missing := sorted(
            name for name in wanted if not name or hash_of(name) not in held
        ):
            raise IngestError(
                f"there is no document {missing[0]!r} in {place}: give the id of a document of this index"
            )
        before = _edits(store)
        journal.compare()
        journal.begin()
        for name in wanted:
            journal.forget_document(name)
        store.delete_documents(wanted)
        journal.commit()
        store.committed()
        store.finish(compact)
    graph = KGIndex.open(store) if KGIndex.exists(store) else KGIndex.in_memory([])
    return KGReport(graph, erased=erased, edits_gone=before - _edits(store))


def _edits(store: PassageIndex) -> int:
    with store.database.reading() as transaction:
        return len(read_edits(transaction, store.database))


def regular_file(path: str | Path) -> Path:
    """Return the path of a file. Raises IngestError if it does not exist or is not a regular file."""
    if not Path(path).is_file():
        raise IngestError(
            f"{path} {'is not a file' if Path(path).exists() else 'does not exist'}: give the path of a file"
        )
    return Path(path)


def usable(items: Iterable[_T | Skipped], skipped: list[Skipped]) -> list[_T]:
    """Return the items that could be read, and append those that could not to `skipped`."""
    good: list[_T] = []
    for item in items:
        if isinstance(item, Skipped):
            skipped.append(item)
        else:
            good.append(item)
    return good


def graph_embedder(passages: PassageIndex, chosen: object) -> object:
    """Return the embedder for a graph: the chosen one if there is one.

    Otherwise return the index's embedder for a new graph, and None for an existing one, which keeps its own.

    Args:
        chosen: a name or an object; "" for no embedder, None for no choice.
    """
    if chosen is not None:
        return chosen
    return None if KGIndex.exists(passages) else passages.embedder
