"""Notes of a knowledge graph about a place where a fact was read: attributes of both, and that it is unchecked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ras_agent.question_graph.merge import shared_attributes
from ras_agent.records import Attributes, Source, Triple, all_attributes


def note_of(triple: Triple, source: Source) -> str:
    """Return the note about a place where a fact was read, as JSON; "" if there is nothing to note."""
    note: dict[str, Any] = {}
    if fact := all_attributes(triple):
        note["fact"] = dict(fact)
    if place := all_attributes(source):
        note["place"] = dict(place)
    if source.unchecked:
        note["unchecked"] = True
    if not note:
        return ""
    return json.dumps(note, sort_keys=True)


def noted(triple: Triple, notes: Sequence[str]) -> Triple:
    """Return a fact as the notes about its sources have it.

    An attribute in which the places differ is one of each place.
    """
    if not any(notes):
        return triple
    read = [json.loads(note) if note else {} for note in notes]
    of_fact = [note.get("fact", {}) for note in read]
    shared = shared_attributes(of_fact)
    sources = []
    for source, note, own in zip(triple.sources, read, of_fact, strict=True):
        attributes = {key: value for key, value in own.items() if key not in shared}
        attributes |= note.get("place", {})
        unchecked = note.get("unchecked", False)
        source = replace(source, unchecked=unchecked, attributes=attributes)
        sources.append(source)
    return replace(triple, sources=tuple(sources), attributes=shared)


def dump_notes(notes: Sequence[str]) -> bytes:
    """Return the notes about the facts of a passage, for its row; nothing where all are empty."""
    if not any(notes):
        return b""
    return json.dumps(notes).encode()


def load_notes(rows: Iterable[bytes], counts: Iterable[int]) -> Iterator[str]:
    """Return the notes of all rows, one after another. counts: how many facts each has."""
    for data, count in zip(rows, counts, strict=True):
        if data:
            yield from json.loads(data)
        else:
            yield from [""] * count


# ---- in files for other programs


def place_of(source: Source) -> list[Any]:
    """Return [passage, start, end] of a source, followed by a mapping of anything more that is known of it."""
    place: list[Any] = [source.passage_id, source.start, source.end]
    more: dict[str, Any] = {}
    if source.unchecked:
        more["unchecked"] = True
    if source.attributes:
        more["attributes"] = dict(source.attributes)
    if more:
        place.append(more)
    return place


def source_at(place: list[Any]) -> Source:
    """Return the source that `place_of` wrote."""
    passage_id, start, end, *more = place
    about = more[0] if more else {}
    return Source(
        passage_id=passage_id,
        start=start,
        end=end,
        unchecked=about.get("unchecked", False),
        attributes=Attributes.of_others(about.get("attributes", {})),
    )
