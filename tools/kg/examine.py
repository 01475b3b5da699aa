"""Reads every byte of an index and its graph, and says of each file whether it is as it was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ras_agent.errors import IndexMismatch, IndexNotFound, RasError
from ras_agent.tools.index.passages import check_rows
from ras_agent.tools.index.segment import check_saved
from ras_agent.tools.index.store import CACHE, PassageIndex
from ras_agent.tools.kg import store
from ras_agent.tools.kg.database import check_database
from ras_agent.tools.kg.disk import GRAPH_ANEW, read_kg_manifest, readable_kg_manifest
from ras_agent.tools.kg.disk import NAME as GRAPH_NAME
from ras_agent.tools.kg.edits import LOG, read_edits
from ras_agent.tools.kg.index import FOLDER
from ras_agent.tools.kg.writer import STORE
from ras_agent.tools.store.checksums import check_file
from ras_agent.tools.store.sqlite import ANEW, FILE, SqliteDatabase


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
    path = folder / FILE
    if not path.exists() and not (folder / CACHE).exists():
        return
    yield _report(path, partial(_read_index, folder))
    with suppress(RasError):
        index = PassageIndex.open(folder)
        for file, problem in check_saved(folder / CACHE / str(index.snapshot.state.epoch)):
            remedy = f"delete {file.parent}, which is then made anew from what the index holds"
            yield FileReport(file, f"{file} is damaged ({problem}): {remedy}" if problem else "")
        index.close()


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


def _read_index(folder: Path) -> None:
    """Read all of an index's database. Raises IndexMismatch for anything that is not what was written."""
    if not (folder / FILE).exists():
        raise IndexMismatch(f"{folder / FILE} is missing: {ANEW.format(folder=folder)}")
    database = SqliteDatabase(folder)
    try:
        database.check()
        check_rows(database)
        PassageIndex(database, None, folder)
    finally:
        database.close()


def _report(path: Path, read: Callable[[], object]) -> FileReport:
    try:
        read()
    except FileNotFoundError:
        return FileReport(path, f"{path} is missing: the next `ras-agent index` makes it anew")
    except (RasError, OSError) as error:
        return FileReport(path, str(error))
    return FileReport(path)
