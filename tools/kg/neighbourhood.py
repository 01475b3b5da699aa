"""Finds parts of a stored knowledge graph for display: the neighbourhood of an entity, and names that begin with some
letters.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, cast

import numpy as np

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.records import JSON
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.picture import most_connected, nearby


@dataclass(frozen=True, slots=True)
class Entity:
    """Describes an entity in a neighbourhood."""

    name: str
    passages: int
    """The number of passages that name it."""
    steps: int | None = None
    """The number of edges between it and the entity in the middle; None if no entity is in the middle or no path leads
    there.
    """


@dataclass(frozen=True, slots=True)
class Fact:
    """Describes a fact in a neighbourhood, with the passages in which it was read."""

    id: str
    subject: str
    predicate: str
    object: str
    sources: list[JSON]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Describes two entities that are probably the same."""

    one: str
    other: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Holds a part of a knowledge graph around an entity."""

    entity: str
    """The name of the entity in the middle; "" if no entity is."""
    entities: list[Entity]
    facts: list[Fact]
    equivalences: list[Equivalence]
    all_entities: int
    all_facts: int


def neighbourhood(graph: KGIndex, entity: str, limit: int) -> Neighbourhood:
    """Return up to `limit` entities around `entity`, and the edges between them. Raises KeyError for an unknown
    entity.

    Args:
        entity: a name; "" for the entities with the most edges.
    """
    number = graph.entity_id(entity) if entity else None
    if entity and number is None:
        raise KeyError(entity)
    entities = (
        most_connected(graph, limit)
        if number is None
        else nearby(graph, [number], limit)
    )
    ends = graph.edges[:, [0, 2]]
    inside = np.isin(ends, entities).all(axis=1) & (ends[:, 0] != ends[:, 1])
    facts = []
    same = []
    for edge in np.flatnonzero(inside).tolist():
        triple = graph.triple(edge)
        if edge in graph.facts:
            facts.append(Fact(id=triple.id, **triple.to_dict()))
        else:
            cosine = float(graph.similarities[edge - graph.facts.stop])
            same.append(
                Equivalence(
                    one=triple.subject, other=triple.object, similarity=round(cosine, 4)
                )
            )
    steps = {} if number is None else _steps(graph, number, entities)
    frequency = graph.document_frequency
    numbers = cast("list[int]", entities.tolist())
    return Neighbourhood(
        entity="" if number is None else graph.entities[number],
        entities=[
            Entity(
                name=graph.entities[node],
                passages=int(frequency[node]),
                steps=steps.get(node),
            )
            for node in numbers
        ],
        facts=facts,
        equivalences=same,
        all_entities=len(graph.entities),
        all_facts=len(graph.facts),
    )


def names_beginning(graph: KGIndex, prefix: str, limit: int) -> list[str]:
    """Return at most `limit` names of entities whose keys begin with the key of `prefix`, in the order of the keys."""
    keys: Any = graph.keys
    key = prefix if graph.manifest.exact else canonical_key(prefix)
    first = bisect_left(keys, key)
    numbers = takewhile(
        lambda number: keys[number].startswith(key), range(first, len(keys))
    )
    return [graph.entities[number] for number in islice(numbers, limit)]


def _steps(graph: KGIndex, start: int, entities: Ints) -> dict[int, int]:
    """Return how many edges each of `entities` is from `start`, for those that can be reached through `entities`."""
    unreached = set(entities.tolist())
    steps = {start: 0}
    last = [start]
    while last:
        reached = {
            node for entity in last for node in graph.neighbours(entity).tolist()
        } & unreached - steps.keys()
        last = sorted(reached)
        steps |= dict.fromkeys(last, max(steps.values()) + 1)
    return steps
