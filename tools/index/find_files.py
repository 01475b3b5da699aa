"""Finds the files to load under the paths that a user names, always in the same order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.text_files import (
    Converted,
    FileContent,
    HeldFile,
    name_of,
    not_unicode,
    path_of,
)
from ras_agent.tools.index.vision import PICTURES

# reading a pipe or a device may never end
_NO_FILE = "not a regular file"
_READ_AS = {".doc": "DOCX", ".rtf": "DOCX", ".xls": "XLSX", ".ppt": "PPTX"}
"""For formats of older programs, the formats in which their documents can be read."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Describes a file to load, and the source in which it was found: the folder that the user named, or the file
    itself.
    """

    path: Path
    """The path at which the file can be opened."""
    root: Path
    """The absolute path of the source, with links resolved."""
    inner: str
    """The file's path below the folder, "" for a file that was named itself."""
    name: str
    """The last part of the name that the user gave to the source."""
    apart: bool = False
    """Whether the ids of its records begin with its label, so that they neither take nor reveal the ids of other
    files.
    """
    data: bytes | None = field(default=None, repr=False)
    """The bytes of an uploaded file, which the index stores; it is not on any disk, and its path is an `upload_path`.
    """
    converted: Converted | None = field(default=None, repr=False)
    """Its text, if known."""

    @property
    def content(self) -> FileContent:
        """Return the path, or the bytes in memory, from which the file is read."""
        return (
            self.path
            if self.data is None
            else HeldFile(self.path.name, self.data, self.converted)
        )

    @property
    def place(self) -> Path:
        """Return the absolute path that identifies the file."""
        return _inside(self.root, self.inner)


@dataclass(frozen=True, slots=True)
class _Search:
    """Holds the options of a search, and the folders that were walked."""

    suffixes: Collection[str]
    exclude: Path | None
    follow_links: bool
    walked: set[Path]
    as_text: Collection[str] = ()

    def takes(self, path: Path, inner: str = "") -> bool:
        """Return whether a file is of a kind that is read.

        Args:
            inner: its path below the named folder.
        """
        if path.suffix.lower() in self.suffixes:
            return True
        for pattern in self.as_text:
            compared = inner if "/" in pattern else path.name
            if fnmatchcase(compared, pattern):
                return True
        return False


def find_files(
    paths: Iterable[str | Path | SourceFile],
    suffixes: Collection[str],
    exclude: Path | None = None,
    *,
    follow_links: bool = False,
    as_text: Collection[str] = (),
) -> Iterator[SourceFile | Skipped]:
    """Yield the named files, and all files in named folders in order of their names, with a Skipped for each that is
    left out.

    In folders, hidden files, other kinds of file, the folder `exclude` and, unless `follow_links`, links are left
    out; a link that is named itself is followed. A file found twice is used once. A SourceFile is yielded
    unchanged.

    Args:
        suffixes: the suffixes of files that can be loaded.
        exclude: a folder that is left out.
        follow_links: whether links inside folders are followed.
        as_text: patterns of files of other kinds that are included too; see `fields_of`.
    """
    named: list[Path] = []
    for given in paths:
        if isinstance(given, SourceFile):
            yield given
        else:
            named.append(Path(given))
    shared = Counter(_last_part(path) for path in {path.absolute() for path in named})
    search = _Search(
        suffixes, _real(exclude) if exclude else None, follow_links, set(), as_text
    )
    found: dict[Path, str] = {}
    for path in named:
        name = _last_part(path)
        shown = name if shared[name] == 1 else name_of(path)  # in messages
        for item in _under(path, name, shown, search):
            if isinstance(item, Skipped):
                yield item
                continue
            place = _join(shown, item.inner)
            real = _real(item.path)
            if not_unicode(place):
                yield Skipped(
                    ascii(place), "the name of this file is not UTF-8; rename it"
                )
            elif real in found:
                yield Skipped(place, f"the same file as {found[real]}", error=False)
            else:
                found[real] = place
                yield item


