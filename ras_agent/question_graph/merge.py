"""Merges readings into facts and entities.

A reading is a Triple as it was read: one surface form with its attributes and sources. A graph is a set of
readings, so merging is set union, and neither order nor repetition matters. Readings with the same canonical
key state the same fact. Everything shown about a fact (its words, sources, attributes, position) is computed
from its readings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from ras_agent.contracts.records import Source, Triple, attributes_text
from ras_agent.text.canonical import canonical_key

_Place = tuple[int | str, ...]  # hop, passage, start, end; empty without a source
_Order = tuple[_Place, tuple[str, ...]]
_Preference = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Entity:
    """Describes an entity of the graph, with all surface forms that share its canonical key."""

    key: str
    """the canonical key that all its forms share"""
    label: str
    """the form that is shown"""
    forms: tuple[str, ...]
    """every form in which it was read"""


class Readings(tuple[Triple, ...]):
    """Holds the result of `readings_of`: one reading for each surface form, in the order of reading."""

    __slots__ = ()

    def followed_by(self, others: Readings) -> bool:
        """Tell whether all of `others` were read after all of these readings."""
        if not self or not others:
            return True
        return _place(self[-1]) < _place(others[0])


def readings_of(triples: Iterable[Triple]) -> Readings:
    """Merge triples with the same words and attributes into one triple, a reading, with the sources of all of them.

    Readings are sorted by their earliest source: its hop, passage id and position. Those without a source come first.
    """
    if isinstance(triples, Readings):
        return triples
    by_form: dict[tuple[str, ...], Triple] = {}
    further: dict[tuple[str, ...], list[Triple]] = {}
    for triple in triples:
        form = _form(triple)
        before = by_form.setdefault(form, triple)
        if before is not triple:
            further.setdefault(form, []).append(triple)
        elif len(triple.sources) > 1:
            by_form[form] = _with_sources(triple, triple.sources)
    # all mentions of a form at once: a fact may have very many sources, and each call sorts all of them
    for key, mentions in further.items():
        first = by_form[key]
        sources = list(first.sources)
        for mention in mentions:
            sources += mention.sources
        by_form[key] = _with_sources(first, sources)
    return Readings(sorted(by_form.values(), key=_order))


def facts_of(readings: Readings) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
    """Return each fact with the readings that it joins, by the fact's id, in the order of first reading.

    A fact is shown in the form with the most sources; ties go to the longest form, then to alphabetical order.
    """
    facts: dict[str, tuple[Triple, tuple[Triple, ...]]] = {}
    for reading in readings:
        facts[reading.id] = (reading, (reading,))
    if len(facts) == len(readings):
        return facts
    grouped: dict[str, list[Triple]] = {}
    for reading in readings:
        grouped.setdefault(reading.id, []).append(reading)
    for name, alike in grouped.items():
        if len(alike) > 1:
            fact = _combine(alike)
            facts[name] = (fact, tuple(alike))
    # the form that was read first is not always the form that is shown
    entries = sorted(facts.values(), key=_order_of_entry)
    return {fact.id: (fact, forms) for fact, forms in entries}


def _order_of_entry(entry: tuple[Triple, tuple[Triple, ...]]) -> _Order:
    fact, _ = entry
    return _order(fact)


def entities_of(
    facts: Mapping[str, tuple[Triple, Sequence[Triple]]],
) -> dict[str, Entity]:
    """Return the subjects and objects of facts as entities by canonical key, in the order of first mention.

    `facts` is the result of `facts_of`. The label is the form that most facts use; ties go to the longest form, then
    to alphabetical order.
    """
    labels: dict[str, Counter[str]] = {}
    others: dict[str, set[str]] = {}
    for fact, readings in facts.values():
        for surface in (fact.subject, fact.object):
            key = canonical_key(surface)
            counts = labels.setdefault(key, Counter())
            counts[surface] += 1
        if len(readings) == 1:
            continue
        for reading in readings:
            for surface in (reading.subject, reading.object):
                key = canonical_key(surface)
                forms = others.setdefault(key, set())
                forms.add(surface)
    entities = {}
    for key, counts in labels.items():
        further = others.get(key, ())
        entities[key] = _entity(key, counts, further)
    return entities


def first_hop(fact: Triple) -> int:
    """Return the first hop that read the fact; 0 for a fact that the caller supplied."""
    hops = map(attrgetter("hop"), fact.sources)
    return min(hops, default=0)


def _entity(key: str, label_counts: Mapping[str, int], others: Iterable[str]) -> Entity:
    if len(label_counts) == 1 and not others:
        (label,) = label_counts
        return Entity(key, label, (label,))

    def preference(surface: str) -> tuple[int, _Preference]:
        return -label_counts[surface], _preference(surface)

    label = min(label_counts, key=preference)
    forms = sorted({*label_counts, *others})
    return Entity(key, label, tuple(forms))


def _combine(alike: Sequence[Triple]) -> Triple:
    def preference(reading: Triple) -> tuple[int, _Preference]:
        support = len(reading.sources)
        words = (reading.subject, reading.predicate, reading.object)
        return -support, _preference(*words)

    best = min(alike, key=preference)
    sources: list[Source] = []
    for reading in alike:
        sources += reading.sources
    attributes = shared_attributes(reading.attributes for reading in alike)
    fact = _with_sources(best, sources)
    if attributes == fact.attributes:
        return fact
    return replace(fact, attributes=attributes)


def shared_attributes(parts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the attributes that have the same value in all `parts` that have them.

    The result does not depend on the order of the parts.
    """
    shared: dict[str, Any] = {}
    disputed: set[str] = set()
    for part in parts:
        for key, value in part.items():
            if shared.setdefault(key, value) != value:
                disputed.add(key)
    for key in disputed:
        del shared[key]
    return shared


def _form(triple: Triple) -> tuple[str, str, str, str]:
    attributes = attributes_text(triple)
    return triple.subject, triple.predicate, triple.object, attributes


def _preference(*form: str) -> _Preference:
    length = sum(map(len, form))
    return -length, form


def _place(reading: Triple) -> _Place:
    """Return the sort key of a reading's first source: hop, passage, position. Readings without a source come first."""
    # a fast path for the common case, because this runs for every reading at every merge
    if len(reading.sources) == 1:
        return _place_of(reading.sources[0])
    return min(map(_place_of, reading.sources), default=())


_place_of: Callable[[Source], _Place] = attrgetter("hop", "passage_id", "start", "end")


def _order(reading: Triple) -> _Order:
    """Return the sort key of a reading: its place, then its form."""
    return _place(reading), _form(reading)


def _with_sources(triple: Triple, sources: Iterable[Source]) -> Triple:
    """Return `triple` with `sources`, without duplicates and sorted; the same object if it already has exactly
    these.
    """
    distinct = tuple(sorted(set(sources)))
    if distinct == triple.sources:
        return triple
    return replace(triple, sources=distinct)
