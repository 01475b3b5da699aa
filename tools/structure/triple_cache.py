"""Facts that were read in passages, kept by content: another run, corpus or machine finds them again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.records import Call, Passage, Source, Triple
from ras_agent.tools.spread.rows import open_rows

__all__ = ["FACT_COLUMNS", "KeptFacts", "TripleCache", "facts_key"]

FACT_COLUMNS = ("key", "extractor", "title", "facts", "calls")


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
    """Facts by `facts_key`, in one SQLite file. Safe between threads and processes; the first facts for a key stay.

    A killed run leaves no half a passage. The file holds facts and titles, no passage's text, and no credentials.
    """

    def __init__(self, path: str | Path) -> None:
        """Makes the file and its folders where there are none; "ray:NAME" is kept elsewhere (see `open_rows`).

        Raises SettingsError for a file of another kind.
        """
        self.path = Path(path)
        self._rows = open_rows(path, FACT_COLUMNS, "facts")

    @property
    def near(self) -> bool:
        """Whether `get` takes less than handing it to a thread would."""
        return self._rows.near

    def get(self, key: str) -> KeptFacts | None:
        """The facts under a key, or None."""
        row = self._rows.get(key)
        return _kept(row[3], row[4]) if row else None

    def put(self, key: str, extractor: str, title: str, kept: KeptFacts) -> None:
        """Keep a passage's facts. extractor, title: for a reader of the file."""
        facts = [[fact.subject, fact.predicate, fact.object, *map(_span, fact.sources[:1])] for fact in kept.triples]
        calls = [call.to_dict() for call in kept.calls]
        self._rows.put((key, extractor, _text(title), _json(facts), _json(calls)))

    def __len__(self) -> int:
        return len(self._rows)


def _span(source: Source) -> list[Any]:
    return [source.start, source.end, source.extractor]


def _moved(source: Source, passage: Passage) -> Source:
    return Source(passage.id, source.start, source.end, extractor=source.extractor)


def _kept(facts: str, calls: str) -> KeptFacts:
    return KeptFacts(tuple(map(_fact, json.loads(facts))), tuple(map(Call.from_dict, json.loads(calls))))


def _fact(item: list[Any]) -> Triple:
    subject, predicate, object_, *spans = item
    return Triple(subject, predicate, object_, tuple(Source("", start, end, extractor=by) for start, end, by in spans))


def _json(value: Any) -> str:
    return _text(json.dumps(value, ensure_ascii=False))


def _text(text: str) -> str:
    """Without lone surrogates, which UTF-8 has no form for."""
    return text.encode("utf-8", "replace").decode()
