"""From files to an index: load, cut, add, batch by batch, so that a run can be killed and taken up again.

A file that has not changed since all of it was indexed is not read again; a document that has not changed is not
embedded again. What cannot be loaded is skipped, counted and reported; with `strict` the first such thing ends the run
before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.tools.index.chunk import DEFAULT_CHUNKING, Chunking
from ras_agent.tools.index.ingest_run import IngestReport, IngestRun, Progress
from ras_agent.tools.index.journal import open_journal
from ras_agent.tools.index.load import LOADERS
from ras_agent.tools.index.load_document import USUAL_FIELDS, Fields, Skipped
from ras_agent.tools.index.load_folder import SourceFile, find_files
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
    on_progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Index files, and folders of them, into the index at `out`, which is made if there is none.

    embedder: as PassageIndex.create takes it. prune: remove the documents of files that were indexed from the named
    folders and are no longer there.
    Raises IngestError if there is no file to read, with `strict` for the first thing that cannot be loaded, and while
    another run writes the same index; IndexMismatch and MissingExtra as PassageIndex does.
    """
    out = Path(out)
    found = tuple(find_files(paths, LOADERS, exclude=out))
    files = [item for item in found if isinstance(item, SourceFile)]
    missing = [item for item in found if isinstance(item, Skipped) and (item.error or not files)]
    if missing and (strict or not files):
        raise IngestError(str(missing[0]))
    if not files:
        raise IngestError("there is no file to index in the folders named")

    known = PassageIndex.exists(out)
    if not known and out.exists() and (out.is_file() or any(out.iterdir())):
        raise IngestError(f"{out} holds something else than an index; choose another place for the index")
    if strict:
        with open_journal(out / JOURNAL if known else None) as journal:
            IngestRun(None, journal, chunking, fields, strict=True).take(found, prune=prune)
    index = PassageIndex.open(out, embedder) if known else PassageIndex.create(out, embedder)
    with open_journal(out / JOURNAL) as journal, index.batch():
        run = IngestRun(index, journal, chunking, fields, strict=strict, on_progress=on_progress)
        return run.take(found, prune=prune)
