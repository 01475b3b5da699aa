"""Parts of a stored knowledge graph for the page: what is around an entity, and names by their beginning."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice, takewhile
from typing import Any, cast

import numpy as np

from ras_agent.app.serve.errors import ApiError
from ras_agent.app.serve.wire import Entity, Equivalence, Fact, Neighbourhood
from ras_agent.arrays import Ints
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.picture import most_connected, nearby


def neighbourhood(graph: KGIndex, entity: str, limit: int) -> Neighbourhood:
    """Return up to `limit` entities around one, or the best connected of all, and the edges among them.

    Raises ApiError for an entity that the graph does not have.
    """
    number = None
    if entity:
        number = graph.entity_id(entity)
        if number is None:
            raise ApiError(404, f"the graph has no entity {entity!r}; /api/entities finds names", "unknown_entity")
    shown = most_connected(graph, limit) if number is None else nearby(graph, [number], limit)
    ends = graph.edges[:, [0, 2]]
    inside = np.isin(ends, shown).all(axis=1) & (ends[:, 0] != ends[:, 1])
    facts, same = [], []
    for edge in np.flatnonzero(inside).tolist():
        triple = graph.triple(edge)
        if edge in graph.facts:
            facts.append(Fact(id=triple.id, **triple.to_dict()))
        else:
            cosine = float(graph.similarities[edge - graph.facts.stop])
            same.append(Equivalence(one=triple.subject, other=triple.object, similarity=round(cosine, 4)))
    steps = {} if number is None else _steps(graph, number, shown)
    named, numbers = graph.document_frequency, cast("list[int]", shown.tolist())
    return Neighbourhood(
        entity="" if number is None else graph.entities[number],
        entities=[Entity(name=graph.entities[one], passages=int(named[one]), steps=steps.get(one)) for one in numbers],
        facts=facts,
        equivalences=same,
        all_entities=len(graph.entities),
        all_facts=len(graph.facts),
    )


def names_beginning(graph: KGIndex, prefix: str, limit: int) -> list[str]:
    """Return the names of entities whose canonical key begins with that of `prefix`, in the order of the keys."""
    keys: Any = graph.keys
    wanted = prefix if graph.manifest.exact else canonical_key(prefix)
    first = bisect_left(keys, wanted)
    found = takewhile(lambda number: keys[number].startswith(wanted), range(first, len(keys)))
    return [graph.entities[number] for number in islice(found, limit)]


def _steps(graph: KGIndex, start: int, shown: Ints) -> dict[int, int]:
    """Return for each shown entity how many edges away from `start` it is."""
    wanted = set(shown.tolist())
    steps, last = {start: 0}, [start]
    while last:
        reached = {one for entity in last for one in graph.neighbours(entity).tolist()} & wanted - steps.keys()
        last = sorted(reached)
        steps |= dict.fromkeys(last, max(steps.values()) + 1)
    return steps
