"""Documents in files, and reports of files and records that were not loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """Holds a text exactly as it is in its file.

    id: unique in its file. place: where it was read, for messages ("notes/a.jsonl line 3"). pages: for paged files, the
    offset in `text` where each page begins. record: whether it is a record that came with its id, and so perhaps a
    passage of a corpus that is already cut.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    pages: tuple[int, ...] = ()
    record: bool = False
    is_markdown: bool = field(default=False, compare=False)
    """Whether lines of its text that look like headings are headings"""
    facts_of_rows: tuple[Sequence[Sequence[str]], ...] = ()
    """For a table whose rows are also separate documents, the facts that each row states"""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Reports a file or record that was not loaded.

    error: whether it should have been loaded; False for an empty file or record, and for kinds of files that are not
    loaded. hides: the path of a file or folder that could not be read, so that it is unknown whether it still exists.
    """

    place: str
    reason: str
    error: bool = True
    hides: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def dated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with a `date`, copied from another usual name if it lacks one."""
    about = dict(metadata)
    for name in ("published_at", "published", "pubdate", "publication_date"):
        if name in about:
            about.setdefault("date", about[name])
    return about
