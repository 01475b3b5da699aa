"""Finds the functional relations of a graph, in which a subject has only one object, by counting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ras_agent.contracts.errors import RasError
from ras_agent.contracts.schema import Schema
from ras_agent.question_graph.conflicts import frame_of, is_name, values_disagree
from ras_agent.question_graph.disputes import are_alike
from ras_agent.running.budget import current_ledger
from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import value_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import graph_of

LEAST_SUBJECTS = 20
"""The minimum number of subjects that several passages state, for a relation to be judged."""
LEAST_SHARE = 0.95
"""The minimum share of these subjects that have only one object, for a relation to be functional."""
MOST_SUBJECTS = 500
"""The maximum number of subjects that are looked at, so that no question waits for a large graph. If a relation has
more, evenly spaced ones are taken."""
_MOST_OBJECTS = 50  # a subject with more is taken to have several


class KnownRelations:
    """Tells which relations are functional: by a schema if it says so, else as counted in the graph of an index.

    A relation is counted when it is first asked for, and again after the index has changed.
    """

    def __init__(self, index: object, schema: Schema | None = None) -> None:
        self._index = index
        self._schema = schema
        self._commit = ""
        self._graph: KGIndex | None = None
        self._counted: dict[str, bool | None] = {}

    def __call__(self, predicate: str) -> bool | None:
        """Tell whether a subject has only one object for a predicate; None if that is not known."""
        stated = None
        if self._schema is not None:
            stated = self._schema.functional(predicate)
        if stated is not None or not isinstance(self._index, PassageIndex):
            return stated
        if self._index.commit != self._commit:
            self._open(self._index)
        if self._graph is None:
            return None
        frame = frame_of(canonical_key(predicate))
        if frame not in self._counted:
            self._counted[frame] = is_functional(self._graph, frame)
        return self._counted[frame]

    def _open(self, index: PassageIndex) -> None:
        self._counted = {}
        self._graph = None
        self._commit = index.commit
        if not KGIndex.exists(index):
            self._commit = ""  # a graph may be built later
            return
        try:
            self._graph = graph_of(index)
        except RasError as error:
            current_ledger().note(
                f"the relations of the graph were not counted, so grammar tells where names disagree: {error}",
                role="answerer",
            )


def is_functional(graph: KGIndex, frame: str) -> bool | None:
    """Tell whether subjects have one object in a relation, which is given by its frame.

    Only subjects count of which several passages state the relation; with fewer than LEAST_SUBJECTS of them the answer
    is None. Objects are one if they are alike, are values that agree, or are linked by a fact.
    """
    objects = _objects(graph, frame)
    if len(objects) < LEAST_SUBJECTS:
        return None
    links = _links(graph, objects)
    count = 0
    for ends in objects:
        count += len(ends) <= _MOST_OBJECTS and _are_one(graph, ends, links)
    return count >= LEAST_SHARE * len(objects)


def _objects(graph: KGIndex, frame: str) -> list[set[int]]:
    """Return the objects of each subject of which several passages state the relation, for at most MOST_SUBJECTS."""
    relations = []
    for number, key in enumerate(graph.arrays.relation_keys):
        if frame in key and frame_of(key) == frame:
            relations.append(number)
    facts = graph.edges[: len(graph.facts)]
    is_stated = np.isin(facts[:, 1], relations)
    edges = graph.arrays.source_edges()
    # only facts have sources
    places = np.flatnonzero(is_stated[edges])
    documents = graph.arrays.sources["document"][places].astype(np.int64)
    subjects = facts[edges[places], 0].astype(np.int64)
    stated = np.unique(subjects * len(graph.documents) + documents)
    several, passages = np.unique(stated // len(graph.documents), return_counts=True)
    several = several[passages > 1]
    step = -(-len(several) // MOST_SUBJECTS) or 1
    is_chosen = is_stated & np.isin(facts[:, 0], several[::step])
    objects: dict[int, set[int]] = {}
    for subject, _, object_ in facts[is_chosen].tolist():
        objects.setdefault(subject, set()).add(object_)
    return [ends for one, ends in objects.items() if is_name(graph.entities[one])]


def _links(graph: KGIndex, objects: Sequence[set[int]]) -> set[frozenset[int]]:
    """Return the pairs of objects that an edge joins."""
    ends = np.array(sorted(set().union(*objects)))
    edges = graph.edges
    among = np.isin(edges[:, 0], ends) & np.isin(edges[:, 2], ends)
    return {frozenset((head, tail)) for head, _, tail in edges[among].tolist()}


def _are_one(graph: KGIndex, ends: set[int], links: set[frozenset[int]]) -> bool:
    """Tell whether all objects of a subject may be the same."""
    for one, other in combinations(sorted(ends), 2):
        is_linked = frozenset((one, other)) in links
        if not is_linked and not _may_be_one(graph, one, other):
            return False
    return True


def _may_be_one(graph: KGIndex, one: int, other: int) -> bool:
    """Tell whether two objects may be the same: one contains the other, or they are values that agree."""
    first = graph.entities[one]
    second = graph.entities[other]
    if value_of(first) is not None and value_of(second) is not None:
        return not values_disagree(first, second)
    return are_alike(first, second)