def _under(
    path: Path, name: str, shown: str, search: _Search
) -> Iterator[SourceFile | Skipped]:
    root = _real(path)
    try:
        folder = path.is_dir()
        there = path.exists()
        file = path.is_file()
    except OSError as error:
        yield Skipped(
            name_of(path), f"cannot be read: {error.strerror}", hides=str(root)
        )
        return
    if folder:
        yield from _walk(path, "", SourceFile(path, root, "", name), shown, search)
    elif not there:
        yield Skipped(name_of(path), "no such file or folder", hides=str(root))
    elif not file or _is_of_kernel(root):
        yield Skipped(
            name_of(path), f"{_NO_FILE}: write its output into a file, and name that"
        )
    elif not search.takes(path):
        yield Skipped(name_of(path), _unknown_kind(path.suffix, search.suffixes))
    else:
        yield SourceFile(path, root, "", name)


def _walk(
    folder: Path, inside: str, source: SourceFile, shown: str, search: _Search
) -> Iterator[SourceFile | Skipped]:
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        yield _unreadable(_join(shown, inside), _inside(source.root, inside), error)
        return
    if (real := _real(folder)) in search.walked:  # links may lead back
        yield Skipped(_join(shown, inside), "the same folder as another", error=False)
        return
    search.walked.add(real)
    for path in entries:
        inner = _join(inside, name_of(path.name))
        place = _join(shown, inner)
        if path.name.startswith("."):
            yield Skipped(place, "hidden", error=False)
            continue
        try:
            folder_inside = path.is_dir()
            file_inside = path.is_file()
            link = path.is_symlink()
        except OSError as error:  # a folder may allow only its names to be listed
            yield _unreadable(place, _inside(source.root, inner), error)
            continue
        if folder_inside and _real(path) == search.exclude:
            yield Skipped(place, "the index itself", error=False)
        elif link and (folder_inside or file_inside) and not search.follow_links:
            what = "folder" if folder_inside else "file"
            yield Skipped(
                place,
                f"a linked {what}; name it to index it, or give --follow-links",
                error=False,
            )
        elif folder_inside:
            yield from _walk(path, inner, source, shown, search)
        elif not file_inside or _is_of_kernel(_real(path)):
            wrong = "a broken link" if link else _NO_FILE
            yield Skipped(place, wrong, hides=str(_inside(source.root, inner)))
        elif not search.takes(path, inner):
            yield Skipped(
                place, _unknown_kind(path.suffix, search.suffixes), error=False
            )
        else:
            yield SourceFile(path, source.root, inner, source.name)


def _is_of_kernel(path: Path) -> bool:
    """Return whether the kernel generates a file when it is read: such a file has no size, and may have no end."""
    top = "/".join(path.parts[:2])
    return top in ("//proc", "//sys")


def _unreadable(place: str, path: Path, error: OSError) -> Skipped:
    return Skipped(place, f"cannot be read: {error.strerror}", hides=str(path))


def _unknown_kind(suffix: str, suffixes: Collection[str]) -> str:
    known = ", ".join(sorted(suffixes))
    if suffix.lower() in PICTURES:
        return "a picture: give --vision openai:MODEL, a model that sees, to have it described"
    remedy = f"; if it is text, give --as text '*{suffix}'" if suffix else ""
    if suffix.lower() in _READ_AS:
        remedy = f"; save it as {_READ_AS[suffix.lower()]}"
    return f"unknown kind of file {suffix!r}; known: {known}{remedy}"


def _last_part(path: Path) -> str:
    # replaces `.` and `..` by the names of the folders
    absolute = os.path.abspath(path)
    return name_of(Path(absolute).name)


def _join(first: str, second: str) -> str:
    return f"{first}/{second}" if first and second else first or second


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # unlike Path.resolve, it never raises


def _inside(root: Path, inner: str) -> Path:
    return root / path_of(inner) if inner else root
