"""Finds the files to load under the paths that a user names, always in the same order."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ras_agent.tools.index.load import Skipped
from ras_agent.tools.index.text_files import not_unicode


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Names a file to load.

    label: its name in an index, the path from the named folder on, so that the folder may be moved.
    root: the name of the named folder the file was found in, or the label of a file that was named itself.
    """

    path: Path
    label: str
    root: str


def find_files(
    paths: Iterable[str | Path], suffixes: Collection[str], exclude: Path | None = None
) -> Iterator[SourceFile | Skipped]:
    """Yield named files, and all files in named folders by name, with a Skipped for each that is left out.

    In folders, hidden files, other kinds of file, linked folders and the folder `exclude` are left out. A file found
    twice is taken once; two files with one label are an error.
    """
    by_label: dict[str, Path] = {}
    labels: dict[Path, str] = {}
    for item in _named(map(Path, paths), suffixes, exclude.resolve() if exclude else None):
        if isinstance(item, Skipped):
            yield item
            continue
        label, real = item.label, item.path.resolve()
        if not_unicode(label):
            yield Skipped(ascii(label), "the name of this file is not UTF-8; rename it")
        elif real in labels:
            yield Skipped(label, f"the same file as {labels[real]}", error=False)
        elif label in by_label:
            yield Skipped(str(item.path), f"called {label} in the index, as is {by_label[label]}; name their folders")
        else:
            by_label[label], labels[real] = item.path, label
            yield item


def _named(paths: Iterable[Path], suffixes: Collection[str], exclude: Path | None) -> Iterator[SourceFile | Skipped]:
    for path in paths:
        name = Path(os.path.abspath(path)).name  # `.` and `..` have names of their own
        try:
            folder, there = path.is_dir(), path.exists()
        except OSError as error:
            yield Skipped(str(path), f"cannot be read: {error.strerror}", hides=name)
            continue
        if folder:
            yield from _walk(path, name, suffixes, exclude)
        elif not there:
            yield Skipped(str(path), "no such file or folder", hides=name)
        elif path.suffix.lower() not in suffixes:
            yield Skipped(str(path), _unknown_kind(path.suffix, suffixes))
        else:
            yield SourceFile(path, name, name)


def _walk(folder: Path, label: str, suffixes: Collection[str], exclude: Path | None) -> Iterator[SourceFile | Skipped]:
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        yield _unreadable(label, error)
        return
    for path in entries:
        inner = f"{label}/{path.name}"
        if path.name.startswith("."):
            yield Skipped(inner, "hidden", error=False)
            continue
        try:
            folder_inside = path.is_dir()
            file_inside = path.is_file()
        except OSError as error:  # a folder may let its names be listed and nothing more
            yield _unreadable(inner, error)
            continue
        if folder_inside and path.resolve() == exclude:
            yield Skipped(inner, "the index itself", error=False)
        elif folder_inside and path.is_symlink():
            yield Skipped(inner, "a linked folder; name it to index it", error=False)
        elif folder_inside:
            yield from _walk(path, inner, suffixes, exclude)
        elif not file_inside:
            yield Skipped(inner, "a broken link" if path.is_symlink() else "not a regular file", hides=inner)
        elif path.suffix.lower() not in suffixes:
            yield Skipped(inner, _unknown_kind(path.suffix, suffixes), error=False)
        else:
            yield SourceFile(path, inner, inner.partition("/")[0])


def _unreadable(label: str, error: OSError) -> Skipped:
    return Skipped(label, f"cannot be read: {error.strerror}", hides=label)


def _unknown_kind(suffix: str, suffixes: Collection[str]) -> str:
    return f"unknown kind of file {suffix!r}; known: {', '.join(sorted(suffixes))}"
