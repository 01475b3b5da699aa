"""Reads every byte of an index and its graph, and says of each file whether it is as it was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ras_agent.errors import IndexNotFound, RasError
from ras_agent.tools.index import journal
from ras_agent.tools.index.checksums import check_file
from ras_agent.tools.index.database import check_database
from ras_agent.tools.index.ingest import JOURNAL
from ras_agent.tools.index.manifest import ANEW, NAME, read_manifest
from ras_agent.tools.index.snapshot import made_anew, open_folder
from ras_agent.tools.kg import store
from ras_agent.tools.kg.disk import GRAPH_ANEW, read_kg_manifest, readable_kg_manifest
from ras_agent.tools.kg.disk import NAME as GRAPH_NAME
from ras_agent.tools.kg.edits import LOG, read_edits
from ras_agent.tools.kg.index import FOLDER
from ras_agent.tools.kg.writer import STORE

_AT_ONCE = 4096  # vectors


@dataclass(frozen=True, slots=True)
class FileReport:
    """Says what is wrong with a file and what mends it; nothing of a file that is as it was written."""

    path: Path
    problem: str = ""


def examine(folder: Path) -> list[FileReport]:
    """Read an index whole, and the graph in it. Raises IndexNotFound if there is neither."""
    reports: list[FileReport] = []
    for there, read in ((folder, _index), (folder / FOLDER, _graph)):
        found = list(read(there))
        if any(report.problem for report in found):
            found = list(read(there))  # a writer may have replaced what was being read
        reports += found
    if not reports:
        raise IndexNotFound(f"no index at {folder}: make one with `ras-agent index`")
    return reports


def _index(folder: Path) -> Iterator[FileReport]:
    manifest = None
    if (folder / NAME).exists() or any(folder.glob("passages-*")):
        yield _report(folder / NAME, partial(read_manifest, folder))
        with suppress(RasError):
            manifest = read_manifest(folder)
    if manifest:
        files, anew = manifest.files, ANEW.format(folder=folder)
        for name, expected in manifest.sums.items():
            remedy = anew if name == files.rows else made_anew(folder / Path(name).parts[0])
            yield _report(folder / name, partial(check_file, folder / name, expected, remedy, whole=True))
        yield _report(folder / files.passages, partial(_read_passages, folder))
        if manifest.embedder:
            yield _report(folder / files.vectors, partial(_read_vectors, folder))
    yield from _database(folder / JOURNAL, journal.REMEDY)


def _graph(folder: Path) -> Iterator[FileReport]:
    manifest = readable_kg_manifest(folder)
    if manifest or (folder / GRAPH_NAME).exists() or any(folder.glob("graph-*")):
        yield _report(folder / GRAPH_NAME, partial(read_kg_manifest, folder))
    for name, expected in manifest.sums.items() if manifest else ():
        remedy = GRAPH_ANEW.format(folder=folder)
        yield _report(folder / name, partial(check_file, folder / name, expected, remedy, whole=True))
    yield from _database(folder / STORE, store.REMEDY)
    if (folder / LOG).exists():
        yield _report(folder / LOG, partial(read_edits, folder))


def _database(path: Path, remedy: str) -> Iterator[FileReport]:
    if any(os.path.lexists(there) for there in (path, path.with_name(f"{path.name}.sum"))):
        yield _report(path, partial(check_database, path, remedy.format(path=path), whole=True))


def _read_passages(folder: Path) -> None:
    for _ in open_folder(folder).passages:
        pass


def _read_vectors(folder: Path) -> None:
    snapshot = open_folder(folder)
    numbers, sums = snapshot.table["vector"], snapshot.table["vector_sum"]
    for start in range(0, len(numbers) if snapshot.vector_log else 0, _AT_ONCE):
        assert snapshot.vector_log
        snapshot.vector_log.take(numbers[start : start + _AT_ONCE], sums[start : start + _AT_ONCE])


def _report(path: Path, read: Callable[[], object]) -> FileReport:
    try:
        read()
    except FileNotFoundError:
        return FileReport(path, f"{path} is missing: the next `ras-agent index` makes it anew")
    except (RasError, OSError) as error:
        return FileReport(path, str(error))
    return FileReport(path)
