"""Facts that were read in passages, kept by content: another run, corpus or machine finds them again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.records import Call, Passage, Source, Triple
from ras_agent.tools.encode.sqlite_file import SqliteFile

__all__ = ["KeptFacts", "TripleCache", "facts_key"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS facts "
    "(key TEXT PRIMARY KEY, extractor TEXT NOT NULL, title TEXT NOT NULL, facts TEXT NOT NULL, calls TEXT NOT NULL)"
)


def facts_key(fingerprint: str, passage: Passage) -> str:
    """The key of a passage's facts: the extractor's fingerprint, which holds its prompts, and the passage's content.

    The passage's id is no part of it: the same text under another id has the same facts.
    """
    identity = json.dumps([fingerprint, passage.title, passage.text])
    return hashlib.sha256(identity.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """What was read in one passage, and the model calls that took."""

    triples: tuple[Triple, ...] = ()
    calls: tuple[Call, ...] = ()

    def of(self, passage: Passage) -> tuple[Triple, ...]:
        """The facts as read in `passage`, whatever the id under which they were kept."""
        return tuple(
            Triple(fact.subject, fact.predicate, fact.object, tuple(_moved(source, passage) for source in fact.sources))
            for fact in self.triples
        )


class TripleCache:
    """One SQLite file of facts by `facts_key`. Safe between threads and processes; the first facts for a key stay.

    A killed run leaves no half a passage. The file holds facts and titles, no passage's text, and no credentials.
    """

    def __init__(self, path: str | Path) -> None:
        """Makes the file and its folders where there are none. Raises SettingsError for a file of another kind."""
        self.path = Path(path)
        self._file = SqliteFile(path, _TABLES, "facts")

    def get(self, key: str) -> KeptFacts | None:
        """The facts under a key, or None."""
        with self._file.transaction() as connection:
            row = connection.execute("SELECT facts, calls FROM facts WHERE key = ?", (key,)).fetchone()
        return _kept(row) if row else None

    def put(self, key: str, extractor: str, title: str, kept: KeptFacts) -> None:
        """Keep a passage's facts. extractor, title: for a reader of the file."""
        facts = [[fact.subject, fact.predicate, fact.object, *map(_span, fact.sources[:1])] for fact in kept.triples]
        calls = [call.to_dict() for call in kept.calls]
        row = (key, extractor, title, _json(facts), _json(calls))
        with self._file.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        with self._file.transaction() as connection:
            (count,) = connection.execute("SELECT COUNT(*) FROM facts").fetchone()
        return int(count)


def _span(source: Source) -> list[Any]:
    return [source.start, source.end, source.extractor]


def _moved(source: Source, passage: Passage) -> Source:
    return Source(passage.id, source.start, source.end, extractor=source.extractor)


def _kept(row: tuple[str, str]) -> KeptFacts:
    facts, calls = map(json.loads, row)
    return KeptFacts(tuple(map(_fact, facts)), tuple(map(Call.from_dict, calls)))


def _fact(item: list[Any]) -> Triple:
    subject, predicate, object_, *spans = item
    return Triple(subject, predicate, object_, tuple(Source("", start, end, extractor=by) for start, end, by in spans))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
