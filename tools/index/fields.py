"""Stores how files are read, for later runs.

For each kind of file: which fields of a record are its text, title and id. For each file: the metadata that a user
gave it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ras_agent.contracts.records import without_none
from ras_agent.tools.store.journal import Journal

ALL_FILES = "*"
TEXT = "text"


@dataclass(frozen=True, slots=True)
class Fields:
    """Names the keys of a record, or columns of a table, that hold text, title and id; all others become metadata.

    Without an id, the records are numbered. A record may lack "id" and "title", but not a field with another name.
    """

    text: str = "text"
    title: str = "title"
    id: str | None = "id"
    kind: str = ""
    """TEXT for files that are read as plain text, whatever their suffix is."""


USUAL_FIELDS = Fields()

FieldRules = Mapping[str, Fields]
"""Fields by pattern of file names; for each file, the first pattern that matches counts. See `fields_of`."""


def fields_of(rules: FieldRules, inner: str) -> Fields:
    """Return the fields of a file.

    A pattern without a slash is compared with the file's name, a pattern with a slash with all of `inner`; its `*`
    matches anything, including slashes.

    Args:
        inner: the file's path below the named folder.

    >>> fields_of({"old/*.csv": Fields("body"), "*.csv": Fields("note")}, "new/a.csv").text
    'note'
    """
    name = inner.rpartition("/")[2]
    fitting = (
        fields
        for pattern, fields in rules.items()
        if fnmatchcase(inner if "/" in pattern else name, pattern)
    )
    return next(fitting, USUAL_FIELDS)


class Remembered:
    """Stores and returns how the folders and files that a user named are read, and the metadata that they were given."""

    def __init__(
        self, journal: Journal, fields: FieldRules, metadata: Mapping[str, Any]
    ) -> None:
        """Take the journal, which stores both, and the rules and metadata given for this run."""
        self._journal = journal
        self._rules = dict(fields)
        self._metadata = dict(metadata)
        self._known: dict[Path, dict[str, Any]] = {}

    def remember(self, root: Path) -> None:
        """Store the given rules for `root` and everything in it, before its present rules, and the given metadata;
        its other metadata is kept."""
        if self._rules:
            rules = {**self._rules}
            for pattern, fields in self._rules_at(root).items():
                rules.setdefault(pattern, fields)
            # always last: it is for the files that no other pattern matches
            if ALL_FILES in rules:
                rules[ALL_FILES] = rules.pop(ALL_FILES)
            written = {name: asdict(fields) for name, fields in rules.items()}
            self._journal.put_note("fields", root, json.dumps(written))
        if self._metadata:
            values = {**self._metadata_at(root), **self._metadata}
            self._known[root] = values
            self._journal.put_note("metadata", root, json.dumps(values))

    def fields_of(self, root: Path, inner: str) -> Fields:
        """Return the fields of a file by the rules of its source, else of the nearest folder above that has rules."""
        return fields_of(self._rules_at(root), inner or root.name)

    def metadata_of(self, place: Path) -> dict[str, Any]:
        """Return the metadata fields of a file: its own and those of the folders that contain it, of which the nearest
        counts.
        """
        found: dict[str, Any] = {}
        for path in (*reversed(place.parents), place):
            found |= self._metadata_at(path)
        return without_none(found)

    def _rules_at(self, root: Path) -> dict[str, Fields]:
        for path in (root, *root.parents):
            if stored := self._journal.note_at("fields", path):
                return stored_rules(stored)
        return {}

    def _metadata_at(self, path: Path) -> dict[str, Any]:
        """Return the metadata given to this folder or file itself; a field that was removed has the value None."""
        if path not in self._known:
            stored = self._journal.note_at("metadata", path)
            self._known[path] = json.loads(stored or "{}")
        return self._known[path]


def text_patterns(rules: Iterable[FieldRules]) -> tuple[str, ...]:
    """Return the patterns of the files that are read as plain text."""
    found: dict[str, None] = {}
    for of_source in rules:
        for pattern, fields in of_source.items():
            if fields.kind == TEXT:
                found[pattern] = None
    return tuple(found)


def stored_rules(text: str) -> dict[str, Fields]:
    """Return the rules that the journal stores as JSON."""
    found = json.loads(text)
    return {pattern: Fields(**fields) for pattern, fields in found.items()}
