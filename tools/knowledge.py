"""A passage index and the knowledge graph beside it, kept in step: what the command line and programs call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.errors import IngestError
from ras_agent.records import Failure, Passage
from ras_agent.tools.index.kg.equivalence import Equivalence
from ras_agent.tools.index.kg.facts import PassageFacts
from ras_agent.tools.index.kg.gfm_csv import read_gfm_csv
from ras_agent.tools.index.kg.index import FOLDER, KGIndex
from ras_agent.tools.index.kg.load_openie import ReadyPassage, load_openie
from ras_agent.tools.index.kg.load_triples import PlacedTriple, load_triples
from ras_agent.tools.index.kg.textualise import knowledge_passages, stated_facts
from ras_agent.tools.index.kg.writer import KGProgress, KGWriter, open_writer
from ras_agent.tools.index.load_document import Skipped
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.roles import resolve_extractor, role_name
from ras_agent.tools.structure.bulk import one_by_one
from ras_agent.tools.structure.in_processes import in_processes

__all__ = ["KGReport", "add_triples", "build_graph", "delete_documents"]

OnProgress = Callable[[KGProgress], None] | None


@dataclass(frozen=True, slots=True)
class KGReport:
    """What bringing a graph up to date did, in passages, and the graph. `skipped`: what of files could not be used."""

    graph: KGIndex
    read: int = 0
    imported: int = 0
    unchanged: int = 0
    erased: int = 0
    failures: tuple[Failure, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def build_graph(
    index: str | Path,
    *,
    extractor: object = "offline",
    openie: Path | None = None,
    gfm: Path | None = None,
    embedder: object = None,
    equivalence: Equivalence | None = None,
    at_once: int = 1,
    workers: int = 1,
    on_progress: OnProgress = None,
) -> KGReport:
    """Bring the graph beside the index at `index` up to date: read passages that are new or changed, erase others.

    extractor: as resolve_extractor takes it. openie, gfm: ready facts of passages, which are then not read; without an
    index, one is made of the passages in `openie`. embedder: for the vectors of a new graph, by default the index's; ""
    for none. at_once: passages being read at a time, for an extractor that waits for a model. workers: processes that
    read, for one that computes; a script then calls this under `if __name__ == "__main__":`. Passages of a graph that
    is there (see `add_triples`) state their own facts. A killed call is taken up by the same call. Raises
    IndexNotFound, IngestError, IndexMismatch, MissingExtra, RunError for a worker that died, and what
    `resolve_extractor` raises.
    """
    path, skipped = Path(index), []
    ready: list[ReadyPassage] = []
    for item in load_openie(openie, openie.name) if openie else ():
        if isinstance(item, Skipped):
            skipped.append(item)
        else:
            ready.append(item)
    if openie and not PassageIndex.exists(path):
        if not ready:
            raise IngestError(f"{openie} holds no passage: {skipped[0] if skipped else 'it is empty'}")
        PassageIndex.create(path, embedder or None).add(item.passage for item in ready)
    passages = PassageIndex.open(path)
    role = resolve_extractor(extractor)
    with open_writer(path / FOLDER, _embedder(path, passages, embedder), equivalence, on_progress) as writer:
        given = [item.facts for item in ready] + (read_gfm_csv(gfm) if gfm else [])
        imported = _import(writer, passages, given, skipped, str(openie or gfm))
        report = writer.read(
            passages.passages,
            in_processes(role, workers) if workers > 1 else one_by_one(role, at_once),
            # where an extractor says what decides its facts, another prompt is another reader
            getattr(role, "fingerprint", "") or role_name(role),
            whole=True,
            total=len(passages),
        )
        graph = writer.write()
    return KGReport(
        graph, report.read, imported, report.unchanged - imported, report.erased, report.failures, tuple(skipped)
    )


def add_triples(
    index: str | Path, files: Sequence[Path], *, embedder: object = None, on_progress: OnProgress = None
) -> KGReport:
    """Add files of triples to the index at `index`, which is made if there is none, and to the graph beside it.

    Each file becomes a document whose passages say what there is about an entity, so that any retriever finds them; a
    file that was added before is replaced. embedder: of a new index and a new graph, by name or object.
    """
    path, skipped = Path(index), []
    passages: list[Passage] = []
    labels = [file.name for file in files]
    for label in labels:
        if labels.count(label) > 1:
            raise IngestError(f"two files are called {label}: rename one, files are known by their names")
    for file in files:
        triples: list[PlacedTriple] = []
        for item in load_triples(file, file.name):
            if isinstance(item, Skipped):
                skipped.append(item)
            else:
                triples.append(item)
        if not triples:
            raise IngestError(f"{file} holds no triple{f': {skipped[-1]}' if skipped else ''}")
        passages += knowledge_passages(triples, file.name)
    known = PassageIndex.exists(path)
    store = PassageIndex.open(path) if known else PassageIndex.create(path, embedder or None)
    store.upsert(passages, whole_documents=True)
    with open_writer(path / FOLDER, _embedder(path, store, embedder), None, on_progress) as writer:
        left = {passage.id for passage in passages}
        gone = [name for name in writer.known() if name.partition("#")[0] in labels and name not in left]
        erased = writer.erase(name for name in gone if store.get(name) is None)
        writer.put(
            (PassageFacts(passage.id, stated_facts(passage) or ()) for passage in passages),
            {passage.id: passage for passage in passages},
        )
        graph = writer.write()
    return KGReport(graph, imported=len(passages), erased=erased, skipped=tuple(skipped))


def delete_documents(index: str | Path, document_ids: Sequence[str], *, on_progress: OnProgress = None) -> KGReport:
    """Delete documents from the index and from the graph beside it. Raises IngestError for one that is not there."""
    path = Path(index)
    store = PassageIndex.open(path)
    wanted = set(document_ids) - {""}
    passages = [passage for passage in store.passages if passage.document_id in wanted]
    if missing := sorted(wanted - {passage.document_id for passage in passages}):
        raise IngestError(f"there is no document {missing[0]!r} in {path}: documents are called by their ids")
    with open_writer(path / FOLDER, None, None, on_progress) as writer:
        # the graph first: what a kill leaves in the index alone, the next build would only read again
        erased = writer.erase(passage.id for passage in passages)
        store.delete_documents(wanted)
        graph = writer.write()
    return KGReport(graph, erased=erased)


def _embedder(path: Path, passages: PassageIndex, chosen: object) -> object:
    """None where the graph that is there decides; else what was chosen, else the index's own."""
    if chosen is not None:
        return chosen or None
    return None if KGIndex.exists(path) else passages.embedder


def _import(
    writer: KGWriter, passages: PassageIndex, given: Sequence[PassageFacts], skipped: list[Skipped], where: str
) -> int:
    """Put ready facts whose passages are in the index; by title where ids are not known."""
    if not given:
        return 0
    by_id = {passage.id: passage for passage in passages.passages}
    by_title = {passage.title: passage for passage in by_id.values()}
    texts, facts = {}, []
    for item in given:
        passage = by_id.get(item.passage_id) or by_title.get(item.passage_id)
        if passage is None:
            skipped.append(Skipped(where, f"facts of {item.passage_id!r}, which is no passage of the index"))
            continue
        texts[passage.id] = passage
        facts.append(_moved(item, passage.id))
    return writer.put(facts, texts)


def _moved(facts: PassageFacts, passage_id: str) -> PassageFacts:
    if facts.passage_id == passage_id:
        return facts
    triples = tuple(
        replace(triple, sources=tuple(replace(source, passage_id=passage_id) for source in triple.sources))
        for triple in facts.triples
    )
    return PassageFacts(passage_id, triples, facts.entities)
