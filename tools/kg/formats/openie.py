"""Reads OpenIE results: JSON Lines of passages with the triples and entities that a model extracted from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.standing import fact_text
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.formats.triples import placed_records
from ras_agent.tools.kg.passage_facts import PassageFacts


class ExtractedPassage(NamedTuple):
    """Holds a passage of the file and the facts that the file lists for it."""

    passage: Passage
    facts: PassageFacts


def load_openie(path: Path, label: str) -> Iterator[ExtractedPassage | Skipped]:
    """Yield a passage for each line: {"id", "title", "text", "triples": [[s, p, o], ...]} and perhaps "entities":
    [...].

    Each triple gets the span of the sentence that states it or shares most words with it. A bad line, or a bad
    triple in a good line, is skipped and reported. If two lines have the same id, the first one counts.

    Args:
        label: names the file in reports.
    """
    places: dict[str, str] = {}
    for item in placed_records(path, label):
        if isinstance(item, Skipped):
            yield item
            continue
        record, place = item
        if (
            not isinstance(record, dict)
            or not isinstance(record.get("text"), str)
            or "id" not in record
        ):
            yield Skipped(
                place,
                f'expected an object with "id", "text" and "triples", got {record!r:.80}',
            )
            continue
        if not isinstance(record.get("triples"), list):
            yield Skipped(place, f"no list of triples in passage {record['id']!r}")
            continue
        if not isinstance(record.get("entities") or [], list):
            yield Skipped(place, f"no list of entities in passage {record['id']!r}")
            continue
        passage = Passage(
            str(record["id"]), record["text"], str(record.get("title") or "")
        )
        if (first := places.setdefault(passage.id, place)) != place:
            yield Skipped(place, f"id {passage.id!r} is already taken by {first}")
            continue
        yield ExtractedPassage(passage, _facts(passage, record))
        bad = [item for item in record["triples"] if not _is_triple(item)]
        if bad:
            yield Skipped(
                place,
                f"{len(bad)} of its triples are not [subject, predicate, object]: {bad[0]!r:.80}",
            )


def _facts(passage: Passage, record: dict[str, Any]) -> PassageFacts:
    text = fact_text(passage.text, passage.heading)
    triples = []
    for item in filter(_is_triple, record["triples"]):
        subject, predicate, object_ = item
        start, end = text.sentence(subject, predicate, object_) or (
            0,
            len(passage.text),
        )
        triples.append(
            Triple(subject, predicate, object_, (Source(passage.id, start, end),))
        )
    entities = [
        name
        for name in record.get("entities") or ()
        if isinstance(name, str) and canonical_key(name)
    ]
    if canonical_key(passage.title):
        entities.append(passage.title)
    return PassageFacts(
        passage.id, tuple(dict.fromkeys(triples)), tuple(dict.fromkeys(entities))
    )


def _is_triple(item: Any) -> bool:
    whole = (
        isinstance(item, list)
        and len(item) == 3
        and all(isinstance(field, str) for field in item)
    )
    return whole and all(map(canonical_key, item))
