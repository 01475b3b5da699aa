"""Names the entities of a graph whose facts join ids: by their labels, with an addition where two labels are equal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.contracts.records import NO_ATTRIBUTES, Attributes, is_person
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.documents import Skipped

ALSO_CALLED = "is also called"
"""The relation from an entity to another of its names."""


@dataclass(frozen=True, slots=True)
class PlacedTriple:
    """Holds a fact of a file, its place there ("films.nt line 3"), and its attributes."""

    subject: str
    predicate: str
    object: str
    place: str
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Edge:
    """Holds a fact by the ids of its ends, and its place in a file."""

    head: str
    relation: str
    tail: str
    place: str
    is_attribute: bool = False
    """Whether the tail is a value instead of an id."""
    attributes: Attributes = NO_ATTRIBUTES


def named_facts(
    labels: Mapping[str, str], edges: Sequence[Edge | Skipped]
) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts with the names of their entities. An id without a label is used as the name.

    An entity whose name differs from its label gets a fact that it is also called by its label.
    """
    names = distinct_names(labels, edges)
    marked = set()
    for entity, name in names.items():
        if name != labels[entity]:
            marked.add(entity)
    for edge in edges:
        if isinstance(edge, Skipped):
            yield edge
            continue
        ends = [edge.head]
        if not edge.is_attribute:
            ends.append(edge.tail)
        for entity in ends:
            if entity in marked:
                marked.remove(entity)
                fact = (names[entity], ALSO_CALLED, labels[entity])
                yield placed(fact, edge.place)
        named = [names.get(entity, entity) for entity in ends]
        head = named[0]
        tail = edge.tail if edge.is_attribute else named[1]
        yield placed((head, edge.relation, tail), edge.place, edge.attributes)


def distinct_names(
    labels: Mapping[str, str], edges: Iterable[Edge | Skipped]
) -> dict[str, str]:
    """Return a distinct name for each id: its label, followed by one of its facts in parentheses if other ids share
    the label.

    The fact is the first that no other of these ids has; without such a fact, the id is added.
    """
    shared = _shared(labels)
    facts: dict[str, list[str]] = {entity: [] for entity in shared}
    for edge in edges:
        if isinstance(edge, Skipped) or edge.head not in facts:
            continue
        tail = edge.tail
        if not edge.is_attribute:
            tail = labels.get(tail, tail)
        fact = f"{edge.relation} {tail}"
        facts[edge.head].append(fact)
    names = dict(labels)
    for entity, others in shared.items():
        known: set[str] = set()
        for other in others:
            known.update(facts[other])
        mark = entity
        for fact in facts[entity]:
            if fact not in known:
                mark = fact
                break
        names[entity] = f"{labels[entity]} ({mark})"
    return names


def _shared(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the ids that share their label with other ids, each with those ids."""
    by_key: dict[str, list[str]] = {}
    for entity, label in labels.items():
        key = canonical_key(label)
        by_key.setdefault(key, []).append(entity)
    shared = {}
    for entities in by_key.values():
        if len(entities) == 1:
            continue
        for entity in entities:
            shared[entity] = [other for other in entities if other != entity]
    return shared


def place_by(place: str, by: str) -> str:
    """Return the place of a fact, followed by the person who made it; unchanged if `by` names no person."""
    name = " ".join(by.split())
    return f"{place}, by {name}" if is_person(name) else place


def written_attributes(text: str) -> Attributes:
    """Return the attributes that an export of this package wrote as JSON; any other text gives no attributes."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return NO_ATTRIBUTES
    if not isinstance(found, dict):
        return NO_ATTRIBUTES
    return Attributes.of_others(found)


def placed(
    fields: Sequence[str], place: str, attributes: Attributes = NO_ATTRIBUTES
) -> PlacedTriple | Skipped:
    """Return a fact of three texts: head, relation and tail. If one of them is blank, return a Skipped with the
    reason.
    """
    texts = []
    for field in fields:
        text = " ".join(field.split())
        texts.append(text)
    keys = map(canonical_key, texts)
    if not all(keys):
        return Skipped(place, f"a blank head, relation or tail: {list(fields)!r:.80}")
    head, relation, tail = texts
    return PlacedTriple(head, relation, tail, place, attributes)
