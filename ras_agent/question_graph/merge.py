"""What a question graph is made of: readings, and how they add up to facts.

A reading is a Triple as it was read: one surface form and the sources it was read in. A graph is a set of readings, so
merging is set union: it does not matter how often or in which order. Readings with the same canonical key state the
same fact; everything shown about a fact (its words, its sources, its place) is computed from the set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.records import Source, Triple
from ras_agent.text.canonical import canonical_key

__all__ = ["Entity", "Readings", "entities_of", "facts_of", "first_hop", "united"]

Place = tuple[int, str, int, int]
_NOWHERE: Place = (-1, "", 0, 0)


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: its canonical key, the label to show, every surface form it was read under."""

    key: str
    label: str
    forms: tuple[str, ...]


class Readings(tuple[Triple, ...]):
    """Triples that are united: they need not be united again."""

    __slots__ = ()

    def followed_by(self, others: Readings) -> bool:
        """Whether all of `others` were read after all of these."""
        return not self or not others or _place(self[-1]) < _place(others[0])


def united(triples: Iterable[Triple]) -> Readings:
    """One reading for each surface form, with the sources of all its mentions, in the order of first reading."""
    if isinstance(triples, Readings):
        return triples
    known: dict[tuple[str, str, str], Triple] = {}
    further: dict[tuple[str, str, str], list[Triple]] = {}
    for triple in triples:
        form = triple.subject, triple.predicate, triple.object
        before = known.setdefault(form, triple)
        if before is not triple:
            further.setdefault(form, []).append(triple)
        elif len(triple.sources) > 1:
            known[form] = _with_sources(triple, triple.sources)
    # together, for a fact may be told by very many sources, and each sort of theirs looks at all
    for form, mentions in further.items():
        known[form] = _with_sources(known[form], [s for triple in (known[form], *mentions) for s in triple.sources])
    # no two have one form, so readings are never compared themselves
    return Readings(known[form] for _, form in sorted((_place(reading), form) for form, reading in known.items()))


def facts_of(readings: Readings) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
    """Fact id -> (the fact, its readings), in the order of first reading; of one place, by the forms that are shown.

    A fact is shown as most of its sources have it; ties go to the longest form, then to the first in the alphabet.
    """
    grouped: dict[str, list[Triple]] = {}
    for reading in readings:
        grouped.setdefault(reading.id, []).append(reading)
    facts = {name: (alike[0] if len(alike) == 1 else _shown(alike), tuple(alike)) for name, alike in grouped.items()}
    if len(facts) == len(readings):
        return facts
    # the form that was read first is not always the one that is shown
    return dict(sorted(facts.items(), key=lambda item: (_place(item[1][0]), _form(item[1][0]))))


def entities_of(facts: Mapping[str, tuple[Triple, Sequence[Triple]]]) -> dict[str, Entity]:
    """Canonical key -> Entity, in order of first mention. The label is the form that most facts show, ties as above."""
    shown: dict[str, dict[str, int]] = {}
    others: dict[str, set[str]] = {}
    for fact, readings in facts.values():
        for surface in (fact.subject, fact.object):
            counts = shown.setdefault(canonical_key(surface), {})
            counts[surface] = counts.get(surface, 0) + 1
        for reading in readings if len(readings) > 1 else ():
            for surface in (reading.subject, reading.object):
                others.setdefault(canonical_key(surface), set()).add(surface)
    return {key: _entity(key, counts, others.get(key, ())) for key, counts in shown.items()}


def first_hop(fact: Triple) -> int:
    """The hop that first read the fact; 0 for a given one."""
    return min((source.hop for source in fact.sources), default=0)


def _entity(key: str, shown: Mapping[str, int], others: Iterable[str]) -> Entity:
    if len(shown) == 1 and not others:
        (label,) = shown
        return Entity(key, label, (label,))
    label = min(shown, key=lambda surface: (-shown[surface], *_preferred((surface,))))
    return Entity(key, label, tuple(sorted({*shown, *others})))


def _shown(alike: Sequence[Triple]) -> Triple:
    best = min(alike, key=lambda reading: (-len(reading.sources), *_preferred(_form(reading))))
    return _with_sources(best, [source for reading in alike for source in reading.sources])


def _form(triple: Triple) -> tuple[str, str, str]:
    return triple.subject, triple.predicate, triple.object


def _preferred(form: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return -sum(map(len, form)), form


def _place(reading: Triple) -> Place:
    """By hop, then as the passages run; readings without a source come first."""
    if len(reading.sources) == 1:  # nearly always, and this runs for every reading at every merge
        (source,) = reading.sources
        return source.hop, source.passage_id, source.start, source.end
    return min(
        ((source.hop, source.passage_id, source.start, source.end) for source in reading.sources), default=_NOWHERE
    )


def _with_sources(triple: Triple, sources: Iterable[Source]) -> Triple:
    """`triple` with `sources`, each once and sorted; the triple itself where that changes nothing."""
    distinct = tuple(sources)
    if len(distinct) > 1:
        distinct = tuple(sorted(set(distinct)))
    if distinct == triple.sources:
        return triple
    return Triple(triple.subject, triple.predicate, triple.object, distinct)
