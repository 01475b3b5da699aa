"""Reads and writes notes about a place where a fact was read: the attributes of the fact and of the place, and whether
it is unchecked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ras_agent.contracts.records import Attributes, Source, Triple, all_attributes
from ras_agent.question_graph.merge import shared_attributes
from ras_agent.text.normal_form import storable


def note_of(triple: Triple, source: Source) -> str:
    """Return the note about a place where a fact was read, as JSON; "" if there is nothing to note."""
    fact = all_attributes(triple)
    return _note(fact, _more(source))


def _note(fact: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    note: dict[str, Any] = {}
    if fact:
        note["fact"] = dict(fact)
    if "attributes" in more:
        note["place"] = more["attributes"]
    if "unchecked" in more:
        note["unchecked"] = True
    if not note:
        return ""
    return json.dumps(note, sort_keys=True)


def noted(triple: Triple, notes: Sequence[str]) -> Triple:
    """Return a fact with the attributes in the notes about its sources, one note for each source.

    An attribute whose values differ between sources becomes an attribute of each source.
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


# ---- in rows


def note_columns(triple: Triple, source: Source) -> tuple[str | None, ...]:
    """Return the note about a place where a fact was read, as the last four columns of a FactRow."""
    fact = dict(all_attributes(triple))
    valid_from = _taken_date(fact, "valid_from")
    valid_until = _taken_date(fact, "valid_until")
    return _dumped(fact), valid_from, valid_until, _dumped(_more(source))


def note_in(
    attributes: str | None,
    valid_from: str | None,
    valid_until: str | None,
    source: str | None,
) -> str:
    """Return the note in the columns of a row. Raises ValueError or AttributeError if they are damaged."""
    fact = json.loads(attributes or "{}")
    more = json.loads(source or "{}")
    for key, date in (("valid_from", valid_from), ("valid_until", valid_until)):
        if date is not None:
            fact[key] = date
    return _note(fact, more)


def _taken_date(fact: dict[str, Any], key: str) -> str | None:
    """Remove a date from the attributes of a fact and return it, or None if it is missing or not a text."""
    if not isinstance(fact.get(key), str):
        return None
    return storable(fact.pop(key))


def _dumped(attributes: Mapping[str, Any]) -> str | None:
    if not attributes:
        return None
    return storable(json.dumps(attributes, ensure_ascii=False, sort_keys=True))


# ---- in files for other programs


def place_of(source: Source) -> list[Any]:
    """Return a source as the list [passage, start, end], followed by an object if there are more details."""
    place: list[Any] = [source.passage_id, source.start, source.end]
    if more := _more(source):
        place.append(more)
    return place


def _more(source: Source) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if source.unchecked:
        more["unchecked"] = True
    if attributes := all_attributes(source):
        more["attributes"] = dict(attributes)
    return more


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
