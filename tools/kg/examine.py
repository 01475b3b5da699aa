"""Reads every byte of an index and its graph, and reports for each file whether it is undamaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ras_agent.contracts.errors import IndexMismatch, RasError
from ras_agent.tools.index.missing import index_not_found
from ras_agent.tools.index.passages import check_rows
from ras_agent.tools.index.segment import check_saved
from ras_agent.tools.index.store import CACHE, PassageIndex
from ras_agent.tools.kg.disk import read_graph
from ras_agent.tools.kg.facts import check_graph
from ras_agent.tools.kg.make import CACHE as GRAPHS
from ras_agent.tools.store.array_file import is_whole
from ras_agent.tools.store.sqlite import ANEW, FILE, SqliteDatabase


@dataclass(frozen=True, slots=True)
class FileReport:
    """Reports how a file is damaged and how to repair it. `problem` is empty for an undamaged file."""

    path: Path
    problem: str = ""


def examine(folder: Path) -> list[FileReport]:
    """Read every file of the index in `folder` and of its graph, and report on each. Raises IndexNotFound if there is
    no index.
    """
    reports = list(_index(folder))
    if any(report.problem for report in reports):
        # a second time: a writer may have replaced a file during the first
        reports = list(_index(folder))
    if not reports:
        raise index_not_found(folder)
    return reports


def _index(folder: Path) -> Iterator[FileReport]:
    path = folder / FILE
    if not path.exists() and not (folder / CACHE).exists():
        return
    yield _report(path, partial(_read_index, folder))
    with suppress(RasError):
        index = PassageIndex.open(folder)
        for file, problem in check_saved(
            folder / CACHE / str(index.snapshot.state.epoch)
        ):
            remedy = f"delete {file.parent}, which is then made anew from what the index holds"
            yield FileReport(
                file, f"{file} is damaged ({problem}): {remedy}" if problem else ""
            )
        index.close()
    graphs = folder / CACHE / GRAPHS
    for file in sorted(graphs.iterdir()) if graphs.is_dir() else ():
        if file.suffix != ".sum":
            yield _report(file, partial(_read_graph, file))


def _read_index(folder: Path) -> None:
    """Read the whole database of an index. Raises IndexMismatch for anything that is damaged."""
    if not (folder / FILE).exists():
        raise IndexMismatch(f"{folder / FILE} is missing: {ANEW.format(folder=folder)}")
    database = SqliteDatabase(folder)
    try:
        database.check()
        check_rows(database)
        check_graph(database)
        PassageIndex(database, None, folder)
    finally:
        database.close()


def _read_graph(path: Path) -> None:
    remedy = f"delete {path}, which is then made anew from what the index holds"
    read_graph(path, remedy)
    if not is_whole(path):
        raise IndexMismatch(
            f"{path} is damaged (its bytes are not those that were written): {remedy}"
        )


def _report(path: Path, read: Callable[[], object]) -> FileReport:
    try:
        read()
    except FileNotFoundError:
        return FileReport(
            path, f"{path} is missing: the next `ras-agent index` builds it again"
        )
    except (RasError, OSError) as error:
        return FileReport(path, str(error))
    return FileReport(path)
