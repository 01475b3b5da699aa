"""Gives files and documents names that are unique in an index and do not change.

A file is identified by its absolute path, a record by its file and its id there. Each has the name that the user gives
it ("docs/a.txt", "Q42"), as long as nothing else has that name. Later ones get a longer name, which depends on where
they are and not on when they were added.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path, PurePosixPath
from time import sleep, time_ns

from ras_agent.tools.index.chunk import PIECE
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.uploads import is_upload
from ras_agent.tools.store.journal import Journal

_CLOCK_STEP = 10_000_000  # the longest usual step of the clock of files, in nanoseconds


def label_of(file: SourceFile, journal: Journal) -> str:
    """Return the file's label: the one that the journal has, else the source's name and the file's path in the source.

    A source with the same name as another gets for example "docs~1f3c9a".
    """
    if known := journal.file_at(file.place):
        return known.label
    name = journal.source_at(file.root)
    if name is None:
        name = _unlike_others(
            file.name, file.root, not file.inner, journal, journal.has_source
        )
        journal.put_source(file.root, name)
    label = f"{name}/{file.inner}" if file.inner else name
    # a linked file may have this label from another place
    return _unlike_others(
        label, file.place, True, journal, lambda name: journal.file(name) is not None
    )


def document_id(own: str, label: str, journal: Journal) -> str:
    """Return an id for a document that is not in the journal: `own`, its id in its file, if no other document has it.

    Otherwise the file's label is put in front, "notes/b.jsonl/Q42".
    """
    if not _is_free(own, journal):
        journal.compare()
    longer = (f"{label}/{own}~{number}" for number in count(2))
    return next(
        name
        for name in chain([own, f"{label}/{own}"], longer)
        if _is_free(name, journal)
    )


def take_over_moved(
    files: Sequence[SourceFile], journal: Journal
) -> list[tuple[Path, Path]]:
    """Find the sources that were moved, and keep their names and documents. Returns old and new places.

    A source was moved if it no longer exists, if a new source has the same last part of its path, and if the files
    that both have (at least one) have the size and time of change that the journal knows. So nothing can be lost:
    anything else, such as a copy with new times, is a different source.
    """
    moved = []
    by_root: dict[Path, list[SourceFile]] = {}
    for file in files:
        by_root.setdefault(file.root, []).append(file)
    known = journal.sources()
    namesakes: dict[str, list[Path]] = {}
    for path in known:
        namesakes.setdefault(path.name, []).append(path)
    for root, found in by_root.items():
        if root in known or any(journal.file_at(file.place) for file in found):
            continue
        gone = (path for path in namesakes.get(root.name, ()) if not _is_there(path))
        old = next((path for path in gone if _same_files(path, found, journal)), None)
        if old is not None:
            journal.move_source(old, root)
            moved.append((old, root))
    return moved


def gone_sources(journal: Journal) -> list[Path]:
    """Return the sources that no longer exist."""
    sources = journal.sources()
    return [path for path in sources if not _is_there(path)]


def size_and_time(path: Path) -> str:
    """Return a file's size and time of change, in the form in which the journal's stamps begin; "" if it cannot be
    accessed.
    """
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns} "


def settled_state(path: Path) -> str:
    """Return `size_and_time` of a file, waiting until any further change would give the file another time.

    The times of files are those of a clock that moves in steps.
    """
    with suppress(OSError):
        age = time_ns() - path.stat().st_mtime_ns
        if 0 <= age < _CLOCK_STEP:
            sleep((_CLOCK_STEP - age) / 1e9)
    return size_and_time(path)


def _same_files(old: Path, found: Sequence[SourceFile], journal: Journal) -> bool:
    compared = [
        known.stamp.startswith(size_and_time(file.path) or "?")
        for file in found
        if (known := journal.file_at(old / file.place.relative_to(file.root)))
        and known.stamp
    ]
    return bool(compared) and all(compared)


def _is_there(path: Path) -> bool:
    if is_upload(path):
        return True
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _is_free(name: str, journal: Journal) -> bool:
    """Return whether no document has the id, and neither it nor a used id looks like the id of a piece of the other."""
    piece = PIECE.fullmatch(name)
    if journal.document(name) or (piece and journal.document(piece[1])):
        return False
    return not any(
        PIECE.fullmatch(other) for other in journal.ids_from(f"{name}#", f"{name}$")
    )


def _unlike_others(
    name: str,
    path: Path,
    is_file: bool,
    journal: Journal,
    is_taken: Callable[[str], bool],
) -> str:
    """Return the name; if it is taken, with a few letters of a digest of `path`, before the suffix of a file."""
    if not is_taken(name):
        return name
    journal.compare()
    digest = hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()
    suffix = PurePosixPath(name).suffix if is_file else ""
    marked = (
        f"{name.removesuffix(suffix)}~{digest[:length]}{suffix}"
        for length in range(6, 33)
    )
    return next(candidate for candidate in marked if not is_taken(candidate))
