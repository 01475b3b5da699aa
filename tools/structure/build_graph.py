"""Builds the knowledge graph of a passage index by letting an extractor read the passages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ras_agent.config.address import Address, place_of
from ras_agent.contracts.errors import IndexMismatch, IngestError
from ras_agent.contracts.records import Passage
from ras_agent.contracts.schema import Schema
from ras_agent.text.languages import ENGLISH, NO_LANGUAGE
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.language import language_of
from ras_agent.tools.index.stated_facts import STATED
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import (
    KGReport,
    OnProgress,
    graph_embedder,
    regular_file,
    usable,
)
from ras_agent.tools.kg.equivalence import IMPORTED, Equivalence
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.formats.gfm_csv import GFMFiles, read_gfm_files
from ras_agent.tools.kg.formats.openie import load_openie
from ras_agent.tools.kg.passage_facts import ImportedFacts, match_facts
from ras_agent.tools.kg.writer import open_passages, open_writer
from ras_agent.tools.roles import resolve_extractor, role_name
from ras_agent.tools.structure.fallback import ExtractorWithFallback
from ras_agent.tools.structure.schema import with_schema


def build_graph(
    index: str | Path | Address,
    *,
    extractor: object = "offline",
    openie: str | Path | None = None,
    gfm: str | Path | None = None,
    embedder: object = None,
    equivalence: Equivalence | Mapping[str, Any] | None = None,
    exact: bool | None = None,
    at_once: int = 1,
    workers: int = 1,
    fallback: Literal["offline", "stop"] | None = None,
    schema: str | Path | None = None,
    on_progress: OnProgress = None,
) -> KGReport:
    """Bring the knowledge graph of an index up to date: read new and changed passages, and delete the facts of removed
    ones.

    If a call is killed, the same call continues it. Passages made by `add_triples` state their own facts.

    Args:
        index: the path or address of the index.
        extractor: reads the facts, as resolve_extractor takes it.
        openie: a file with facts of passages, which are then not read. If there is no index, or an empty one, they
            are indexed.
        gfm: a folder of gfm-rag's files, with the same effect.
        embedder: the embedder for the graph's vectors; None for the graph's present one, or the index's for a new
            graph; "" for no vectors.
        equivalence: sets which entities are equivalent, or a mapping with only the settings that change; None for
            the equivalences that the folder `gfm` lists, else for the present settings.
        exact: whether only names of equal spelling are one entity, and `gfm` is read as gfm-rag reads it, which its
            published weights need to score as published; None for the present setting.
        at_once: how many passages are read at the same time, for an extractor that waits for a model.
        workers: how many processes read, for an extractor that computes; a script then calls this function under
            `if __name__ == "__main__":`.
        fallback: the extractor for a passage about which no reply of the extractor's model could be read: "offline"
            for the offline extractor, "stop" for no fallback; None for "offline" if the texts are English. The next
            call reads the passage again.
        schema: a file of the relations that facts may have. Facts get the schema's names for their relations; facts
            outside the schema are kept and marked.
        on_progress: receives progress reports.

    Raises:
        IndexNotFound, IngestError, IndexMismatch: if the index or the files cannot be used.
        MissingExtra: if a package is not installed.
        RunError: if a worker process died.
    """
    place = place_of(index)
    skipped: list[Skipped] = []
    imported_facts: list[ImportedFacts] = []
    texts: list[Passage] = []
    if openie:
        for item in usable(
            load_openie(regular_file(openie), Path(openie).name), skipped
        ):
            imported_facts.append(
                ImportedFacts(item.facts, str(openie), item.passage.text)
            )
            texts.append(item.passage)
    files = GFMFiles(graph=False)
    if gfm:
        files = read_gfm_files(Path(gfm), skipped, exact=bool(exact))
        imported_facts += [ImportedFacts(facts, str(gfm)) for facts in files.facts]
        texts += files.passages
    if files.graph and equivalence is None:
        lists_equivalences = any(edge.similarity is not None for edge in files.edges)
        if exact or lists_equivalences:
            equivalence = {"kind": IMPORTED}
    if (openie or gfm) and not texts and not PassageIndex.exists(place):
        missing = "passage" if openie else "text of a document"
        reason: object = (
            "index the documents first, `ras-agent index`" if gfm else "it is empty"
        )
        raise IngestError(
            f"{openie or gfm} holds no {missing}: {skipped[0] if skipped else reason}"
        )
    passages = open_passages(place, embedder) if texts else PassageIndex.open(place)
    language = language_of(passages)
    if extractor == "offline" and not imported_facts:
        _check_offline(passages, place, language)
    role = resolve_extractor(extractor)
    if fallback is None and language == ENGLISH:
        fallback = "offline"
    if fallback == "offline" and extractor != "offline" and workers == 1:
        offline = resolve_extractor("offline")
        role = ExtractorWithFallback(role, offline)
    if schema is not None:
        role = with_schema(role, Schema.load(schema))
    embedder = graph_embedder(passages, embedder)
    with open_writer(passages, embedder, equivalence, on_progress, exact) as writer:
        if not len(passages):
            # the index is new, or was created by a call that was killed
            passages.upsert({passage.id: passage for passage in texts}.values())
        matches = match_facts(
            imported_facts, passages.passages if imported_facts else ()
        )
        imported = writer.put(matches.facts, matches.passages)
        if files.graph:
            writer.put_edges(files.edges)
            writer.put_others(files.others)
        report = writer.read_index(
            read_each(role, at_once=at_once, workers=workers),
            # the fingerprint covers all that decides an extractor's facts: with another prompt passages are read again
            getattr(role, "fingerprint", "") or role_name(role),
        )
        graph = writer.write()
    return KGReport(
        graph,
        report.read,
        imported,
        report.unchanged - imported,
        report.erased,
        report.failures,
        (*skipped, *matches.skipped),
        writer.edits_gone,
    )


def _check_offline(passages: PassageIndex, place: object, language: str) -> None:
    """Raise IndexMismatch if the texts are in a language that the offline extractor does not know."""
    if language in (ENGLISH, NO_LANGUAGE):
        return
    if any(STATED in passage.metadata for passage in passages.passages):
        return
    raise IndexMismatch(
        f"{place} holds texts in {language.capitalize()}, and the offline extractor reads only English: give "
        "--extractor a model, such as openai:gpt-4o-mini, or facts, --openie FILE"
    )
