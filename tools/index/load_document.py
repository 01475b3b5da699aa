"""What a loader yields: documents, and what it had to skip, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["USUAL_FIELDS", "Document", "Fields", "OnRead", "Skipped"]

OnRead = Callable[[int], None]
"""Told how many bytes were read since it was told last."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text as its file holds it, character for character.

    id: unique in an index. place: where it was read, for messages ("notes/a.jsonl line 3"). pages: for paged files,
    the offset in `text` where each page begins.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or record that was not loaded. `error`: it should have been (else it is none of ours, or empty).

    hides: the label of a file or folder that could not be looked at, so nobody knows whether it is still there.
    """

    place: str
    reason: str
    error: bool = True
    hides: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Fields:
    """Which keys of a record (columns of a table) hold what; all others become metadata.

    id None: number the records instead. A record may lack "id" and "title" under their usual names, and may not lack a
    field that was named otherwise.
    """

    text: str = "text"
    title: str = "title"
    id: str | None = "id"


USUAL_FIELDS = Fields()
