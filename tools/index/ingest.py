"""From files to an index: load, cut, add, batch by batch, so that a run can be killed and taken up again.

A file that has not changed since all of it was indexed is not read again; a document that has not changed is not
embedded again. What cannot be loaded is skipped, counted and reported; with `strict` the first such thing ends the run
before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.tools.index.chunk import DEFAULT_CHUNKING, Chunking
from ras_agent.tools.index.find_files import SourceFile, find_files
from ras_agent.tools.index.ingest_run import IngestReport, IngestRun, Progress
from ras_agent.tools.index.journal import open_journal
from ras_agent.tools.index.load import LOADERS, USUAL_FIELDS, Fields, Skipped
from ras_agent.tools.index.store import PassageIndex

__all__ = ["JOURNAL", "ingest"]

JOURNAL = "ingest.sqlite"


def ingest(
    paths: Iterable[str | Path],
    out: str | Path,
    *,
    embedder: Any = None,
    chunking: Chunking = DEFAULT_CHUNKING,
    fields: Fields = USUAL_FIELDS,
    strict: bool = False,
    prune: bool = False,
    forget: Sequence[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Index files, and folders of them, into the index at `out`, which is made if there is none.

    A file is known by its label, its path from the named folder on ("docs/a.txt" wherever docs/ lies); a record by
    its id. embedder: as PassageIndex.create takes it. prune: remove the documents of files that were indexed from
    the named folders and are no longer there; those in a folder that cannot be read stay. forget: labels of files,
    or ids of documents, to remove whatever is there.
    Raises IngestError if there is nothing to do, with `strict` for the first thing that cannot be loaded, and while
    another run writes the same index; IndexExists, IndexMismatch and MissingExtra as PassageIndex does.
    """
    out = Path(out)
    found = tuple(find_files(paths, LOADERS, exclude=out))
    some = bool(forget) or any(isinstance(item, SourceFile) for item in found)
    problems = [item for item in found if isinstance(item, Skipped) and (item.error or not some)]
    if problems and (strict or not some):
        raise IngestError(str(problems[0]))
    if not some:
        raise IngestError("there is no file to index in the folders named")

    known = PassageIndex.exists(out)
    if strict:
        with open_journal(out / JOURNAL if known else None) as journal:
            IngestRun(None, journal, chunking, fields, strict=True).take(found, prune=prune, forget=forget)
    index = PassageIndex.open(out, embedder) if known or not found else PassageIndex.create(out, embedder)
    with open_journal(out / JOURNAL) as journal, index.batch():
        run = IngestRun(index, journal, chunking, fields, strict=strict, on_progress=on_progress)
        return run.take(found, prune=prune, forget=forget)
