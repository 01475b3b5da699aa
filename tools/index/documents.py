"""Holds the documents in files, and reports of files and records that were not loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """Holds a text exactly as it is in its file."""

    id: str
    """The document's id, unique in its file."""
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    """Where it was read, for messages ("notes/a.jsonl line 3")."""
    pages: tuple[int, ...] = ()
    """For paged files, the offset in `text` at which each page begins."""
    record: bool = False
    """Whether it is a record that came with its id, and so perhaps a passage of a corpus that is already cut."""
    is_markdown: bool = field(default=False, compare=False)
    """Whether lines of its text that look like headings are headings."""
    facts_of_rows: tuple[Sequence[Sequence[str]], ...] = ()
    """For a table whose rows are also separate documents, the facts that each row states."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Reports a file or record that was not loaded."""

    place: str
    reason: str
    error: bool = True
    """Whether it should have been loaded; False for an empty file or record, and for kinds of files that are not
    loaded.
    """
    hides: str = ""
    """The path of a file or folder that could not be read, so that it is unknown whether it still exists."""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def dated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with a `date`, copied from another usual name if it has no `date`."""
    about = dict(metadata)
    for name in ("published_at", "published", "pubdate", "publication_date"):
        if name in about:
            about.setdefault("date", about[name])
    return about
